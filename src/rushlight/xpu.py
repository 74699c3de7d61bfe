"""`torch.xpu` as a build of PyTorch without it has it: no device, seeds accepted, whatever needs a device raises."""

from rushlight._absent_device import DeviceContext, unavailable, unavailable_class
from rushlight._missing import lazy_module

_NOT_COMPILED = "Torch not compiled with XPU enabled"


def is_available() -> bool:
    """Whether there is an XPU device: no."""
    return False


def device_count() -> int:
    """The number of XPU devices: 0."""
    return 0


def is_initialized() -> bool:
    """Whether XPU devices have been initialised: no."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether an XPU device computes in bfloat16: there is none."""
    return False


def empty_cache() -> None:
    """Frees the cached memory of XPU devices: there is none."""


def manual_seed(seed: int) -> None:
    """Accepts a seed for the current device."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Accepts a seed for all devices."""
    int(seed)


def memory_allocated(device: object = None) -> int:
    """Bytes that tensors occupy on the device: 0."""
    return 0


def max_memory_allocated(device: object = None) -> int:
    """The largest number of bytes that tensors have occupied on the device: 0."""
    return 0


def memory_reserved(device: object = None) -> int:
    """Bytes that the caching allocator holds on the device: 0."""
    return 0


class device(DeviceContext):
    """`with torch.xpu.device(index):`, which chooses nothing for None and negative indices."""

    _message = "PyTorch was compiled without XPU support"


init = unavailable("torch.xpu.init", _NOT_COMPILED)
synchronize = unavailable("torch.xpu.synchronize", _NOT_COMPILED)
current_device = unavailable("torch.xpu.current_device", _NOT_COMPILED)
set_device = unavailable("torch.xpu.set_device", _NOT_COMPILED)
get_device_name = unavailable("torch.xpu.get_device_name", _NOT_COMPILED)
get_device_properties = unavailable("torch.xpu.get_device_properties", _NOT_COMPILED)
get_rng_state = unavailable("torch.xpu.get_rng_state", _NOT_COMPILED)
current_stream = unavailable("torch.xpu.current_stream", _NOT_COMPILED)
Stream = unavailable_class("torch.xpu.Stream", "Tried to instantiate dummy base class Stream")
Event = unavailable_class("torch.xpu.Event", "Tried to instantiate dummy base class Event")

__getattr__, __dir__ = lazy_module(__name__)
