"""Pictures of the graph: what stands in them, how large graphs are folded, where the boxes are placed."""

import gc
import os
import re
import sys
import weakref
from xml.etree import ElementTree

import pytest

import rushlight as torch
from rushlight.autograd.draw import draw
from rushlight.autograd.draw.graph import Graph, _Walk
from rushlight.autograd.draw.picture import bytes_text, compose, shape_text

SVG = "{http://www.w3.org/2000/svg}"


def parse_dot(text):
    """Labels by node, and edges as (source label's first line, target label's first line, edge label)."""
    labels, kinds, edges = {}, {}, []
    for line in text.splitlines():
        if node := re.fullmatch(r'  (n\d+) \[label="(.*?)", class="(\w+)", .*\];', line):
            labels[node[1]], kinds[node[1]] = node[2].split("\\n"), node[3]
        elif edge := re.fullmatch(r'  (n\d+) -> (n\d+)(?: \[label="(.*)"\])?;', line):
            edges.append(edge.groups())
    titles = {node: lines[0] for node, lines in labels.items()}
    arrows = [(titles[source], titles[target], label or "") for source, target, label in edges]
    return labels, kinds, arrows


def titles(drawing):
    labels, _, _ = parse_dot(drawing.dot)
    return [lines[0] for lines in labels.values()]


def seed_example():
    a = torch.tensor([2.0, 3.0], requires_grad=True)
    b = torch.tensor([6.0, 4.0], requires_grad=True)
    return a, b, 3 * a**3 - b**2


# ---- what is in the picture ------------------------------------------------------------------------------------------


def test_the_graph_of_the_seed_text():
    a, b, q = seed_example()
    labels, kinds, arrows = parse_dot(draw(q, {"a": a, "b": b, "Q": q}).dot)
    assert sorted(zip((lines[0] for lines in labels.values()), kinds.values(), strict=True)) == [
        ("AccumulateGrad", "accumulate"),
        ("AccumulateGrad", "accumulate"),
        ("MulBackward0", "function"),
        ("PowBackward0", "function"),
        ("PowBackward0", "function"),
        ("Q", "output"),
        ("SubBackward0", "function"),
        ("a", "leaf"),
        ("b", "leaf"),
    ]
    assert sorted(arrows) == [
        ("AccumulateGrad", "PowBackward0", ""),
        ("AccumulateGrad", "PowBackward0", ""),
        ("MulBackward0", "SubBackward0", "(2)"),
        ("PowBackward0", "MulBackward0", "(2)"),
        ("PowBackward0", "SubBackward0", "(2)"),
        ("SubBackward0", "Q", ""),
        ("a", "AccumulateGrad", ""),
        ("b", "AccumulateGrad", ""),
    ]
    assert [lines[1] for lines in labels.values() if lines[0] in ("a", "b", "Q")] == ["(2)"] * 3


@pytest.mark.parametrize("pairs", [False, True])
def test_names_come_from_mappings_and_from_pairs(pairs):
    a, b, q = seed_example()
    names = {"weights.first": a, "weights.second": b}
    found = titles(draw(q, names.items() if pairs else names))
    assert {"weights.first", "weights.second", "output"} <= set(found)


def test_a_leaf_without_a_name_shows_its_shape_and_an_unusual_dtype():
    x = torch.ones(2, 1, dtype=torch.float64, requires_grad=True)
    labels, _, _ = parse_dot(draw(x.exp()).dot)
    assert ["(2, 1)", "float64"] in labels.values()


def test_a_tensor_used_twice_has_one_arrow_per_user():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    _, _, arrows = parse_dot(draw(y * y, {"x": x}).dot)
    assert [(source, target) for source, target, _ in arrows].count(("ExpBackward0", "MulBackward0")) == 1


def test_several_roots_share_what_lies_behind_them():
    x = torch.ones(4, requires_grad=True)
    y = x.exp()
    drawing = draw([y, y.sum(), x], {"x": x, "y": y})
    labels, kinds, arrows = parse_dot(drawing.dot)
    assert [lines[0] for lines in labels.values()].count("ExpBackward0") == 1
    assert [labels[node][0] for node, kind in kinds.items() if kind == "output"] == ["y", "output 1", "output 2"]
    assert ("x", "output 2", "") in arrows
    assert len([kind for kind in kinds.values() if kind == "leaf"]) == 1


def test_results_of_one_function_keep_their_own_shapes():
    x = torch.ones(5, requires_grad=True)
    first, second = x.split([2, 3])
    _, _, arrows = parse_dot(draw([first.exp(), second.sin()]).dot)
    assert {label for source, target, label in arrows if target == "ExpBackward0"} == {"(2)"}
    assert {label for source, target, label in arrows if target == "SinBackward0"} == {"(3)"}


