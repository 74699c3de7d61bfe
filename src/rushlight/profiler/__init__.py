"""Profiling with a schedule of steps (``torch.profiler``)."""

from rushlight._missing import lazy_module
from rushlight.autograd.profiler import record_function
from rushlight.autograd.profiler_util import DeviceType

from .profiler import (
    ProfilerAction,
    ProfilerActivity,
    kineto_available,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

__getattr__, __dir__ = lazy_module(__name__, submodules=("profiler",))
