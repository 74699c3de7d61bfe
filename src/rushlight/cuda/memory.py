"""Memory of CUDA devices: there is none, so none is used, cached or freed."""

import warnings
from collections import OrderedDict
from typing import Any

from rushlight._absent_device import unavailable

_NOT_COMPILED = "Torch not compiled with CUDA enabled"


def empty_cache() -> None:
    """Frees the cached memory of CUDA devices: there is none.  `rushlight.empty_cache` frees that of the CPU."""


def memory_allocated(device: object = None) -> int:
    """Bytes that tensors occupy on the device: 0."""
    return 0


def max_memory_allocated(device: object = None) -> int:
    """The largest number of bytes that tensors have occupied on the device: 0."""
    return 0


def memory_reserved(device: object = None) -> int:
    """Bytes that the caching allocator holds on the device: 0."""
    return 0


def max_memory_reserved(device: object = None) -> int:
    """The largest number of bytes that the caching allocator has held on the device: 0."""
    return 0


def memory_cached(device: object = None) -> int:
    """The old name of `memory_reserved`."""
    _warn_renamed("memory_cached", "memory_reserved")
    return 0


def max_memory_cached(device: object = None) -> int:
    """The old name of `max_memory_reserved`."""
    _warn_renamed("max_memory_cached", "max_memory_reserved")
    return 0


def memory_stats(device: object = None) -> "OrderedDict[str, Any]":
    """Statistics of the device's allocator: empty."""
    return OrderedDict()


def host_memory_stats() -> "OrderedDict[str, Any]":
    """Statistics of the allocator of pinned memory: empty."""
    return OrderedDict()


def list_gpu_processes(device: object = None) -> str:
    """The processes that use the device, as text."""
    return "no processes are running: there is no CUDA device"


def _warn_renamed(old: str, new: str) -> None:
    message = f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`"
    warnings.warn(message, FutureWarning, stacklevel=3)


mem_get_info = unavailable("torch.cuda.mem_get_info", _NOT_COMPILED)
memory_summary = unavailable("torch.cuda.memory_summary", _NOT_COMPILED)
memory_snapshot = unavailable("torch.cuda.memory_snapshot", _NOT_COMPILED)
reset_peak_memory_stats = unavailable("torch.cuda.reset_peak_memory_stats", _NOT_COMPILED)
reset_accumulated_memory_stats = unavailable("torch.cuda.reset_accumulated_memory_stats", _NOT_COMPILED)
reset_max_memory_allocated = unavailable("torch.cuda.reset_max_memory_allocated", _NOT_COMPILED)
reset_max_memory_cached = unavailable("torch.cuda.reset_max_memory_cached", _NOT_COMPILED)
set_per_process_memory_fraction = unavailable("torch.cuda.set_per_process_memory_fraction", _NOT_COMPILED)
get_allocator_backend = unavailable("torch.cuda.get_allocator_backend", _NOT_COMPILED)
caching_allocator_alloc = unavailable("torch.cuda.caching_allocator_alloc", _NOT_COMPILED)
caching_allocator_delete = unavailable("torch.cuda.caching_allocator_delete", _NOT_COMPILED)
_record_memory_history = unavailable("torch.cuda.memory._record_memory_history", _NOT_COMPILED)
_snapshot = unavailable("torch.cuda.memory._snapshot", _NOT_COMPILED)