def test_switches_leave_out_shapes_and_saved_tensors():
    a, b, q = seed_example()
    names = {"a": a, "b": b, "Q": q}
    bare = draw(q, names, shapes=False, saved=False).dot
    assert "(2)" not in bare
    assert "save" not in bare
    full = draw(q, names).dot
    assert "(2)" in full
    assert re.search(r"\d+ B saved for backward", full)


class Function:
    """A backward function as the core describes it."""

    def __init__(self, name, *inputs, shapes=((2,),), saved=()):
        self._name, self.next_functions, self._shapes, self._saved = name, inputs, shapes, saved

    def name(self):
        return self._name

    def _input_shapes(self):
        return self._shapes

    def _describe_saved(self):
        return self._saved


def picture_of(function, limit=30):
    walk = _Walk(None)
    walk.visit(function)
    return compose(Graph(walk.nodes), limit, True, True)


def test_saved_tensors_are_listed_with_their_bytes():
    saved = [("self", (3, 4), "float32", 48), ("index", (), "int64", 8), ("result", None, "", 0)]
    picture = picture_of(Function("ns::NameBackward0", (None, 0), saved=saved))
    assert picture.boxes[0].title == "NameBackward0"
    assert picture.boxes[0].details == ["saves self (3, 4), 48 B", "saves index scalar, 8 B", "result freed"]
    assert picture.caption == "1 function · 0 leaves · 56 B saved for backward"


def test_long_lists_of_saved_tensors_are_cut():
    saved = [(f"t{number}", (1,), "float32", 4) for number in range(9)]
    details = picture_of(Function("Cat", saved=saved)).boxes[0].details
    assert len(details) == 6
    assert details[-1] == "and 4 more, 16 B"


def test_arrows_carry_the_shape_of_the_result_that_they_take():
    split = Function("Split", shapes=((2, 3), (2, 5)))
    picture = picture_of(Function("Cat", (split, 1), (split, 0), (split, 1)))
    assert [arrow.label for arrow in picture.arrows] == ["(2, 5), (2, 3)"]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_951, "1.0 MB"),
        (3 * 10**16, "30000.0 TB"),
    ],
)
def test_sizes_in_bytes(size, text):
    assert bytes_text(size) == text


def test_shapes_as_text():
    assert [shape_text(shape) for shape in ((), (2,), (2, 0), None)] == ["scalar", "(2)", "(2, 0)", ""]


# ---- folding ---------------------------------------------------------------------------------------------------------


def test_a_long_chain_is_one_box():
    a = torch.tensor([2.0, 3.0], requires_grad=True)
    x = a
    for _ in range(5000):
        x = x * 1.5
    drawing = draw(x, {"a": a})
    assert titles(drawing) == ["a", "MulBackward0 × 5,000", "output"]
    assert "5,000 functions · 1 leaf" in drawing.dot


def test_a_pattern_is_one_box_that_lists_one_round():
    a = torch.tensor([0.5], requires_grad=True)
    b = torch.tensor([0.5], requires_grad=True)
    x = a
    for _ in range(100):
        x = (x * b).sin().exp()
    labels, _, arrows = parse_dot(draw(x, {"a": a, "b": b}, saved=False).dot)
    assert ["3 functions × 100", "MulBackward0", "SinBackward0", "ExpBackward0"] in labels.values()
    assert sorted(arrows) == [
        ("3 functions × 100", "output", ""),
        ("a", "3 functions × 100", ""),
        ("b", "3 functions × 100", ""),
    ]


def test_each_round_may_have_its_own_leaves():
    x = torch.ones(3, requires_grad=True)
    for _ in range(60):
        x = (x * torch.ones(3, requires_grad=True)).sin()
    labels, _, _ = parse_dot(draw(x, saved=False).dot)
    folded = next(lines for lines in labels.values() if "×" in lines[0])
    assert folded[0] == "2 functions × 60"
    assert folded[-1] in ("60 leaves, 180 numbers", "61 leaves, 183 numbers")


def block_model(blocks):
    """A chain of blocks with two layers each, and names as a module would give them."""
    parameters = {}
    x = torch.ones(1, 4)
    for block in range(blocks):
        residual = x
        for layer in ("inner", "outer"):
            weight = torch.full((4, 4), 0.1, requires_grad=True)
            parameters[f"blocks.{block}.{layer}.weight"] = weight
            x = (x @ weight).tanh()
        x = x + residual
    head = torch.ones(4, requires_grad=True)
    parameters["head.weight"] = head
    return (x * head).sum(), parameters


def test_modules_are_folded_as_far_as_it_takes():
    out, parameters = block_model(8)
    inner = titles(draw(out, parameters, max_boxes=20))
    assert inner == [f"blocks.{block}.{layer}" for block in range(8) for layer in ("inner", "outer")] + [
        "head",
        "output",
    ]
    outer = titles(draw(out, parameters, max_boxes=12))
    assert outer == [f"blocks.{block}" for block in range(8)] + ["head", "output"]


