"""Padding layers in one to three dimensions; see `functional.pad`.

`padding` is one number for all sides, or (left, right), (left, right, top, bottom), (left, right, top, bottom, front,
back).
"""

from __future__ import annotations

from typing import Any

from rushlight import Tensor

from .. import functional as F
from .._sizes import _ntuple, _spatial
from .module import Module

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    """Padding of the last `_dims` dimensions in a mode of `functional.pad`; a subclass sets both."""

    padding: tuple[int, ...]
    _dims: int
    _mode: str

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._dims)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def _input_shapes(self) -> tuple[tuple[Any, ...], ...]:
        plane = ("C", *_spatial(self._dims))
        return ("N", *plane), plane

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(Module):
    """Padding of the last `_dims` dimensions by `value`; a subclass sets `_dims`."""

    value: float
    padding: tuple[int, ...]
    _dims: int

    def __init__(self, padding: int | tuple[int, ...], value: float) -> None:
        super().__init__()
        self.value = value
        self.padding = _ntuple(2 * self._dims)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def _input_shapes(self) -> tuple[tuple[Any, ...], ...]:
        return ((..., *_spatial(self._dims)),)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Adds `value` before and behind the last dimension."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Adds `value` around the last two dimensions."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Adds `value` around the last three dimensions."""

    _dims = 3


class _ZeroPad(_ConstantPadNd):
    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Adds zeros before and behind the last dimension."""


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Adds zeros around the last two dimensions."""


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Adds zeros around the last three dimensions."""


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Mirrors an input (N, C, L) or (C, L) at its ends, without repeating them; padding must be shorter than L."""

    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Mirrors an input (N, C, H, W) or (C, H, W) at its edges, without repeating them."""

    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Mirrors an input (N, C, D, H, W) or (C, D, H, W) at its faces, without repeating them."""

    _dims = 3


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Repeats the ends of an input (N, C, L) or (C, L)."""

    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Repeats the edges of an input (N, C, H, W) or (C, H, W)."""

    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Repeats the faces of an input (N, C, D, H, W) or (C, D, H, W)."""

    _dims = 3


class _CircularPadNd(_Pad):
    _mode = "circular"

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise ValueError(f"expected {self._dims + 1}D or {self._dims + 2}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Continues an input (N, C, L) or (C, L) at each end with its other end; padding must not exceed L."""

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Continues an input (N, C, H, W) or (C, H, W) at each edge with its other edge."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Continues an input (N, C, D, H, W) or (C, D, H, W) at each face with its other face."""

    _dims = 3
