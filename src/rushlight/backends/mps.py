"""`torch.backends.mps`: Apple's Metal, which is not there."""

from rushlight._absent_device import unavailable
from rushlight._missing import lazy_module


def is_built() -> bool:
    """Whether the Metal backend is built in: no."""
    return False


def is_available() -> bool:
    """Whether there is a Metal device: no."""
    return False


is_macos_or_newer = unavailable(
    "torch.backends.mps.is_macos_or_newer", "Cannot execute isOnMacOSorNewer() without MPS backend", RuntimeError
)
is_macos13_or_newer = unavailable(
    "torch.backends.mps.is_macos13_or_newer", "Cannot execute isOnMacOSorNewer() without MPS backend", RuntimeError
)

__getattr__, __dir__ = lazy_module(__name__)
