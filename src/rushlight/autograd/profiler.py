"""Time and memory of operators and of the nodes of backward (``torch.autograd.profiler``).

The core records the events: ``_C._profiler_start(record_shapes, with_stack)``, ``_C._profiler_stop()`` and, for named
ranges, ``_C._profiler_enter(name)`` and ``_C._profiler_exit()``. While nothing is recorded operators run as if there
were no profiler: their function pointers are exchanged for the time of the recording.
"""

import contextlib
import os
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from rushlight import _C
from rushlight._missing import lazy_module
from rushlight.utils.hooks import RemovableHandle

from .profiler_util import EventList, FunctionEvent, FunctionEventAvg

__all__ = ["EventList", "FunctionEvent", "profile", "record_function"]

F = TypeVar("F", bound=Callable[..., Any])


class record_function(contextlib.ContextDecorator):
    """Inside, what is profiled stands in a range of this name; as a decorator, the function's calls do.

    ``args`` is shown behind the name.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"record_function(): argument 'name' must be str, not {type(name).__name__}")
        self.name = name
        self.args = args

    def __enter__(self) -> "record_function":
        _C._profiler_enter(self.name if self.args is None else f"{self.name}({self.args})")
        return self

    def __exit__(self, *exc: object) -> None:
        _C._profiler_exit()


class profile:
    """Inside, every operator, node of backward and named range is recorded.

    ``record_shapes`` keeps the shapes of their inputs, ``with_stack`` the lines that called them, ``profile_memory``
    shows the memory of each in tables, ``with_flops`` counts the arithmetic of products, convolutions, ``add`` and
    ``mul``. ``enabled=False`` does nothing. After the block: ``function_events``,
    ``key_averages()``, ``table()``, ``total_average()``, ``self_cpu_time_total``, ``export_chrome_trace(path)`` and
    ``export_stacks(path)``.

    Raises RuntimeError where a profiler runs already, or cannot be read yet.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Any = None,
    ) -> None:
        if use_cuda or use_device == "cuda":
            warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=2)
        self.enabled = enabled
        self.record_shapes, self.with_stack, self.profile_memory = record_shapes, with_stack, profile_memory
        self.with_flops = with_flops
        self.entered = False
        self.function_events: EventList | None = None

    def __enter__(self) -> "profile":
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        if self.enabled:
            self._start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self._stop()

    def _start(self) -> None:
        _C._profiler_start(self.record_shapes or self.with_flops, self.with_stack)
        self._origin = _C._profiler_clock()
        self._step_hooks = _name_optimizer_steps()

    def _stop(self) -> None:
        for handle in self._step_hooks:
            handle.remove()
        self.function_events = EventList.from_records(
            _C._profiler_stop(), self._origin, profile_memory=self.profile_memory, with_stack=self.with_stack
        )
        self.function_events.with_flops = self.with_flops

    def _finished(self) -> EventList:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """See :meth:`EventList.key_averages`."""
        return self._finished().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """See :meth:`EventList.table`."""
        widths = (max_src_column_width, max_name_column_width, max_shapes_column_width)
        return self._finished().table(sort_by, row_limit, *widths, header, top_level_events_only)

    def total_average(self) -> FunctionEventAvg:
        return self._finished().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        return self._finished().self_cpu_time_total

    def export_chrome_trace(
        self, path: "str | os.PathLike[str]", metadata: Any = None, use_python_export: bool = False
    ) -> None:
        self._finished().export_chrome_trace(path)

    def export_stacks(self, path: "str | os.PathLike[str]", metric: str = "self_cpu_time_total") -> None:
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self._finished().export_stacks(path, metric)

    def __repr__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.function_events is None else repr(self.function_events)

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.function_events is None else str(self.function_events)


def _name_optimizer_steps() -> list[RemovableHandle]:
    """Give every optimizer's step a range of its own, as long as the handles are not removed."""
    from rushlight.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    def enter(optimizer: Any, args: Any, kwargs: Any) -> None:
        _C._profiler_enter(f"Optimizer.step#{type(optimizer).__name__}.step")

    def leave(optimizer: Any, args: Any, kwargs: Any) -> None:
        _C._profiler_exit()

    return [register_optimizer_step_pre_hook(enter), register_optimizer_step_post_hook(leave)]


__getattr__, __dir__ = lazy_module(__name__)
