"""Transforms between real numbers and half a spectrum; the other half is its conjugate.

``rfft`` takes real numbers, ``hfft`` gives a real spectrum; ``irfft`` and ``ihfft`` are their inverses.
"""

from __future__ import annotations

from rushlight import Tensor

from ..operators.operation import scalar_type
from .arguments import (
    Ints,
    Shape,
    checked_size,
    complexes,
    delivered,
    either,
    lines,
    planes,
    reals,
    whole_dims,
)
from .primitive import FftC2C, FftC2R, FftR2C, resized, scale_of

__all__ = [
    "hfft",
    "hfft2",
    "hfftn",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftn",
]


def _some(name: str, dims: Ints) -> Ints:
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    return dims


def _half(x: Tensor, dims: Ints, sizes: Ints | None, norm: str | None, forward: bool) -> Tensor:
    """The half spectrum of real numbers; the inverse transform's is its conjugate."""
    scale = scale_of(norm, forward)
    whole = resized(x, dims, whole_dims(x, dims, sizes))
    if x.is_complex():
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {scalar_type(x.dtype)}")
    if forward:
        found: Tensor = FftR2C.apply(whole, dims, scale, True, True)
        return found
    found = FftR2C.apply(whole, dims[-1:], scale, True, True).conj()
    if len(dims) > 1:
        found = FftC2C.apply(found, dims[:-1], scale, False)
    return found


def _whole(x: Tensor, dims: Ints, sizes: Ints | None, norm: str | None, forward: bool) -> Tensor:
    """Real numbers of half a spectrum, whose last dimension has half the numbers of the result and one more."""
    scale = scale_of(norm, forward)
    last = dims[-1]
    size = checked_size(2 * (x.shape[last] - 1) if sizes is None or sizes[-1] == -1 else sizes[-1])
    others = whole_dims(x, dims[:-1], sizes and sizes[:-1])
    half = resized(x, dims, (*others, size // 2 + 1))
    if forward and len(dims) > 1:
        half = FftC2C.apply(half, dims[:-1], scale, True)
    found: Tensor
    if forward:
        found = FftC2R.apply(half.conj(), dims[-1:], scale, size)
    else:
        found = FftC2R.apply(half, dims, scale, size)
    return found


def rfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the first n // 2 + 1 numbers of ``fft`` of real numbers; the others are their conjugates."""
    x = reals("rfft", input, "rfft expects a real input tensor, but got ")
    return delivered("rfft", out, _half(x, *lines("rfft", x, n, dim), norm, True))


def irfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of :func:`rfft`, ``n`` real numbers: an even number of them unless told otherwise."""
    x = complexes("irfft", input)
    return delivered("irfft", out, _whole(x, *lines("irfft", x, n, dim), norm, False))


def hfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the real ``fft`` of ``n`` numbers of which those of negative places are conjugates, and not given."""
    x = complexes("hfft", input)
    return delivered("hfft", out, _whole(x, *lines("hfft", x, n, dim), norm, True))


def ihfft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of :func:`hfft`: the first n // 2 + 1 numbers of ``ifft`` of real numbers."""
    x = reals("ihfft", input, "ihfft expects a real input tensor, but got ")
    return delivered("ihfft", out, _half(x, *lines("ihfft", x, n, dim), norm, False))


def rfftn(
    input: Tensor, s: Shape = None, dim: Shape = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return ``fftn`` of real numbers, of its last dimension the first half and one more. See :func:`rfft`."""
    x = reals("rfftn", input, "rfftn expects a real-valued input tensor, but got ")
    dims, sizes = planes(x, s, dim)
    return delivered("rfftn", out, _half(x, _some("rfftn", dims), sizes, norm, True))


def irfftn(
    input: Tensor, s: Shape = None, dim: Shape = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of :func:`rfftn`, real numbers of the sizes ``s``."""
    x = complexes("irfftn", input)
    dims, sizes = planes(x, s, dim)
    return delivered("irfftn", out, _whole(x, _some("irfftn", dims), sizes, norm, False))


def hfftn(
    input: Tensor, s: Shape = None, dim: Shape = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the real ``fftn`` of numbers of which, in the last dimension, conjugates are not given."""
    x = complexes("hfftn", input)
    dims, sizes = planes(x, s, dim)
    return delivered("hfftn", out, _whole(x, _some("hfftn", dims), sizes, norm, True))


def ihfftn(
    input: Tensor, s: Shape = None, dim: Shape = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of :func:`hfftn`: of its last dimension the first half and one more."""
    x = either("ihfftn", input)
    dims, sizes = planes(x, s, dim)
    return delivered("ihfftn", out, _half(x, _some("ihfftn", dims), sizes, norm, False))


def rfft2(
    input: Tensor, s: Shape = None, dim: Shape = (-2, -1), norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return :func:`rfftn` along two dimensions, the last ones unless told otherwise."""
    return rfftn(input, s, dim, norm, out=out)


def irfft2(
    input: Tensor, s: Shape = None, dim: Shape = (-2, -1), norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of :func:`rfft2`."""
    return irfftn(input, s, dim, norm, out=out)


def hfft2(
    input: Tensor, s: Shape = None, dim: Shape = (-2, -1), norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return :func:`hfftn` along two dimensions, the last ones unless told otherwise."""
    return hfftn(input, s, dim, norm, out=out)


def ihfft2(
    input: Tensor, s: Shape = None, dim: Shape = (-2, -1), norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of :func:`hfft2`."""
    return ihfftn(input, s, dim, norm, out=out)