def test_more_modules_than_there_is_room_for_repeat():
    out, parameters = block_model(50)
    labels, _, _ = parse_dot(draw(out, parameters, max_boxes=12).dot)
    repeated = [lines for lines in labels.values() if "×" in lines[0]]
    assert len(repeated) == 1
    assert "blocks.*.inner" in repeated[0]
    assert "blocks.*.outer" in repeated[0]
    assert len(labels) <= 12


def test_a_module_box_tells_what_it_holds():
    out, parameters = block_model(8)
    labels, kinds, arrows = parse_dot(draw(out, parameters, max_boxes=12).dot)
    (third,) = (node for node, lines in labels.items() if lines[0] == "blocks.3")
    assert kinds[third] == "module"
    assert "2 leaves, 32 numbers" in labels[third]
    assert "2 × TanhBackward0" in labels[third]
    assert ("blocks.2", "blocks.3", "(1, 4)") in [(s, t, label.removeprefix("2 × ")) for s, t, label in arrows]


def test_without_repetition_stretches_are_folded():
    x = torch.ones(2, requires_grad=True)
    operations = (torch.sin, torch.exp, torch.tanh, torch.sigmoid)
    state = 1
    for _ in range(600):
        state = (state * 1103515245 + 12345) % 2**31
        x = operations[(state >> 16) % 4](x)
    labels, _, arrows = parse_dot(draw(x, max_boxes=10).dot)
    assert len(labels) <= 10
    assert len(arrows) == len(labels) - 1
    assert sum(int(lines[0].split()[0]) for lines in labels.values() if lines[0].endswith(" functions")) <= 600


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8, 13])
def test_folded_graphs_have_no_cycles(limit):
    out, parameters = block_model(9)
    labels, _, _ = parse_dot(draw(out, parameters, max_boxes=limit).dot)
    for line in draw(out, parameters, max_boxes=limit).dot.splitlines():
        if edge := re.match(r"  n(\d+) -> n(\d+)", line):
            assert int(edge[1]) < int(edge[2])
    assert len(labels) <= max(limit, 3)


def test_graphs_of_any_depth_are_walked_without_recursion():
    depth = 50 * sys.getrecursionlimit()
    x = torch.ones(1, requires_grad=True)
    for _ in range(depth):
        x = x + 1
    assert f"AddBackward0 × {depth:,}" in titles(draw(x))


# ---- the drawing as an object ----------------------------------------------------------------------------------------


def test_the_same_program_gives_the_same_picture():
    (out, parameters), (again, same_parameters) = block_model(5), block_model(5)
    first, second = draw(out, parameters), draw(again, same_parameters)
    assert first.svg == second.svg
    assert first.dot == second.dot
    assert str(first) == str(second)


def test_a_drawing_keeps_no_tensor_alive():
    a, b, q = seed_example()
    drawing = draw(q, {"a": a, "b": b})
    references = [weakref.ref(tensor) for tensor in (a, b, q)]
    del a, b, q
    gc.collect()
    assert [reference() for reference in references] == [None] * 3
    assert "PowBackward0" in drawing.svg


def test_drawing_leaves_the_graph_as_it_was():
    a, _, q = seed_example()
    assert draw(q).svg
    q.sum().backward()
    assert a.grad.tolist() == [36.0, 81.0]
    assert "freed" not in draw(3 * a).dot


def test_it_shows_itself_in_a_notebook_and_as_text():
    a, b, q = seed_example()
    drawing = draw(q, {"a": a, "b": b})
    assert drawing._repr_svg_() == drawing.svg
    assert repr(drawing).startswith("<Drawing: 4 functions · 2 leaves")
    lines = str(drawing).splitlines()
    assert lines[0].startswith("[0] a ((2))") or lines[0].startswith("[0] a")
    assert any(re.fullmatch(r"\[\d+\] SubBackward0.* <- \[\d+\] \(2\), \[\d+\] \(2\)", line) for line in lines)


@pytest.mark.parametrize("name", ["graph.svg", "graph.dot", "GRAPH.SVG"])
def test_text_formats_are_written_as_they_are(tmp_path, name):
    _, _, q = seed_example()
    drawing = draw(q)
    drawing.save(tmp_path / name)
    expected = drawing.dot if name.endswith("dot") else drawing.svg
    assert (tmp_path / name).read_text(encoding="utf-8") == expected


def install_program(folder, name, body):
    program = folder / name
    program.write_text(f"#!{sys.executable}\nimport sys\narguments = sys.argv[1:]\n{body}\n")
    program.chmod(0o755)


