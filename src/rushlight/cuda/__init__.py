"""`torch.cuda` as a build of PyTorch for CPUs has it: no device, seeds accepted, whatever needs a device raises."""

from typing import Any

from rushlight._absent_device import ONLY_CPUS, DeviceContext, device_index, unavailable, unavailable_class
from rushlight._missing import lazy_module

from .memory import (
    caching_allocator_alloc,
    caching_allocator_delete,
    empty_cache,
    get_allocator_backend,
    host_memory_stats,
    list_gpu_processes,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import (
    CUDAGraph,
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    graph,
    is_current_stream_capturing,
    set_stream,
    stream,
)

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CUDAGraph",
    "CharTensor",
    "DoubleTensor",
    "Event",
    "ExternalStream",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "Stream",
    "StreamContext",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "can_device_access_peer",
    "clock_rate",
    "cudart",
    "current_blas_handle",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_allocator_backend",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_rng_state",
    "get_rng_state_all",
    "get_sync_debug_mode",
    "graph",
    "has_half",
    "has_magma",
    "host_memory_stats",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "list_gpu_processes",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "memory_usage",
    "power_draw",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_sync_debug_mode",
    "stream",
    "synchronize",
    "temperature",
    "utilization",
]

NOT_COMPILED = "Torch not compiled with CUDA enabled"

default_generators: tuple[Any, ...] = ()
has_half = True
has_magma = False


def is_available() -> bool:
    """Whether there is a CUDA device: no."""
    return False


def device_count() -> int:
    """The number of CUDA devices: 0."""
    return 0


def is_initialized() -> bool:
    """Whether CUDA has been initialised: no."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether a CUDA device computes in bfloat16: there is none."""
    return False


def is_tf32_supported() -> bool:
    """Whether a CUDA device computes in TF32: there is none."""
    return False


def get_arch_list() -> list[str]:
    """The CUDA architectures that were compiled for: none."""
    return []


def get_gencode_flags() -> str:
    """The NVCC flags that were compiled with: none."""
    return ""


def set_device(device: object) -> None:
    """Accepts None and negative indices, which choose nothing; AssertionError for any other."""
    if device is not None and device_index(device) >= 0:
        raise AssertionError(f"{NOT_COMPILED}: {ONLY_CPUS}, which have no device {device}")


def _is_in_bad_fork() -> bool:
    return False


class device(DeviceContext):
    """`with torch.cuda.device(index):`, which chooses nothing for None and negative indices."""

    _message = "PyTorch was compiled without CUDA support"


class device_of(device):
    """`with torch.cuda.device_of(tensor):`, which chooses nothing: tensors are on the CPU."""

    def __init__(self, obj: object) -> None:
        super().__init__(-1)


init = unavailable("torch.cuda.init", NOT_COMPILED)
current_device = unavailable("torch.cuda.current_device", NOT_COMPILED)
synchronize = unavailable("torch.cuda.synchronize", NOT_COMPILED)
ipc_collect = unavailable("torch.cuda.ipc_collect", NOT_COMPILED)
get_device_name = unavailable("torch.cuda.get_device_name", NOT_COMPILED)
get_device_capability = unavailable("torch.cuda.get_device_capability", NOT_COMPILED)
get_device_properties = unavailable("torch.cuda.get_device_properties", NOT_COMPILED)
can_device_access_peer = unavailable("torch.cuda.can_device_access_peer", NOT_COMPILED)
cudart = unavailable("torch.cuda.cudart", NOT_COMPILED)
current_blas_handle = unavailable("torch.cuda.current_blas_handle", NOT_COMPILED)
get_sync_debug_mode = unavailable("torch.cuda.get_sync_debug_mode", NOT_COMPILED)
set_sync_debug_mode = unavailable("torch.cuda.set_sync_debug_mode", NOT_COMPILED)
utilization = unavailable("torch.cuda.utilization", NOT_COMPILED)
temperature = unavailable("torch.cuda.temperature", NOT_COMPILED)
power_draw = unavailable("torch.cuda.power_draw", NOT_COMPILED)
clock_rate = unavailable("torch.cuda.clock_rate", NOT_COMPILED)
memory_usage = unavailable("torch.cuda.memory_usage", NOT_COMPILED)
_sleep = unavailable("torch.cuda._sleep", NOT_COMPILED)


def _tensor_type(name: str) -> type:
    return unavailable_class(f"torch.cuda.{name}", f"type torch.cuda.{name} not available. {NOT_COMPILED}", TypeError)


FloatTensor = _tensor_type("FloatTensor")
DoubleTensor = _tensor_type("DoubleTensor")
HalfTensor = _tensor_type("HalfTensor")
BFloat16Tensor = _tensor_type("BFloat16Tensor")
ByteTensor = _tensor_type("ByteTensor")
CharTensor = _tensor_type("CharTensor")
ShortTensor = _tensor_type("ShortTensor")
IntTensor = _tensor_type("IntTensor")
LongTensor = _tensor_type("LongTensor")
BoolTensor = _tensor_type("BoolTensor")

__getattr__, __dir__ = lazy_module(
    __name__, ("amp", "nccl", "nvtx", "profiler"), names={"OutOfMemoryError": "rushlight"}
)
