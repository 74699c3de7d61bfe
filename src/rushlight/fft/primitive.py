"""The three transforms that all others are made of, each linear, so that its derivatives are transforms again.

With F the matrix of a transform, forward or backward, and s its scale, the gradient of s F x is s Fᴴ g: the transform
the other way, with the same scale. Of a real x it is the real part. Half a spectrum stands for a whole one: the
gradient of the half is that of the whole with zeros for the other half, and a number that stands for two, its own and
a conjugate's, gets twice its part.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import rushlight
from rushlight import Tensor

from ..operators.operation import Operation, numbers, tensor

__all__ = ["FftC2C", "FftC2R", "FftR2C", "Scale", "resized", "scale_of"]

Scale = str  # "1", "1/sqrt(n)" or "1/n", n the product of the sizes of the transformed dimensions
Dims = tuple[int, ...]  # counted from the end

# NumPy's names: "backward" scales the inverse transform alone
_FORWARD = {"1": "backward", "1/sqrt(n)": "ortho", "1/n": "forward"}
_INVERSE = {"1": "forward", "1/sqrt(n)": "ortho", "1/n": "backward"}


_FEW = 1 << 14  # numbers that NumPy transforms before SciPy would be loaded


@functools.cache
def _vectorised() -> Any:
    """SciPy's transforms, which take several lines at a time; NumPy's, line by line, where it is not installed."""
    try:
        import scipy.fft
    except ImportError:
        return np.fft
    return scipy.fft


def _library(a: Any) -> Any:
    return np.fft if a.size < _FEW else _vectorised()


def scale_of(norm: str | None, forward: bool) -> Scale:
    """What a transform with PyTorch's ``norm`` is scaled by."""
    if norm == "ortho":
        return "1/sqrt(n)"
    if norm not in (None, "backward", "forward"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return "1/n" if (norm == "forward") == forward else "1"


def _like(result: Any, a: Any) -> Tensor:
    """The tensor of a result, in the precision of what was transformed: NumPy before 2.0 computes in float64."""
    single = a.dtype in (np.float32, np.complex64)
    kind = ("c" if result.dtype.kind == "c" else "f") + str((4 if single else 8) * (1 + (result.dtype.kind == "c")))
    return tensor(result.astype(kind, copy=False))


class FftC2C(Operation):
    """All numbers complex; ``forward`` or the inverse."""

    core_dims = (0,)

    @staticmethod
    def forward(ctx: Any, x: Tensor, dims: Dims, scale: Scale, forward: bool) -> Tensor:
        ctx.how = dims, scale, forward
        a = numbers(x)
        if forward:
            return _like(_library(a).fftn(a, axes=dims, norm=_FORWARD[scale]), a)
        return _like(_library(a).ifftn(a, axes=dims, norm=_INVERSE[scale]), a)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        dims, scale, forward = ctx.how
        return FftC2C.apply(grad, dims, scale, not forward), None, None, None


class FftR2C(Operation):
    """Of real numbers: the whole spectrum, or (``half``) without the conjugates, in the last of ``dims``."""

    core_dims = (0,)

    @staticmethod
    def forward(ctx: Any, x: Tensor, dims: Dims, scale: Scale, forward: bool, half: bool) -> Tensor:
        ctx.how, ctx.size = (dims, scale, forward), x.shape[dims[-1]]
        a = numbers(x)
        if half:
            return _like(_library(a).rfftn(a, axes=dims, norm=_FORWARD[scale]), a)
        if forward:
            return _like(_library(a).fftn(a, axes=dims, norm=_FORWARD[scale]), a)
        return _like(_library(a).ifftn(a, axes=dims, norm=_INVERSE[scale]), a)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        dims, scale, forward = ctx.how
        whole = resized(grad, dims[-1:], (ctx.size,))
        return FftC2C.apply(whole, dims, scale, not forward).real, None, None, None, None


class FftC2R(Operation):
    """The inverse of half a spectrum, to ``size`` real numbers in the last of ``dims``."""

    core_dims = (0,)

    @staticmethod
    def forward(ctx: Any, x: Tensor, dims: Dims, scale: Scale, size: int) -> Tensor:
        ctx.how, ctx.size = (dims, scale), size
        a = numbers(x)
        sizes = [*[a.shape[d] for d in dims[:-1]], size]
        return _like(_library(a).irfftn(a, sizes, axes=dims, norm=_INVERSE[scale]), a)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        dims, scale = ctx.how
        half = FftR2C.apply(grad, dims, scale, True, True)
        twice = (ctx.size - 1) // 2  # the numbers after the first that stand for a conjugate, too
        counts = np.ones(ctx.size // 2 + 1, numbers(grad).dtype)
        counts[1 : 1 + twice] = 2
        return half * tensor(counts).reshape(-1, *(1,) * (-1 - dims[-1])), None, None, None


def resized(x: Tensor, dims: Dims, sizes: Dims) -> Tensor:
    """The tensor cut off, or completed by zeros, to these sizes."""
    for d, n in zip(dims, sizes, strict=True):
        have = x.shape[d]
        if n < have:
            x = x.narrow(d, 0, n)
        elif n > have:
            shape = list(x.shape)
            shape[d] = n - have
            x = rushlight.cat([x, rushlight.zeros(shape, dtype=x.dtype)], d)
    return x
