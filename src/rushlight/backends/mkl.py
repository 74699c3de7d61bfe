"""`torch.backends.mkl`: rushlight's matrix products are OpenBLAS's, so there is no MKL."""

from rushlight._missing import lazy_module

VERBOSE_OFF = 0
VERBOSE_ON = 1


def is_available() -> bool:
    """Whether Intel's MKL is built in: no."""
    return False


class verbose:
    """`with verbose(VERBOSE_ON):`, in which MKL would print its calls; it is not there, so only 0 is accepted."""

    def __init__(self, enable: int) -> None:
        if enable != VERBOSE_OFF:
            raise RuntimeError("Failed to set MKL into verbose mode: rushlight has no MKL")
        self.enable = enable

    def __enter__(self) -> "verbose":
        return self

    def __exit__(self, *error: object) -> None:
        return None


__getattr__, __dir__ = lazy_module(__name__)
