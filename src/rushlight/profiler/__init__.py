"""Profiling with a schedule of steps (``torch.profiler``)."""

from rushlight._missing import lazy_module
from rushlight.autograd.profiler import record_function

from .profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

__getattr__, __dir__ = lazy_module(__name__, submodules=("profiler",))
