"""`torch.backends.nnpack`: another library of convolutions, which is not there."""

from collections.abc import Iterator
from contextlib import contextmanager

from rushlight._missing import lazy_module

from ._build import scoped

enabled = False


def is_available() -> bool:
    """Whether NNPACK is built in: no."""
    return False


def set_flags(_enabled: bool) -> tuple[bool]:
    """Sets the switch and returns what it was."""
    global enabled
    before, enabled = enabled, _enabled
    return (before,)


@contextmanager
def flags(enabled: bool = False) -> Iterator[None]:
    """A context in which the switch is set."""
    with scoped(globals(), enabled=enabled):
        yield


__getattr__, __dir__ = lazy_module(__name__)
