"""Layered drawing of an acyclic graph: ranks, order within ranks, positions, routes.

The framework is Sugiyama's: K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system
structures", 1981.  It is our own because the one pure-Python package for it, grandalf, was last released in January
2023 under the GPL or EPL, and keeps no room for labels.  Positions within ranks are those of `position.py`.
Everything is decided by the order of the input, so the same graph always gives the same drawing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from .position import horizontal_positions

RANK_GAP = 46.0  # height between ranks, for arrows and their labels
BOX_GAP = 26.0  # least width between boxes of a rank
LANE_GAP = 14.0  # least width beside an arrow that passes a rank
SWEEPS = 12  # of crossing reduction, half of them down and half up

Point = tuple[float, float]


@dataclass(slots=True)
class Layout:
    """Centres of the boxes and, for each edge, the points which its line passes, in drawing order."""

    width: float
    height: float
    centres: list[Point]
    routes: list[list[Point]]


@dataclass(slots=True)
class Layers:
    """Vertices by rank: the boxes, and a bend for every rank that an edge passes between its ends.

    Vertices below `boxes` are the boxes; `chains` holds, for each edge, its vertices from source to target.
    """

    boxes: int
    ranks: list[list[int]]
    rank_of: list[int]
    chains: list[list[int]]
    above: list[list[int]] = field(default_factory=list)
    below: list[list[int]] = field(default_factory=list)


def lay_out(sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]]) -> Layout:
    """Places boxes of the given widths and heights.

    `edges` are pairs (source, target) with source before target in the order of the boxes, each pair once.
    """
    if not sizes:
        return Layout(0.0, 0.0, [], [])
    layers = _layers(len(sizes), edges, _ranks(len(sizes), edges))
    _reduce_crossings(layers)
    widths = [size[0] for size in sizes] + [0.0] * (len(layers.rank_of) - len(sizes))
    xs = horizontal_positions(layers.ranks, layers.above, layers.below, len(sizes), widths, BOX_GAP, LANE_GAP)
    left = min(x - width / 2 for x, width in zip(xs, widths, strict=True))
    right = max(x + width / 2 for x, width in zip(xs, widths, strict=True))
    xs = [x - left for x in xs]
    tops, bottoms = _rank_bands(layers, sizes)
    centres = [(xs[box], (tops[layers.rank_of[box]] + bottoms[layers.rank_of[box]]) / 2) for box in range(len(sizes))]
    routes = _routes(layers, sizes, centres, xs, tops, bottoms)
    return Layout(right - left, bottoms[-1], centres, routes)


# ---- ranks -----------------------------------------------------------------------------------------------------------


def _ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Every target below its sources, as few ranks as possible, and boxes with slack close to those that use them."""
    sources: list[list[int]] = [[] for _ in range(count)]
    targets: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        sources[target].append(source)
        targets[source].append(target)
    ranks = [0] * count
    for box in range(count):
        ranks[box] = max((ranks[source] + 1 for source in sources[box]), default=0)
    for box in reversed(range(count)):
        if targets[box] and len(targets[box]) >= len(sources[box]):
            ranks[box] = min(ranks[target] for target in targets[box]) - 1
    return ranks


def _layers(count: int, edges: Sequence[tuple[int, int]], ranks: list[int]) -> Layers:
    layers = Layers(count, [[] for _ in range(max(ranks) + 1)], list(ranks), [])
    for source, target in edges:
        chain = [source]
        for rank in range(ranks[source] + 1, ranks[target]):
            chain.append(len(layers.rank_of))
            layers.rank_of.append(rank)
        layers.chains.append([*chain, target])
    layers.above = [[] for _ in layers.rank_of]
    layers.below = [[] for _ in layers.rank_of]
    for chain in layers.chains:
        for upper, lower in pairwise(chain):
            layers.below[upper].append(lower)
            layers.above[lower].append(upper)
    for vertex in _from_outputs_to_inputs(layers):
        layers.ranks[layers.rank_of[vertex]].append(vertex)
    return layers


def _from_outputs_to_inputs(layers: Layers) -> list[int]:
    """All vertices, depth first from the boxes without users: the inputs of a box from left to right, as given."""
    order: list[int] = []
    seen = [False] * len(layers.rank_of)
    stack = [box for box in reversed(range(layers.boxes)) if not layers.below[box]]
    while stack:
        vertex = stack.pop()
        if not seen[vertex]:
            seen[vertex] = True
            order.append(vertex)
            stack.extend(reversed(layers.above[vertex]))
    return order


# ---- order within ranks ----------------------------------------------------------------------------------------------


def _reduce_crossings(layers: Layers) -> None:
    """Sorts each rank by the medians of its neighbours' places, down and up in turn, and keeps the best order met."""
    best = [list(rank) for rank in layers.ranks]
    fewest = _all_crossings(layers)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        down = sweep % 2 == 0
        neighbours = layers.above if down else layers.below
        for number in range(1, len(layers.ranks)) if down else range(len(layers.ranks) - 2, -1, -1):
            fixed = layers.ranks[number - 1 if down else number + 1]
            _sort_by_median(layers.ranks[number], fixed, neighbours)
            _exchange_neighbours(layers.ranks[number], fixed, neighbours)
        crossings = _all_crossings(layers)
        if crossings < fewest:
            fewest, best = crossings, [list(rank) for rank in layers.ranks]
    layers.ranks = best


