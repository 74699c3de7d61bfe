"""What is to be seen: boxes with text, and arrows between them along the forward direction."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from .cost import total
from .fold import Folded, Unit, fold, functions_of, inner_leaves, pattern_names
from .graph import Graph, Node, Saved, Shape

_MOST_LINES = 6  # of details in a box


@dataclass(slots=True)
class Box:
    """`style` is "leaf", "accumulate", "function", "module" or "output"; `count` above 1 marks a repetition."""

    style: str
    title: str
    details: list[str] = field(default_factory=list)
    count: int = 1

    @property
    def heading(self) -> str:
        return f"{self.title} × {self.count:,}" if self.count > 1 else self.title


@dataclass(slots=True)
class Arrow:
    """From the box that computed a tensor to one that uses it."""

    source: int
    target: int
    label: str = ""


@dataclass(slots=True)
class Picture:
    boxes: list[Box]
    arrows: list[Arrow]
    caption: str


def compose(graph: Graph, limit: int, show_shapes: bool, show_saved: bool) -> Picture:
    """The boxes and arrows of a graph: each node its own box if `limit` allows, else the accumulations left out, else
    folded."""
    if len(graph.nodes) <= limit:
        folded = Folded(graph.of_kind("function"), [])
        folded.units = [Unit(position, position) for position in range(len(folded.order))]
        accumulations = graph.of_kind("accumulate")
    else:
        folded, accumulations = fold(graph, limit), []
    return _Composer(graph, folded, set(accumulations), show_shapes, show_saved).picture()


class _Composer:
    def __init__(
        self, graph: Graph, folded: Folded, accumulations: set[int], show_shapes: bool, show_saved: bool
    ) -> None:
        self.graph = graph
        self.folded = folded
        self.show_shapes = show_shapes
        self.show_saved = show_saved
        self.inner = inner_leaves(graph, folded)
        self.unit_of = folded.unit_of()
        self.accumulations = accumulations
        self.boxes: list[Box] = []
        self.box_of: dict[int, int] = {}  # a node's box; a unit has one for all its functions

    def picture(self) -> Picture:
        leaves_of_unit: dict[int, list[Node]] = {}
        for leaf, home in self.inner.items():
            leaves_of_unit.setdefault(home, []).append(self.graph.nodes[leaf])
        for index, node in enumerate(self.graph.nodes):
            if node.kind == "function":
                self._place_function(index, leaves_of_unit)
            elif node.kind == "accumulate":
                if index in self.accumulations:
                    self._place([index], Box("accumulate", node.name, self._costs([index])))
            elif index not in self.inner:
                self._place([index], self._tensor_box(node))
        return Picture(self.boxes, self._arrows(), self._caption())

    def _place(self, members: Iterable[int], box: Box) -> None:
        for index in members:
            self.box_of[index] = len(self.boxes)
        self.boxes.append(box)

    def _place_function(self, index: int, leaves_of_unit: dict[int, list[Node]]) -> None:
        number = self.unit_of[index]
        unit = self.folded.units[number]
        if index != self.folded.order[unit.first]:  # placed with the first of its unit
            return
        if unit.is_function:
            node = self.graph.nodes[index]
            box = Box("function", node.name, _saved_lines(node.saved) if self.show_saved else [])
            box.details += self._costs([index])
        else:
            box = self._unit_box(unit, leaves_of_unit.get(number, []))
        self._place(self.folded.members(unit), box)

    def _tensor_box(self, node: Node) -> Box:
        shape = shape_text(node.shapes[0])
        title = node.name or shape
        details = [shape] if node.name and self.show_shapes else []
        if node.dtype != "float32" and self.show_shapes:
            details = [" ".join([*details, node.dtype])]
        return Box(node.kind, title, details)

    def _unit_box(self, unit: Unit, leaves: list[Node]) -> Box:
        counts = functions_of(self.graph, self.folded, unit)
        names = _runs(pattern_names(self.graph, self.folded, unit))
        if unit.title:
            title, details = unit.title, _counted(counts)
        elif len(names) == 1:
            title, details = names[0], []
        else:
            title = f"{counts.total() // unit.count:,} functions"
            details = names if unit.count > 1 else _counted(counts)
        details = _shortened(details)
        if leaves:
            numbers = sum(_size(leaf.shapes[0]) for leaf in leaves)
            details.append(f"{_plural(len(leaves), 'leaf', 'leaves')}, {_plural(numbers, 'number')}")
        saved = [saved for index in self.folded.members(unit) for saved in self.graph.nodes[index].saved]
        if saved and self.show_saved:
            details.append(f"saves {_plural(len(saved), 'tensor')}, {_total(saved)}")
        details += self._costs(self.folded.members(unit))
        return Box("module" if unit.title else "function", title, details, unit.count)

    def _costs(self, members: Iterable[int]) -> list[str]:
        """What the profiler measured of these nodes together."""
        return total([self.graph.nodes[index].cost for index in members]).lines(bytes_text)

    def _arrows(self) -> list[Arrow]:
        tensors: dict[tuple[int, int], dict[tuple[int, int], Shape | None]] = {}
        for index, node in enumerate(self.graph.nodes):
            if index not in self.box_of:
                continue
            for source, slot in node.inputs:
                shape = self.graph.nodes[source].shape(slot)
                if source not in self.box_of and self.graph.nodes[source].kind == "accumulate":
                    source = self.graph.nodes[source].inputs[-1][0]
                if source not in self.box_of or self.box_of[source] == self.box_of[index]:
                    continue
                pair = self.box_of[source], self.box_of[index]
                tensors.setdefault(pair, {})[source, slot] = shape
        return [Arrow(*pair, self._label(*pair, list(moved.values()))) for pair, moved in tensors.items()]

    def _label(self, source: int, target: int, shapes: list[Shape | None]) -> str:
        told = self.boxes[source].style in ("leaf", "accumulate") or self.boxes[target].style == "output"
        if told or not self.show_shapes:  # the leaf's or the output's box says it
            return ""
        known = Counter(shape_text(shape) for shape in shapes if shape is not None)
        return ", ".join(text if count == 1 else f"{count} × {text}" for text, count in known.most_common(2)) + (
            ", …" if len(known) > 2 else ""
        )

    def _caption(self) -> str:
        functions = [node for node in self.graph.nodes if node.kind == "function"]
        leaves = self.graph.of_kind("leaf")
        saved = [saved for node in functions for saved in node.saved]
        parts = [_plural(len(functions), "function"), _plural(len(leaves), "leaf", "leaves")]
        if saved and self.show_saved:
            parts.append(f"{_total(saved)} saved for backward")
        parts += total([node.cost for node in self.graph.nodes]).lines(bytes_text)
        return " · ".join(parts)


# ---- wording ---------------------------------------------------------------------------------------------------------


def shape_text(shape: Shape | None) -> str:
    return "" if shape is None else str(shape).replace(",)", ")") if shape else "scalar"


def bytes_text(size: int) -> str:
    if size < 1000:
        return f"{size} B"
    for unit in ("kB", "MB", "GB", "TB"):
        value = size / 1000 ** ("kB", "MB", "GB", "TB").index(unit) / 1000
        if value < 999.95 or unit == "TB":
            break
    return f"{value:.1f} {unit}"


def _size(shape: Shape | None) -> int:
    size = 1
    for length in shape or ():
        size *= length
    return size


def _plural(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _total(saved: Iterable[Saved]) -> str:
    kept = [tensor for tensor in saved if tensor.shape is not None]
    return bytes_text(sum(tensor.bytes for tensor in kept)) if kept else "freed"


def _saved_lines(saved: list[Saved]) -> list[str]:
    lines = [
        f"{tensor.label} freed"
        if tensor.shape is None
        else f"saves {tensor.label} {shape_text(tensor.shape)}, {bytes_text(tensor.bytes)}"
        for tensor in saved
    ]
    if len(lines) > _MOST_LINES:
        shown = _MOST_LINES - 1
        lines[shown:] = [f"and {len(lines) - shown} more, {_total(saved[shown:])}"]
    return lines


def _counted(counts: Counter[str]) -> list[str]:
    return [name if count == 1 else f"{count:,} × {name}" for name, count in counts.most_common()]


def _runs(names: list[str]) -> list[str]:
    """Neighbours of the same name as one: `3 × AddBackward0`."""
    runs: list[tuple[str, int]] = []
    for name in names:
        if runs and runs[-1][0] == name:
            runs[-1] = (name, runs[-1][1] + 1)
        else:
            runs.append((name, 1))
    return [name if count == 1 else f"{count} × {name}" for name, count in runs]


def _shortened(lines: list[str]) -> list[str]:
    return (
        lines if len(lines) <= _MOST_LINES else [*lines[: _MOST_LINES - 1], f"and {len(lines) - _MOST_LINES + 1} more"]
    )
