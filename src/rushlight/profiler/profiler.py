"""The profiler of whole training runs: it records the steps that a schedule chooses (``torch.profiler.profiler``)."""

import enum
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from rushlight.autograd import profiler as autograd_profiler
from rushlight.autograd.profiler import record_function
from rushlight.autograd.profiler_util import EventList, trace_events

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(enum.Enum):
    """What is recorded: of these only what the CPU does exists here."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What the profiler does during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def kineto_available() -> bool:
    """Whether ``profile`` can record: always, and without the library of that name."""
    return True


def supported_activities() -> set[ProfilerActivity]:
    """What can be recorded: the CPU."""
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return what to do in step n: skip ``skip_first`` steps, then wait, warm up and record for so many, again and again.

    ``repeat`` cycles, or without end for 0; ``skip_first_wait`` leaves out the first cycle's ``wait``. AssertionError
    for negative numbers, or ``active`` 0.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )

    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        length = wait + warmup + active
        if repeat and step >= repeat * length:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[["profile"], None]:
    """Return an ``on_trace_ready`` that writes each trace into ``dir_name``, under a name of its own."""

    def handle(prof: "profile") -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        ending = "pt.trace.json.gz" if use_gzip else "pt.trace.json"
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}.{ending}"))

    return handle


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


class profile:
    """Record what runs inside, in the steps that ``schedule`` chooses; ``step()`` ends a step.

    ``on_trace_ready(self)`` is called when a cycle of the schedule has been recorded, and at the end. Each cycle's
    events replace those of the last, unless ``acc_events``. ``record_shapes``, ``profile_memory``, ``with_stack`` and
    ``with_flops`` as for :class:`autograd.profiler.profile`. Without a schedule everything is recorded. Results:
    ``events()``, ``key_averages()``, ``export_chrome_trace(path)``, ``export_stacks(path)``.

    AssertionError for activities without the CPU's, and where results are asked for before there are any.
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[["profile"], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self.activities = supported_activities() if activities is None else set(activities)
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        if use_cuda is not None:
            warnings.warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2)
        if use_cuda or ProfilerActivity.CUDA in self.activities:
            warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=2)
        if ProfilerActivity.CPU not in self.activities:
            raise AssertionError("No activities specified for the profiler")
        self._options: dict[str, Any] = {
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "with_flops": with_flops,
        }
        self.schedule = _always if schedule is None else schedule
        self.on_trace_ready = on_trace_ready
        self.record_steps = schedule is not None
        self.acc_events = acc_events
        self._earlier: list[Any] = []  # events of former cycles, with acc_events
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler: autograd_profiler.profile | None = None
        self._step_range: record_function | None = None
        self._metadata: dict[str, Any] = {}

    def __enter__(self) -> "profile":
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin the first step."""
        if self._records():
            self._open()
        self._open_step()

    def stop(self) -> None:
        """End the last step, and hand over what was recorded since the last trace."""
        if self._records() and self.profiler is None:
            raise AssertionError("Profiler must be initialized before stopping trace")
        self._close_step()
        if self._records() and self.profiler is not None:
            self.profiler.__exit__(None, None, None)
            self._ready()

    def step(self) -> None:
        """End a step and begin the next."""
        self._close_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        recorded = before in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        ends = before is ProfilerAction.RECORD_AND_SAVE or (recorded and not self._records())
        if ends and self.profiler is not None:
            self.profiler.__exit__(None, None, None)
            self._ready()
        if self._records() and (ends or not recorded):
            self._open()
        self._open_step()

    def events(self) -> EventList:
        """The events of the last recording."""
        return self._results("accessing events")

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The sums of the last recording: see :meth:`EventList.key_averages`."""
        events = self._results("getting key averages")
        return events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: "str | os.PathLike[str]") -> None:
        """Write the last recording as a trace that chrome://tracing and Perfetto show; compressed if it ends in .gz."""
        events = self._results("exporting chrome trace")
        trace = {"schemaVersion": 1, "displayTimeUnit": "ms", **self._metadata, "traceEvents": trace_events(events)}
        name = os.fspath(path)
        if name.endswith(".gz"):
            import gzip

            with gzip.open(name, "wt", encoding="utf-8") as packed:
                json.dump(trace, packed)
        else:
            with open(name, "w", encoding="utf-8") as file:
                json.dump(trace, file)

    def export_stacks(self, path: "str | os.PathLike[str]", metric: str = "self_cpu_time_total") -> None:
        """See :meth:`EventList.export_stacks`."""
        events = self._results("exporting stacks")
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        events.export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Keep a text with the traces."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Keep a value, given as JSON, with the traces."""
        self._metadata[key] = json.loads(value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """The same as :meth:`add_metadata_json`; in PyTorch, for before the profiler has begun."""
        self.add_metadata_json(key, value)

    def _records(self) -> bool:
        return self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

    def _open(self) -> None:
        if self.profiler is not None:
            if self.acc_events:
                self._earlier += self.profiler._finished()
            else:
                warnings.warn(
                    "Warning: Profiler clears events at the end of each cycle. Only events from the current cycle will "
                    "be reported. To keep events across cycles, set acc_events=True.",
                    stacklevel=3,
                )
        self.profiler = autograd_profiler.profile(**self._options)
        self.profiler.__enter__()

    def _open_step(self) -> None:
        if self.record_steps and self._records():
            self._step_range = record_function(f"ProfilerStep#{self.step_num}")
            self._step_range.__enter__()

    def _close_step(self) -> None:
        if self._step_range is not None:
            self._step_range.__exit__(None, None, None)
            self._step_range = None

    def _ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _results(self, purpose: str) -> EventList:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {purpose}")
        events = self.profiler._finished()
        return events._like([*self._earlier, *events]) if self._earlier else events
