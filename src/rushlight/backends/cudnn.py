"""`torch.backends.cudnn`: switches of NVIDIA's library, which keep what is assigned to them and change nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rushlight._missing import lazy_module

from ._build import scoped

if TYPE_CHECKING:
    from rushlight import Tensor

enabled = True
benchmark = False
benchmark_limit: int | None = 10
deterministic = False
allow_tf32 = True
fp32_precision = "none"


def is_available() -> bool:
    """Whether cuDNN is built in: no."""
    return False


def version() -> None:
    """The version of cuDNN: None."""


def is_acceptable(tensor: "Tensor") -> bool:
    """Whether cuDNN could work on this tensor: never."""
    return False


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int | None = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """A context in which these switches are set."""
    values = {"enabled": enabled, "benchmark": benchmark, "deterministic": deterministic, "allow_tf32": allow_tf32}
    with scoped(globals(), benchmark_limit=benchmark_limit, fp32_precision=fp32_precision, **values):
        yield


__getattr__, __dir__ = lazy_module(__name__)
