"""Folds a large graph into few units: by module, by repetition, and by length where nothing repeats.

Every unit is an interval of the graph's order of functions, so the graph of units has no cycles.  Leaves are not part
of that order: one that a single unit uses is drawn inside of it, one that several use stands alone.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from .graph import Graph

_LONGEST_PERIOD = 512  # functions in a repeated pattern
_TOO_FEW = 2  # modules: a repetition of smaller ones tells more
_FAN_OUT = 4  # a result used more often than this is a common input, at whatever distance


@dataclass(slots=True)
class Unit:
    """What becomes one box: a function, a module's functions, or a pattern of units that repeats."""

    first: int  # interval of positions in the order of functions
    last: int
    title: str = ""  # the module's path; "" for a function and for a pattern
    pattern: "list[Unit]" = field(default_factory=list)  # one period of a repetition, or what a segment is made of
    count: int = 1  # how often the pattern repeats

    @property
    def is_function(self) -> bool:
        return self.first == self.last and not self.title and not self.pattern


@dataclass(slots=True)
class Folded:
    """Units over `order`, the indices of the graph's functions."""

    order: list[int]
    units: list[Unit]

    def members(self, unit: Unit) -> list[int]:
        return self.order[unit.first : unit.last + 1]

    def unit_of(self) -> dict[int, int]:
        """The number of the unit that holds each function."""
        return {index: number for number, unit in enumerate(self.units) for index in self.members(unit)}


def fold(graph: Graph, limit: int) -> Folded:
    """Units whose boxes, with the leaves and outputs beside them, number at most `limit` if that can be."""
    order = graph.of_kind("function")
    functions = Folded(order, [Unit(position, position) for position in range(len(order))])
    if count_boxes(graph, functions) <= limit:
        return functions
    modules = _modules(graph, order)
    by_module = [
        Folded(order, _module_units(modules, depth)) for depth in range(max(map(len, modules), default=0), 0, -1)
    ]
    fitting = [folded for folded in by_module if count_boxes(graph, folded) <= limit]
    if fitting and len(fitting[0].units) > _TOO_FEW:
        return fitting[0]
    for folded in [*by_module, functions]:
        for with_shapes in (True, False):
            repeated = _fold_repetitions(graph, folded, limit, with_shapes)
            if count_boxes(graph, repeated) <= limit:
                return repeated
    return fitting[0] if fitting else _segments(graph, folded, limit)


def count_boxes(graph: Graph, folded: Folded) -> int:
    outputs = len(graph.of_kind("output"))
    return len(folded.units) + outputs + len(graph.of_kind("leaf")) - len(inner_leaves(graph, folded))


def inner_leaves(graph: Graph, folded: Folded) -> dict[int, int]:
    """The leaves that are drawn inside of a unit, and which: used by it alone, where every round has its own."""
    homes = {leaf: next(iter(units)) for leaf, units in _leaf_homes(graph, folded).items() if len(units) == 1}
    numbers = Counter(homes.values())

    def holds_leaves(number: int) -> bool:
        unit = folded.units[number]
        return not unit.is_function and numbers[number] >= unit.count

    return {leaf: home for leaf, home in homes.items() if home >= 0 and holds_leaves(home)}


def _leaf_homes(graph: Graph, folded: Folded) -> dict[int, set[int]]:
    """The units that use each leaf; -1 stands for an output."""
    unit_of = folded.unit_of()
    homes: dict[int, set[int]] = {}
    for leaf, user in leaf_uses(graph):
        homes.setdefault(leaf, set()).add(unit_of.get(user, -1))
    return homes


def leaf_uses(graph: Graph) -> Iterable[tuple[int, int]]:
    """Pairs of a leaf and a function (or output) that uses it, through its accumulation or directly."""
    nodes = graph.nodes
    for index, node in enumerate(nodes):
        if node.kind in ("function", "output"):
            for source, _ in node.inputs:
                if nodes[source].kind == "accumulate":
                    source = nodes[source].inputs[-1][0]
                if nodes[source].kind == "leaf":
                    yield source, index


# ---- by module -------------------------------------------------------------------------------------------------------


def _modules(graph: Graph, order: Sequence[int]) -> list[tuple[str, ...]]:
    """The module of each function: that of its parameters' names, else that of the latest result it uses."""
    own: dict[int, tuple[str, ...]] = {}
    for leaf, user in leaf_uses(graph):
        path = tuple(graph.nodes[leaf].name.split(".")[:-1])
        if path:
            own.setdefault(user, path)
    found: dict[int, tuple[str, ...]] = {}
    for index in order:
        path = own.get(index, ())
        if not path:
            sources = [source for source, _ in graph.nodes[index].inputs if found.get(source)]
            path = found[max(sources)] if sources else ()
        found[index] = path
    return _before_the_first([found[index] for index in order])


