"""What the profiler recorded, as events, averages, tables and traces (``torch.autograd.profiler_util``).

Times are in microseconds, memory is the change of what the allocator has handed out. An event's own ("self") time and
memory leave out those of the events inside it.
"""

import enum
import json
import os
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

__all__ = ["DeviceType", "EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]

KINDS = ("operator", "node", "range", "pass")  # as the core numbers them


class Interval:
    """From when to when, in microseconds since the profiler began."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        return self.end - self.start


class DeviceType(enum.Enum):
    """Where an event ran."""

    CPU = 0
    CUDA = 1
    XPU = 12
    MPS = 13
    Meta = 14


class _Formatted:
    """The times of an event or an average, as text too, and what is the same for all events here."""

    device_type = DeviceType.CPU
    device_index = scope = 0
    use_device = overload_name = fwd_thread = None
    is_async = is_remote = is_legacy = False
    kernels: tuple[Any, ...] = ()
    concrete_inputs: tuple[Any, ...] = ()
    count: int
    cpu_time_total: float

    @property
    def cpu_time(self) -> float:
        """The mean of ``cpu_time_total``."""
        return self.cpu_time_total / self.count if self.count else 0.0

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_str") and not name.startswith("_"):
            return format_time(getattr(self, name.removesuffix("_str")))
        for device in ("cuda", "device"):  # there is none: nothing was spent on it
            if name in (f"{device}_time", f"{device}_time_total", f"self_{device}_time_total"):
                return 0.0
            if name in (f"{device}_memory_usage", f"self_{device}_memory_usage"):
                return 0
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


class FunctionEvent(_Formatted):
    """One call: an operator ("aten::mm"), a node of backward ("MmBackward0"), or a range that ``record_function`` named.

    ``kind`` is "operator", "node", "range", or "pass" for a pass over memory that computed deferred pointwise results.
    ``sequence_nr`` is the number of the node that ran, or that an operator recorded, -1 where there is none.
    """

    def __init__(self, number: int, record: tuple[Any, ...], origin: int, names: "_Names") -> None:
        name, kind, begin, end, memory, thread, parent, sequence, node, shapes, stack, result = record
        self.id = number
        self.kind = KINDS[kind]
        self.trace_name = names.shown(name, self.kind)
        self.name = self.key = "ProfilerStep*" if name.startswith("ProfilerStep#") else self.trace_name
        self.time_range = Interval((begin - origin) / 1e3, (end - origin) / 1e3)
        self.thread = names.thread(thread)
        self.cpu_memory_usage = memory
        self.sequence_nr = sequence if sequence else -1
        self.node_id = node
        self.input_shapes: list[list[int]] = [list(s) for s in shapes] if shapes is not None else []
        self.stack: list[str] = names.lines(stack)
        self.flops = _flops(name, self.input_shapes, result) if self.kind == "operator" else 0
        self.count = 1
        self.is_user_annotation = self.kind == "range"
        self.kwinputs: dict[str, Any] = {}
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        return self.cpu_time_total - sum([child.cpu_time_total for child in self.cpu_children])

    @property
    def self_cpu_memory_usage(self) -> int:
        return int(self.cpu_memory_usage - sum([child.cpu_memory_usage for child in self.cpu_children]))

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} kind={self.kind} thread={self.thread} "
            f"cpu_time={format_time(self.cpu_time_total)} self_cpu_time={format_time(self.self_cpu_time_total)} "
            f"cpu_memory_usage={self.cpu_memory_usage} input_shapes={self.input_shapes}>"
        )


class FunctionEventAvg(_Formatted):
    """The sum of events of one name (and shapes, or stack)."""

    def __init__(self, key: str = "") -> None:
        self.key = key
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.flops = 0
        self.node_id = 0
        self.is_user_annotation = False
        self.input_shapes: list[list[int]] = []
        self.stack: list[str] = []

    def add(self, other: "FunctionEvent | FunctionEventAvg") -> "FunctionEventAvg":
        """Count the event in; return self."""
        event = other
        if not self.count:
            self.input_shapes, self.stack = event.input_shapes, event.stack
            self.node_id, self.is_user_annotation = event.node_id, event.is_user_annotation
        self.key = self.key or event.key
        self.count += event.count
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        self.cpu_memory_usage += event.cpu_memory_usage
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.flops += event.flops
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={format_time(self.self_cpu_time_total)} "
            f"cpu_time={format_time(self.cpu_time)} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage}>"
        )


class _Names:
    """Names as they are shown, threads numbered from 1 in order of appearance, and lines of stacks."""

    def __init__(self) -> None:
        self.threads: dict[int, int] = {}

    @staticmethod
    def shown(name: str, kind: str) -> str:
        return f"aten::{name}" if kind == "operator" else name

    def thread(self, identity: int) -> int:
        return self.threads.setdefault(identity, len(self.threads) + 1)

    @staticmethod
    def lines(place: Any) -> list[str]:
        if place is None:
            return []
        from ._location import lines_of

        return lines_of(place)


class EventList(list[Any]):
    """Events in order of their begin, or averages."""

    profile_memory = False
    with_stack = False
    record_shapes = False
    with_flops = False

    @classmethod
    def from_records(
        cls, records: Iterable[tuple[Any, ...]], origin: int, *, profile_memory: bool = False, with_stack: bool = False
    ) -> "EventList":
        """The events of the core's records, with their parents and children."""
        names = _Names()
        events = cls([FunctionEvent(i, record, origin, names) for i, record in enumerate(records)])
        for event, record in zip(events, records, strict=True):
            if record[6] >= 0:
                event.cpu_parent = events[record[6]]
                event.cpu_parent.cpu_children.append(event)
        events.profile_memory, events.with_stack = profile_memory, with_stack
        return events

    @property
    def self_cpu_time_total(self) -> float:
        """Of all events together, in microseconds."""
        return float(sum([event.self_cpu_time_total for event in self]))

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> "EventList":
        """Sum the events by name, and if wanted by shapes of the inputs, and by the innermost lines of the stack.

        Overloads have no names here: the last argument changes nothing.
        """
        groups: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key = (
                event.key,
                str(event.input_shapes) if group_by_input_shapes else "",
                tuple(event.stack[:group_by_stack_n]),
            )
            groups.setdefault(key, FunctionEventAvg()).add(event)
        averages = self._like(groups.values())
        averages.record_shapes = group_by_input_shapes
        for average in averages:
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = []
        return averages

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key = "Total"
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as a table, greatest ``sort_by`` first (an attribute such as ``self_cpu_time_total``).

        ``row_limit`` of them (-1: all); ``time_unit``: "us", "ms" or "s" for all rows. AttributeError for an unknown
        ``sort_by``.
        """
        rows = list(self)
        if sort_by is not None:
            rows.sort(key=lambda event: getattr(event, sort_by), reverse=True)
        if top_level_events_only:
            rows = [event for event in rows if getattr(event, "cpu_parent", None) is None]
        if row_limit >= 0:
            rows = rows[:row_limit]
        columns = self._columns(max_name_column_width, max_shapes_column_width, max_src_column_width, time_unit)
        return _table(rows, columns, header) + f"Self CPU time total: {format_time(self._total_self(), time_unit)}\n"

    def export_chrome_trace(self, path: "str | os.PathLike[str]") -> None:
        """Write the events as a trace that chrome://tracing and Perfetto show."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": trace_events(self)}, file)

    def export_stacks(self, path: "str | os.PathLike[str]", metric: str = "self_cpu_time_total") -> None:
        """Write for each event its stack, outermost first, and the metric: what flame-graph programs read.

        ValueError for another metric than ``self_cpu_time_total``.
        """
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}, but got {metric!r}")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                value = int(event.self_cpu_time_total)
                if event.stack and value > 0:
                    file.write(";".join(reversed(event.stack)).replace(" ", "_") + f" {value}\n")

    def supported_export_stacks_metrics(self) -> list[str]:
        """What :meth:`export_stacks` can write."""
        return ["self_cpu_time_total"]

    def __str__(self) -> str:
        return self.table()

    def _like(self, items: Iterable[Any]) -> "EventList":
        made = EventList(items)
        made.profile_memory, made.with_stack, made.with_flops = self.profile_memory, self.with_stack, self.with_flops
        return made

    def _total_self(self) -> float:
        return float(sum([event.self_cpu_time_total for event in self]))

    def _columns(self, name_width: int, shapes_width: int, source_width: int, time_unit: str | None) -> list["_Column"]:
        total = self._total_self() or 1.0
        columns = [
            _Column("Name", lambda e: _cut(e.key, name_width)),
            _Column("Self CPU %", lambda e: f"{100 * e.self_cpu_time_total / total:.2f}%"),
            _Column("Self CPU", lambda e: format_time(e.self_cpu_time_total, time_unit)),
            _Column("CPU total %", lambda e: f"{100 * e.cpu_time_total / total:.2f}%"),
            _Column("CPU total", lambda e: format_time(e.cpu_time_total, time_unit)),
            _Column("CPU time avg", lambda e: format_time(e.cpu_time, time_unit)),
        ]
        if self.profile_memory:
            columns += [
                _Column("CPU Mem", lambda e: format_memory(e.cpu_memory_usage)),
                _Column("Self CPU Mem", lambda e: format_memory(e.self_cpu_memory_usage)),
            ]
        columns.append(_Column("# of Calls", lambda e: str(e.count)))
        if any(event.input_shapes for event in self):
            columns.append(_Column("Input Shapes", lambda e: _cut(str(e.input_shapes), shapes_width)))
        if self.with_flops:
            columns.append(_Column("Total FLOPs", lambda e: f"{e.flops:.3f}" if e.flops else "--"))
        if any(event.stack for event in self):
            columns.append(_Column("Source Location", lambda e: _cut(e.stack[0] if e.stack else "", source_width)))
        return columns


