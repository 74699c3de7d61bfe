"""`torch.backends.mkldnn`: oneDNN, the library of convolutions, pooling and recurrent cells."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from rushlight import _C
from rushlight._missing import lazy_module

from ._build import has_library, scoped

allow_tf32: bool | None = None
fp32_precision = "none"


def is_available() -> bool:
    """Whether oneDNN is built in; without it, or with ``enabled = False``, our own kernels serve the same operators."""
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
    before = _C._onednn_enabled(), _C._onednn_deterministic()
    with scoped(globals(), allow_tf32=allow_tf32, fp32_precision=fp32_precision):
        _C._set_onednn(enabled)
        _C._set_onednn_deterministic(deterministic)
        try:
            yield
        finally:
            _C._set_onednn(before[0])
            _C._set_onednn_deterministic(before[1])


class _Switched(ModuleType):
    """The module, whose `enabled` and `deterministic` are the core's own switches.

    What oneDNN computes depends on the number of threads; `deterministic` gives its work to our own kernels.
    """

    @property
    def enabled(self) -> bool:
        return bool(_C._onednn_enabled())

    @enabled.setter
    def enabled(self, on: bool) -> None:
        _C._set_onednn(bool(on))

    @property
    def deterministic(self) -> bool:
        return bool(_C._onednn_deterministic())

    @deterministic.setter
    def deterministic(self, on: bool) -> None:
        _C._set_onednn_deterministic(bool(on))


sys.modules[__name__].__class__ = _Switched


__getattr__, __dir__ = lazy_module(__name__)