@pytest.fixture
def only_programs(tmp_path, monkeypatch):
    """A folder which is all that PATH names, and no cairosvg."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    return folder


@pytest.mark.parametrize(("program", "content"), [("rsvg-convert", "<svg"), ("dot", "digraph")])
def test_pictures_in_points_are_made_by_a_program(tmp_path, only_programs, program, content):
    body = """
name = next(a.removeprefix("--output=").removeprefix("-o") for a in arguments if a.startswith(("--output=", "-o")))
open(name, "w").write(" ".join(arguments) + sys.stdin.read())
"""
    install_program(only_programs, program, body)
    _, _, q = seed_example()
    draw(q).save(tmp_path / "graph.png")
    written = (tmp_path / "graph.png").read_text()
    assert content in written
    assert "png" in written


def test_without_any_converter_the_error_names_them(tmp_path, only_programs):
    _, _, q = seed_example()
    with pytest.raises(RuntimeError, match=r"cairosvg.*rsvg-convert.*dot"):
        draw(q).save(tmp_path / "graph.pdf")
    assert os.listdir(tmp_path) == ["bin"]


def test_a_converter_that_fails_is_quoted(tmp_path, only_programs):
    install_program(only_programs, "dot", "sys.exit('no such font')")
    _, _, q = seed_example()
    with pytest.raises(RuntimeError, match=r"dot could not write .*no such font"):
        draw(q).save(tmp_path / "graph.png")


def test_other_endings_are_refused(tmp_path):
    _, _, q = seed_example()
    with pytest.raises(ValueError, match=r"\.svg, \.dot, \.png or \.pdf.*graph\.jpeg"):
        draw(q).save(tmp_path / "graph.jpeg")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (lambda x: ([x.exp(), 3.0],), TypeError, "found float as element 1"),
        (lambda x: ([x.exp(), x.detach()],), RuntimeError, "element 1 of tensors does not require grad"),
        (lambda x: ([],), ValueError, "at least one tensor"),
    ],
)
def test_what_has_no_graph_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        draw(*arguments(torch.ones(2, requires_grad=True)))


def test_no_boxes_are_too_few():
    with pytest.raises(ValueError, match="at least 1, found 0"):
        draw(torch.ones(2, requires_grad=True), max_boxes=0)


# ---- the SVG ---------------------------------------------------------------------------------------------------------


def boxes_of(svg):
    """The front rectangle of each box as (left, top, right, bottom), with its class and its texts."""
    boxes = []
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        if group.get("class"):
            rect = group.findall(f"{SVG}rect")[-1]
            left, top, width, height = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
            texts = [text.text for text in group.findall(f"{SVG}text")]
            boxes.append(((left, top, left + width, top + height), group.get("class"), texts))
    return boxes


def edge_ends(svg):
    for path in ElementTree.fromstring(svg).iter(f"{SVG}path"):
        if path.get("class") == "edge":
            numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", path.get("d"))]
            yield (numbers[0], numbers[1]), (numbers[-2], numbers[-1])


def test_arrows_leave_boxes_below_and_enter_them_above():
    out, parameters = block_model(2)
    drawing = draw(out, parameters, max_boxes=100)
    boxes = [box for box, _, _ in boxes_of(drawing.svg)]
    labels, _, arrows = parse_dot(drawing.dot)
    assert len(boxes) == len(labels)
    ends = list(edge_ends(drawing.svg))
    assert len(ends) == len(arrows)
    for (x, y), (next_x, next_y) in ends:
        assert y < next_y
        assert any(abs(y - bottom) < 0.2 and left < x < right for left, _, right, bottom in boxes)
        assert any(abs(next_y - top) < 0.2 and left < next_x < right for left, top, right, _ in boxes)


def test_leaves_are_blue_functions_grey_and_outputs_green():
    a, b, q = seed_example()
    colours = {}
    for group in ElementTree.fromstring(draw(q, {"a": a, "b": b}).svg).iter(f"{SVG}g"):
        if group.get("class"):
            red, green, blue = (int(group.find(f"{SVG}rect").get("fill")[at : at + 2], 16) for at in (1, 3, 5))
            colours[group.get("class")] = (red, green, blue)
    red, green, blue = colours["leaf"]
    assert blue > green > red
    assert len(set(colours["function"])) == len(set(colours["accumulate"])) == 1
    red, green, blue = colours["output"]
    assert green > max(red, blue)


def test_names_are_escaped():
    a = torch.ones(2, requires_grad=True)
    name = 'layers["<first>"] & more\\'
    drawing = draw(a.exp(), {name: a})
    assert any(name in texts for _, _, texts in boxes_of(drawing.svg))
    assert r'label="layers[\"<first>\"] & more\\' in drawing.dot


def test_texts_stay_inside_of_their_boxes():
    out, parameters = block_model(3)
    for (left, _, right, _), _, texts in boxes_of(draw(out, parameters, max_boxes=6).svg):
        assert all(len(text) * 4.0 < right - left for text in texts)