def _flops(name: str, inputs: list[list[int]], result: Sequence[int] | None) -> int:
    """Additions and multiplications of a product, convolution, sum or product of tensors; 0 where it is not known."""
    if result is None or len(inputs) < 2:
        return 0
    count = prod(result)
    if name in ("mm", "bmm", "matmul", "addmm", "baddbmm"):
        left = inputs[1 if name in ("addmm", "baddbmm") else 0]
        return 2 * count * left[-1] if left else 0
    if name == "linear":
        return 2 * count * inputs[0][-1]
    if name in ("conv1d", "conv2d", "conv3d"):
        return 2 * count * prod(inputs[1][1:])
    return count if name in ("add", "mul") else 0


class _Column(NamedTuple):
    title: str
    text: Callable[[Any], str]


def _table(rows: list[Any], columns: list[_Column], header: str | None) -> str:
    cells = [[column.text(row) for column in columns] for row in rows]
    widths = [max([12, len(column.title), *[len(line[i]) for line in cells]]) for i, column in enumerate(columns)]
    rule = "  ".join(["-" * width for width in widths]) + "\n"

    def line(texts: list[str]) -> str:
        return "  ".join([text.rjust(width) for text, width in zip(texts, widths, strict=True)]) + "\n"

    title = line([column.title for column in columns])
    top = f"{'=' * len(rule)}\n{header}\n" if header else ""
    return top + rule + title + rule + "".join(map(line, cells)) + rule