def _sort_by_median(rank: list[int], fixed: list[int], neighbours: list[list[int]]) -> None:
    """Vertices without neighbours in the fixed rank keep their places."""
    place = {vertex: index for index, vertex in enumerate(fixed)}
    medians: dict[int, float] = {}
    for vertex in rank:
        places = sorted(place[neighbour] for neighbour in neighbours[vertex])
        if places:
            middle = len(places) // 2
            medians[vertex] = places[middle] if len(places) % 2 else (places[middle - 1] + places[middle]) / 2
    movable = iter(sorted(medians, key=medians.__getitem__))  # a stable sort: equal medians keep their order
    rank[:] = [next(movable) if vertex in medians else vertex for vertex in list(rank)]


def _exchange_neighbours(rank: list[int], fixed: list[int], neighbours: list[list[int]]) -> None:
    """Exchanges vertices that stand side by side while that removes crossings."""
    place = {vertex: index for index, vertex in enumerate(fixed)}
    places = {vertex: sorted(place[neighbour] for neighbour in neighbours[vertex]) for vertex in rank}
    improved = True
    while improved:
        improved = False
        for index in range(len(rank) - 1):
            left, right = rank[index], rank[index + 1]
            if _crossings(places[left], places[right]) > _crossings(places[right], places[left]):
                rank[index], rank[index + 1] = right, left
                improved = True


def _crossings(left: list[int], right: list[int]) -> int:
    """Crossings between the edges of two vertices, given the sorted places of their neighbours."""
    total = passed = 0
    for place in left:
        while passed < len(right) and right[passed] < place:
            passed += 1
        total += passed
    return total


def _all_crossings(layers: Layers) -> int:
    return sum(
        _rank_crossings(layers.ranks[number], layers.ranks[number - 1], layers.above)
        for number in range(1, len(layers.ranks))
    )


def _rank_crossings(rank: list[int], fixed: list[int], neighbours: list[list[int]]) -> int:
    """Inversions among the places of all edges' ends, counted with a binary indexed tree."""
    place = {vertex: index for index, vertex in enumerate(fixed)}
    tree = [0] * (len(fixed) + 1)
    total = inserted = 0
    for vertex in rank:
        places = [place[neighbour] for neighbour in neighbours[vertex]]
        for end in places:
            before, index = 0, end + 1
            while index:
                before += tree[index]
                index &= index - 1
            total += inserted - before
        for end in places:
            inserted += 1
            index = end + 1
            while index <= len(fixed):
                tree[index] += 1
                index += index & -index
    return total


# ---- vertical positions and routes -----------------------------------------------------------------------------------


def _rank_bands(layers: Layers, sizes: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """The upper and lower edge of each rank."""
    tops, bottoms, y = [], [], 0.0
    for rank in layers.ranks:
        height = max((sizes[vertex][1] for vertex in rank if vertex < layers.boxes), default=0.0)
        tops.append(y)
        bottoms.append(y + height)
        y += height + RANK_GAP
    return tops, bottoms


def _routes(
    layers: Layers,
    sizes: Sequence[tuple[float, float]],
    centres: list[Point],
    xs: list[float],
    tops: list[float],
    bottoms: list[float],
) -> list[list[Point]]:
    """From the lower edge of the source, straight through the ranks passed, to the upper edge of the target."""
    chains = layers.chains
    enter = _ports(sizes, xs, [(chain[-1], xs[chain[-2]]) for chain in chains])
    first_x = [enter[edge] if len(chain) == 2 else xs[chain[1]] for edge, chain in enumerate(chains)]
    leave = _ports(sizes, xs, [(chain[0], x) for chain, x in zip(chains, first_x, strict=True)])
    routes = []
    for edge, chain in enumerate(layers.chains):
        source, target = chain[0], chain[-1]
        route = [(leave[edge], centres[source][1] + sizes[source][1] / 2)]
        bottom = bottoms[layers.rank_of[source]]
        if bottom > route[0][1]:
            route.append((leave[edge], bottom))
        for bend in chain[1:-1]:
            rank = layers.rank_of[bend]
            route += [(xs[bend], tops[rank]), (xs[bend], bottoms[rank])]
        end = (enter[edge], centres[target][1] - sizes[target][1] / 2)
        top = tops[layers.rank_of[target]]
        routes.append([*route, (enter[edge], top), end] if top < end[1] else [*route, end])
    return routes


def _ports(sizes: Sequence[tuple[float, float]], xs: list[float], ends: list[tuple[int, float]]) -> list[float]:
    """Where on the border of its box each edge ends, given the box and where the edge comes from or goes to.

    A single edge runs straight if the box is wide enough; several stand side by side, in the order of their aims.
    """
    at_box: dict[int, list[int]] = {}
    for edge, (box, _) in enumerate(ends):
        at_box.setdefault(box, []).append(edge)
    ports = [0.0] * len(ends)
    for box, edges in at_box.items():
        reach = sizes[box][0] * 0.32
        edges.sort(key=lambda edge: ends[edge][1])
        step = min(18.0, 2 * reach / max(len(edges) - 1, 1))
        for number, edge in enumerate(edges):
            ports[edge] = xs[box] + step * (number - (len(edges) - 1) / 2)
        if len(edges) == 1 and abs(ends[edges[0]][1] - xs[box]) <= reach:
            ports[edges[0]] = ends[edges[0]][1]
    return ports
