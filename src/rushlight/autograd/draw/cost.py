"""What the profiler measured of a graph's nodes: when they were recorded (forward), and when they ran (backward)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rushlight.autograd.profiler_util import EventList, format_time

__all__ = ["Cost", "Costs"]


@dataclass(slots=True)
class Cost:
    """Microseconds of forward and backward, and the bytes that each allocated and kept at its end."""

    forward: float = 0.0
    backward: float = 0.0
    forward_bytes: int = 0
    backward_bytes: int = 0

    def add(self, other: "Cost") -> None:
        self.forward += other.forward
        self.backward += other.backward
        self.forward_bytes += other.forward_bytes
        self.backward_bytes += other.backward_bytes

    def lines(self, bytes_text: Any) -> list[str]:
        """What the picture says: nothing of a direction that was not measured."""
        return [
            f"{direction} {format_time(time)}, {_signed(size, bytes_text)}"
            for direction, time, size in (
                ("forward", self.forward, self.forward_bytes),
                ("backward", self.backward, self.backward_bytes),
            )
            if time
        ]


class Costs:
    """The costs by node: a profiler's (of ``autograd.profiler`` or ``profiler``), or those of its list of events."""

    def __init__(self, profile: Any) -> None:
        self.by_node: dict[tuple[int, int], Cost] = {}
        for event in _events(profile):
            if event.sequence_nr < 0:
                continue
            cost = self.by_node.setdefault((event.sequence_nr, event.node_id), Cost())
            if event.kind == "node":
                cost.backward += event.cpu_time_total
                cost.backward_bytes += event.cpu_memory_usage
            elif not _inside_of_same(event):
                cost.forward += event.cpu_time_total
                cost.forward_bytes += event.cpu_memory_usage

    def of(self, function: Any) -> Cost | None:
        """The cost of a backward function, None where the profiler met it neither in forward nor in backward."""
        return self.by_node.get((function._sequence_nr(), id(function)))


def total(costs: Iterable[Cost | None]) -> Cost:
    result = Cost()
    for cost in costs:
        if cost is not None:
            result.add(cost)
    return result


def _events(profile: Any) -> EventList:
    if isinstance(profile, EventList):
        return profile
    inner = getattr(profile, "profiler", profile)  # profiler.profile holds one of autograd's
    events = getattr(inner, "function_events", None)
    if not isinstance(events, EventList):
        raise TypeError(
            "expected profile to be a finished autograd.profiler.profile or profiler.profile, or its events, found "
            f"{type(profile).__name__}"
        )
    return events


def _inside_of_same(event: Any) -> bool:
    """Is this an operator within one that recorded the same node?"""
    parent = event.cpu_parent
    return parent is not None and (parent.sequence_nr, parent.node_id) == (event.sequence_nr, event.node_id)


def _signed(size: int, bytes_text: Any) -> str:
    return f"{'+' if size >= 0 else '-'}{bytes_text(abs(size))}"
