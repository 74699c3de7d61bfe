"""`torch.accelerator` where there is none besides the CPU."""

from rushlight._absent_device import unavailable
from rushlight._missing import lazy_module

_NONE = "Cannot access accelerator device when none is available"


def is_available() -> bool:
    """Whether there is an accelerator: no."""
    return False


def device_count() -> int:
    """The number of accelerators: 0."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """The device of the accelerator: None."""


synchronize = unavailable("torch.accelerator.synchronize", _NONE, RuntimeError)
current_device_index = unavailable("torch.accelerator.current_device_index", _NONE, RuntimeError)
set_device_index = unavailable("torch.accelerator.set_device_index", _NONE, RuntimeError)
current_stream = unavailable("torch.accelerator.current_stream", _NONE, RuntimeError)
memory_allocated = unavailable("torch.accelerator.memory_allocated", _NONE, RuntimeError)
empty_cache = unavailable("torch.accelerator.empty_cache", _NONE, RuntimeError)

__getattr__, __dir__ = lazy_module(__name__)
