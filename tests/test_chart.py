"""Line charts: every point is placed where its numbers say."""

import re
from xml.etree import ElementTree

import pytest

from rushlight._chart import line_chart, round_ticks


def lines_of(svg):
    root = ElementTree.fromstring(svg)
    return [
        [tuple(map(float, point.split(","))) for point in line.get("points").split()]
        for line in root.iter("{http://www.w3.org/2000/svg}polyline")
    ]


def test_points_stand_in_proportion():
    first, second = lines_of(line_chart({"a": [(0, 0), (5, 5), (10, 10)], "b": [(0, 10), (10, 0)]}, "", "", ""))
    (left, bottom), middle, (right, top) = first
    assert left < right and top < bottom
    assert middle == ((left + right) / 2, (top + bottom) / 2)
    assert second == [(left, top), (right, bottom)]


def test_texts_are_there_and_escaped():
    svg = line_chart({"a < b": [(1, 2)]}, "title & more", "x", "y")
    texts = [element.text for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert {"title & more", "x", "y", "a < b"} <= set(texts)
    assert re.search(r">2<", svg)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 2.1, [0, 0.5, 1, 1.5, 2, 2.5]),
        (1, 20, [0, 5, 10, 15, 20]),
        (-3e-7, 3e-7, [-3e-7, -2e-7, -1e-7, 0, 1e-7, 2e-7, 3e-7]),
        (4, 4, [3.4, 3.6, 3.8, 4, 4.2, 4.4, 4.6]),
        (0, 1e9, [0, 2e8, 4e8, 6e8, 8e8, 1e9]),
    ],
)
def test_ticks_are_round_and_enclose(low, high, ticks):
    found = round_ticks(low, high)
    assert found == pytest.approx(ticks, abs=1e-12)


@pytest.mark.parametrize("series", [{}, {"a": []}, {"a": [(0, float("nan"))]}, {"a": [(float("inf"), 1)]}])
def test_what_cannot_be_placed_is_refused(series):
    with pytest.raises(ValueError, match="expected"):
        line_chart(series, "", "", "")
