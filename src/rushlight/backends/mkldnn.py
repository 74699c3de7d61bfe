"""`torch.backends.mkldnn`: oneDNN, the library of convolutions, pooling and recurrent cells."""

from collections.abc import Iterator
from contextlib import contextmanager

from rushlight._missing import lazy_module

from ._build import has_library, scoped

enabled = True
deterministic = False
allow_tf32: bool | None = None
fp32_precision = "none"


def is_available() -> bool:
    """Whether oneDNN is built in; without it, matrix products serve the same operators."""
    return has_library("oneDNN")


def is_acl_available() -> bool:
    """Whether oneDNN uses Arm's Compute Library: no."""
    return False


@contextmanager
def flags(
    enabled: bool = False,
    deterministic: bool = False,
    allow_tf32: bool | None = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """A context in which these switches are set."""
    values = {"enabled": enabled, "deterministic": deterministic, "allow_tf32": allow_tf32}
    with scoped(globals(), fp32_precision=fp32_precision, **values):
        yield


__getattr__, __dir__ = lazy_module(__name__)
