"""`torch.backends.mkldnn`: oneDNN, the library of convolutions, pooling and recurrent cells."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from rushlight import _C
from rushlight._missing import lazy_module

from ._build import has_library, scoped

deterministic = False
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
    before = _C._onednn_enabled()
    with scoped(globals(), deterministic=deterministic, allow_tf32=allow_tf32, fp32_precision=fp32_precision):
        _C._set_onednn(enabled)
        try:
            yield
        finally:
            _C._set_onednn(before)


class _Switched(ModuleType):
    """The module, whose `enabled` is the core's own switch."""

    @property
    def enabled(self) -> bool:
        return bool(_C._onednn_enabled())

    @enabled.setter
    def enabled(self, on: bool) -> None:
        _C._set_onednn(bool(on))


sys.modules[__name__].__class__ = _Switched


__getattr__, __dir__ = lazy_module(__name__)