def _before_the_first(paths: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """What is done to the inputs before any parameter is met belongs to the first module."""
    first = next((path for path in paths if path), ())
    return [path or first for path in paths]


def _module_units(modules: Sequence[tuple[str, ...]], depth: int) -> list[Unit]:
    units: list[Unit] = []
    for position, path in enumerate(modules):
        title = ".".join(path[:depth])
        if units and units[-1].title == title:
            units[-1].last = position
        else:
            units.append(Unit(position, position, title))
    return units


# ---- by repetition ---------------------------------------------------------------------------------------------------


def _fold_repetitions(graph: Graph, folded: Folded, limit: int, with_shapes: bool) -> Folded:
    """Replaces the repetition that saves most boxes, again and again, until few enough are left."""
    units = folded.units
    while count_boxes(graph, folded) > limit:
        best = _best_repetition(_tokens(graph, folded, with_shapes))
        if best is None:
            break
        start, period, count = best
        end = start + period * count
        pattern = units[start : start + period]
        units = [*units[:start], Unit(units[start].first, units[end - 1].last, "", pattern, count), *units[end:]]
        folded = Folded(folded.order, units)
    return folded


def _best_repetition(tokens: Sequence[tuple[Hashable, Hashable]]) -> tuple[int, int, int] | None:
    """Start, period and count of the repetition that replaces most units by one; the shorter period if equal."""
    codes: dict[Hashable, int] = {}
    sequence = np.array([codes.setdefault(token, len(codes)) for token in tokens])
    best, best_saving = None, 0
    for period in range(1, min(len(sequence) // 2, _LONGEST_PERIOD) + 1):
        equal = np.concatenate(([False], sequence[period:] == sequence[:-period], [False]))
        starts, ends = np.flatnonzero(equal[1:] != equal[:-1]).reshape(-1, 2).T
        counts = (ends - starts) // period + 1
        savings = np.where(counts > 1, counts * period - 1, 0)
        if len(savings) and savings.max() > best_saving:
            at = int(savings.argmax())
            best, best_saving = (int(starts[at]), int(ends[at]) + period, period), int(savings[at])
    if best is None:
        return None
    start, end, period = best
    start = _with_the_first_round(tokens, start, period)
    return start, period, (end - start) // period


def _with_the_first_round(tokens: Sequence[tuple[Hashable, Hashable]], start: int, period: int) -> int:
    """An earlier start: the first round does the same as the others, but some inputs come from elsewhere."""
    earliest = max(start - period, 0)
    while start > earliest and tokens[start - 1][0] == tokens[start - 1 + period][0]:
        start -= 1
    return start


def _tokens(graph: Graph, folded: Folded, with_shapes: bool) -> list[tuple[Hashable, Hashable]]:
    """What each unit does, and from what distances its inputs come: equal pairs can belong to one repetition."""
    unit_of = folded.unit_of()
    shared = {leaf for leaf, homes in _leaf_homes(graph, folded).items() if len(homes) > 1}
    users = graph.users()

    def token(number: int) -> tuple[Hashable, Hashable]:
        unit = folded.units[number]
        sources: list[Hashable] = []
        for index in folded.members(unit):
            for source, slot in graph.nodes[index].inputs:
                node = graph.nodes[source]
                if node.kind == "accumulate":
                    leaf = node.inputs[-1][0]
                    sources.append(("leaf", leaf if leaf in shared else node.shapes[0] if with_shapes else None))
                elif source in unit_of and unit_of[source] != number:
                    far = len(users[source]) > _FAN_OUT
                    sources.append(("common", 0) if far else (number - unit_of[source], slot))
        return _kind(graph, folded, unit, with_shapes), tuple(sources)

    return [token(number) for number in range(len(folded.units))]


def _kind(graph: Graph, folded: Folded, unit: Unit, with_shapes: bool) -> Hashable:
    """What a unit does, whatever it is called."""
    if unit.pattern:
        return unit.count, tuple(_kind(graph, folded, part, with_shapes) for part in unit.pattern)
    nodes = [graph.nodes[index] for index in folded.members(unit)]
    return tuple((node.name, tuple(node.shapes) if with_shapes else None) for node in nodes)


# ---- by length -------------------------------------------------------------------------------------------------------


def _segments(graph: Graph, folded: Folded, limit: int) -> Folded:
    """Where nothing else helps: intervals of equal length, as many as there is room for."""
    room = max(limit - len(graph.of_kind("output")), 1)
    for number in range(room, 0, -max(room // 8, 1)):
        length = -(-len(folded.units) // number)
        starts = range(0, len(folded.units), length)
        parts = [folded.units[start : start + length] for start in starts]
        cut = Folded(folded.order, [Unit(part[0].first, part[-1].last, "", part) for part in parts])
        if count_boxes(graph, cut) <= limit:
            break
    return cut


# ---- what a unit is called -------------------------------------------------------------------------------------------


def functions_of(graph: Graph, folded: Folded, unit: Unit) -> Counter[str]:
    """How many functions of each name a unit holds, in the order of their first appearance."""
    return Counter(graph.nodes[index].name for index in folded.members(unit))


def pattern_names(graph: Graph, folded: Folded, unit: Unit) -> list[str]:
    """The parts of a pattern, in order; numbers in the names of modules, which vary, are shown as `*`."""
    names: list[str] = []
    for part in unit.pattern:
        if part.title:
            names.append(re.sub(r"(?<![^.])\d+(?![^.])", "*", part.title))
        elif part.pattern:
            inner = ", ".join(pattern_names(graph, folded, part))
            names.append(f"({inner}) × {part.count}" if part.count > 1 else inner)
        else:
            names.append(graph.nodes[folded.order[part.first]].name)
    return names