def trace_events(events: Iterable[FunctionEvent]) -> list[dict[str, Any]]:
    """The events in the form of Chrome's traces: complete events, their process and thread, what else is known."""
    process = os.getpid()
    trace: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": "python"}}
    ]
    for event in events:
        details: dict[str, Any] = {"Bytes": event.cpu_memory_usage}
        if event.sequence_nr >= 0:
            details["Sequence number"] = event.sequence_nr
        if event.input_shapes:
            details["Input Dims"] = event.input_shapes
        if event.stack:
            details["Call stack"] = ";".join(reversed(event.stack))
        trace.append(
            {
                "ph": "X",
                "cat": "user_annotation" if event.kind == "range" else "cpu_op",
                "name": event.trace_name,
                "pid": process,
                "tid": event.thread,
                "ts": event.time_range.start,
                "dur": event.cpu_time_total,
                "args": details,
            }
        )
    return trace


def format_time(microseconds: float, unit: str | None = None) -> str:
    """In the unit given ("us", "ms", "s"), or the one that suits."""
    scales = {"s": 1e6, "ms": 1e3, "us": 1.0}
    if unit is None:
        unit = next((u for u, scale in scales.items() if abs(microseconds) >= scale), "us")
    if unit not in scales:
        raise AssertionError(f"time_unit must be one of 's', 'ms', 'us', but got {unit!r}")
    return f"{microseconds / scales[unit]:.3f}{unit}"


def format_memory(count: float) -> str:
    """Bytes in the unit that suits."""
    for unit, scale in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(count) >= scale:
            return f"{count / scale:.2f} {unit}"
    return f"{int(count)} B"


def _cut(text: str, width: int) -> str:
    return text if width <= 0 or len(text) <= width else text[: width - 3] + "..."
