"""`torch.mps` as a build of PyTorch without it has it: no device, seeds accepted, whatever needs a device raises."""

from rushlight._absent_device import unavailable, unavailable_class
from rushlight._missing import lazy_module


def is_available() -> bool:
    """Whether there is a Metal device: no."""
    return False


def device_count() -> int:
    """The number of Metal devices: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Accepts a seed for the device."""
    int(seed)


def _message(call: str) -> str:
    return f"Cannot execute {call}() without MPS backend"


synchronize = unavailable("torch.mps.synchronize", _message("deviceSynchronize"), RuntimeError)
empty_cache = unavailable("torch.mps.empty_cache", _message("emptyCache"), RuntimeError)
seed = unavailable("torch.mps.seed", _message("getDefaultGenerator"), RuntimeError)
get_rng_state = unavailable("torch.mps.get_rng_state", _message("getDefaultGenerator"), RuntimeError)
set_rng_state = unavailable("torch.mps.set_rng_state", _message("getDefaultGenerator"), RuntimeError)
current_allocated_memory = unavailable(
    "torch.mps.current_allocated_memory", _message("getCurrentAllocatedMemory"), RuntimeError
)
driver_allocated_memory = unavailable(
    "torch.mps.driver_allocated_memory", _message("getDriverAllocatedMemory"), RuntimeError
)
recommended_max_memory = unavailable(
    "torch.mps.recommended_max_memory", _message("getRecommendedMaxMemory"), RuntimeError
)
set_per_process_memory_fraction = unavailable(
    "torch.mps.set_per_process_memory_fraction", _message("setMemoryFraction"), RuntimeError
)
Event = unavailable_class("torch.mps.Event", _message("acquireEvent"))

__getattr__, __dir__ = lazy_module(__name__)
