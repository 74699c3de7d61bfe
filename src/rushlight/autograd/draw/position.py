"""Horizontal positions in a layered drawing, which straighten the arrows that pass several ranks.

After U. Brandes and B. Köpf, "Fast and simple horizontal coordinate assignment", 2001: vertices are joined into
vertical blocks through the medians of their neighbours, in four ways (to the left or right, from above or below); each
way is packed as tightly as it goes, and every vertex gets the mean of the two middle ones of its four positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(slots=True)
class _Problem:
    """One of the four ways: ranks and orders are reversed so that each is "to the left, from above"."""

    ranks: list[list[int]]
    above: list[list[int]]
    place: dict[int, int]
    blocked: set[tuple[int, int]]  # segments that must bend, because a passing arrow crosses them


def horizontal_positions(
    ranks: Sequence[Sequence[int]],
    above: Sequence[Sequence[int]],
    below: Sequence[Sequence[int]],
    boxes: int,
    widths: Sequence[float],
    box_gap: float,
    lane_gap: float,
) -> list[float]:
    """The centre of each vertex; neighbours in a rank stay in order and at least a gap apart.

    Vertices from `boxes` on are the bends of arrows that pass a rank.
    """
    blocked = _segments_that_bend(ranks, above, boxes)
    ways: list[list[float]] = []
    for downwards in (True, False):
        rows = [list(rank) for rank in (ranks if downwards else reversed(ranks))]
        neighbours = [list(of) for of in (above if downwards else below)]
        for leftwards in (True, False):
            if not leftwards:
                rows = [row[::-1] for row in rows]
            place = {vertex: index for row in rows for index, vertex in enumerate(row)}
            problem = _Problem(rows, [sorted(of, key=place.__getitem__) for of in neighbours], place, blocked)
            root = _aligned_blocks(problem)
            xs = _packed(problem, root, boxes, widths, box_gap, lane_gap)
            ways.append(xs if leftwards else [-x for x in xs])
    return _balanced(ways, widths)


def _segments_that_bend(
    ranks: Sequence[Sequence[int]], above: Sequence[Sequence[int]], boxes: int
) -> set[tuple[int, int]]:
    """Segments which cross one between two bends: the latter stay straight."""
    blocked: set[tuple[int, int]] = set()
    for upper, lower in pairwise(ranks):
        place = {vertex: index for index, vertex in enumerate(upper)}
        inner = [
            (place[above[vertex][0]], index)
            for index, vertex in enumerate(lower)
            if vertex >= boxes and above[vertex][0] >= boxes
        ]
        for index, vertex in enumerate(lower):
            for neighbour in above[vertex]:
                if vertex >= boxes and neighbour >= boxes:
                    continue
                start = place[neighbour]
                if any((start - other_start) * (index - other_index) < 0 for other_start, other_index in inner):
                    blocked |= {(neighbour, vertex), (vertex, neighbour)}
    return blocked


def _aligned_blocks(problem: _Problem) -> dict[int, int]:
    """The first vertex of the block of each vertex: blocks run along medians and do not cross each other."""
    root = {vertex: vertex for row in problem.ranks for vertex in row}
    aligned_below: set[int] = set()
    for row in problem.ranks:
        furthest = -1
        for vertex in row:
            neighbours = problem.above[vertex]
            middle = (len(neighbours) - 1) / 2
            for index in dict.fromkeys((int(middle), int(middle + 0.5))) if neighbours else ():
                upper = neighbours[index]
                free = upper not in aligned_below and (upper, vertex) not in problem.blocked
                if free and problem.place[upper] > furthest:
                    root[vertex] = root[upper]
                    aligned_below.add(upper)
                    furthest = problem.place[upper]
                    break
    return root


def _packed(
    problem: _Problem, root: dict[int, int], boxes: int, widths: Sequence[float], box_gap: float, lane_gap: float
) -> list[float]:
    """Blocks as far left as their neighbours let them, then moved right where that shortens what is beside them."""
    apart: dict[tuple[int, int], float] = {}
    for row in problem.ranks:
        for left, right in pairwise(row):
            gap = lane_gap if left >= boxes or right >= boxes else box_gap
            pair = root[left], root[right]
            apart[pair] = max(apart.get(pair, 0.0), (widths[left] + widths[right]) / 2 + gap)
    lefts: dict[int, list[int]] = {}
    rights: dict[int, list[int]] = {}
    for left, right in apart:
        lefts.setdefault(right, []).append(left)
        rights.setdefault(left, []).append(right)
    order = _sorted_blocks(dict.fromkeys(root.values()), lefts, rights)
    x: dict[int, float] = {}
    for block in order:
        x[block] = max((x[left] + apart[left, block] for left in lefts.get(block, ())), default=0.0)
    for block in reversed(order):
        if block in rights:
            x[block] = max(x[block], min(x[right] - apart[block, right] for right in rights[block]))
    return [x[root[vertex]] for vertex in range(len(root))]


def _sorted_blocks(blocks: dict[int, None], lefts: dict[int, list[int]], rights: dict[int, list[int]]) -> list[int]:
    """Every block after those that must stand left of it."""
    waiting = {block: len(lefts.get(block, ())) for block in blocks}
    ready = [block for block in blocks if not waiting[block]]
    order = []
    while ready:
        block = ready.pop()
        order.append(block)
        for right in rights.get(block, ()):
            waiting[right] -= 1
            if not waiting[right]:
                ready.append(right)
    return order


def _balanced(ways: list[list[float]], widths: Sequence[float]) -> list[float]:
    """Shifts the four ways onto the narrowest, then takes the mean of each vertex's two middle positions."""
    lows = [min(x - width / 2 for x, width in zip(xs, widths, strict=True)) for xs in ways]
    highs = [max(x + width / 2 for x, width in zip(xs, widths, strict=True)) for xs in ways]
    narrowest = min(range(len(ways)), key=lambda way: highs[way] - lows[way])
    for way, xs in enumerate(ways):
        leftwards = way % 2 == 0
        shift = lows[narrowest] - lows[way] if leftwards else highs[narrowest] - highs[way]
        ways[way] = [x + shift for x in xs]
    middle = []
    for positions in zip(*ways, strict=True):
        _, second, third, _ = sorted(positions)
        middle.append((second + third) / 2)
    return middle
