"""`torch.backends.openmp`: threads."""

from rushlight._missing import lazy_module

from ._build import has_library


def is_available() -> bool:
    """Whether kernels run on OpenMP's threads."""
    return has_library("OpenMP")


__getattr__, __dir__ = lazy_module(__name__)
