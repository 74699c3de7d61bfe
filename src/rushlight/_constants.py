"""Numbers, type names and type information of the package's top level."""

from __future__ import annotations

import copyreg
import math
from typing import Any

import numpy as np

from . import _C

e = math.e
pi = math.pi
inf = math.inf
nan = math.nan
newaxis = None

float = float32 = _C.float32
double = float64 = _C.float64
half = float16 = _C.float16
bfloat16 = _C.bfloat16
int8 = _C.int8
uint8 = _C.uint8
short = int16 = _C.int16
int = int32 = _C.int32
long = int64 = _C.int64
bool = _C.bool
cfloat = complex64 = _C.complex64
cdouble = complex128 = _C.complex128
strided = _C.strided
contiguous_format = _C.contiguous_format
preserve_format = _C.preserve_format
channels_last = _C.channels_last
channels_last_3d = _C.channels_last_3d


def _named(name: str) -> Any:
    return getattr(_C, name)


def _reduce_named(value: Any) -> tuple[Any, tuple[str]]:
    return _named, (repr(value).removeprefix("torch."),)


for _type in (_C.dtype, _C.layout, _C.memory_format):
    copyreg.pickle(_type, _reduce_named)


class finfo:
    """Limits of a floating type: bits, eps, max, min, tiny, smallest_normal, resolution, dtype."""

    def __init__(self, type: Any = None) -> None:
        self._dtype = _C.get_default_dtype() if type is None else type
        if not self._dtype.is_floating_point and not self._dtype.is_complex:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{type}'")
        self._dtype = self._dtype.to_real()
        self.dtype = repr(self._dtype).removeprefix("torch.")
        self.bits = self._dtype.itemsize * 8
        if self._dtype is bfloat16:
            self.eps, self.tiny, self.resolution = 2.0**-7, 2.0**-126, 0.01
            self.max = (2.0 - 2.0**-7) * 2.0**127
        else:
            facts = np.finfo(self.dtype)
            self.eps, self.max, self.tiny = [facts.dtype.type(v).item() for v in (facts.eps, facts.max, facts.tiny)]
            self.resolution = facts.dtype.type(facts.resolution).item()
        self.min = -self.max
        self.smallest_normal = self.tiny

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer type: bits, max, min, dtype."""

    def __init__(self, type: Any) -> None:
        if type.is_floating_point or type.is_complex:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'")
        if type is bool:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        facts = np.iinfo(repr(type).removeprefix("torch."))
        self.dtype = repr(type).removeprefix("torch.")
        self.bits, self.max, self.min = facts.bits, facts.max, facts.min

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
