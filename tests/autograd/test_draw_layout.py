"""Placing boxes in layers: properties that hold for every graph."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from rushlight.autograd.draw.layout import BOX_GAP, RANK_GAP, lay_out


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 14))
    sizes = draw(st.lists(st.tuples(st.floats(20, 200), st.floats(20, 90)), min_size=count, max_size=count))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    edges = draw(st.lists(pairs, max_size=30))
    return sizes, list(dict.fromkeys((min(pair), max(pair)) for pair in edges if pair[0] != pair[1]))


def corners(size, centre):
    return centre[0] - size[0] / 2, centre[1] - size[1] / 2, centre[0] + size[0] / 2, centre[1] + size[1] / 2


@given(graphs())
@settings(max_examples=200, deadline=None)
def test_boxes_are_apart_and_inside_and_users_below(graph):
    sizes, edges = graph
    layout = lay_out(sizes, edges)
    boxes = [corners(size, centre) for size, centre in zip(sizes, layout.centres, strict=True)]
    for left, top, right, bottom in boxes:
        assert left >= -1e-6 and top >= -1e-6
        assert right <= layout.width + 1e-6 and bottom <= layout.height + 1e-6
    for index, box in enumerate(boxes):
        for other in boxes[:index]:
            beside = box[0] - other[2] >= BOX_GAP - 1e-6 or other[0] - box[2] >= BOX_GAP - 1e-6
            above = box[1] >= other[3] or other[1] >= box[3]
            assert beside or above
    for source, target in edges:
        assert boxes[target][1] - boxes[source][3] >= RANK_GAP - 1e-6


@given(graphs())
@settings(max_examples=100, deadline=None)
def test_routes_run_down_from_box_to_box_and_pass_no_other(graph):
    sizes, edges = graph
    layout = lay_out(sizes, edges)
    boxes = [corners(size, centre) for size, centre in zip(sizes, layout.centres, strict=True)]
    for (source, target), route in zip(edges, layout.routes, strict=True):
        assert route[0][1] == boxes[source][3] and boxes[source][0] <= route[0][0] <= boxes[source][2]
        assert route[-1][1] == boxes[target][1] and boxes[target][0] <= route[-1][0] <= boxes[target][2]
        assert all(upper[1] <= lower[1] for upper, lower in pairwise(route))
        for index, (left, top, right, bottom) in enumerate(boxes):
            if index not in (source, target):
                assert not any(left < x < right and top < y < bottom for x, y in route)


@given(graphs())
@settings(max_examples=30, deadline=None)
def test_the_same_graph_is_placed_the_same(graph):
    assert lay_out(*graph) == lay_out(*graph)


def test_a_tree_has_no_crossings_and_a_chain_is_straight():
    layout = lay_out([(40, 20)] * 7, [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6)])
    xs = [x for x, _ in layout.centres]
    assert xs[0] < xs[1] < xs[2] < xs[3]
    assert xs[6] == (xs[4] + xs[5]) / 2
    chain = lay_out([(40, 20), (90, 30), (20, 20)], [(0, 1), (1, 2)])
    assert chain.centres[0][1] < chain.centres[1][1] < chain.centres[2][1]
    assert len({x for route in chain.routes for x, _ in route}) == 1


def test_a_box_with_slack_stands_close_to_its_user():
    layout = lay_out([(40, 20)] * 5, [(0, 1), (1, 2), (2, 4), (3, 4)])
    assert layout.centres[3][1] == layout.centres[2][1]


def test_crossings_are_removed_where_they_can_be():
    layout = lay_out([(40, 20)] * 6, [(0, 5), (1, 4), (2, 3)])
    xs = [x for x, _ in layout.centres]
    order = sorted(range(3), key=xs.__getitem__)
    assert sorted(range(3, 6), key=xs.__getitem__) == [5 - vertex for vertex in order]


def test_nothing_has_no_size():
    layout = lay_out([], [])
    assert (layout.width, layout.height, layout.centres, layout.routes) == (0, 0, [], [])
