"""Transforms of complex numbers (real ones count as complex): fft and its inverse."""

from __future__ import annotations

from rushlight import Tensor

from .arguments import Ints, Shape, delivered, either, lines, planes, whole_dims
from .primitive import FftC2C, FftR2C, resized, scale_of

__all__ = ["fft", "fft2", "fftn", "ifft", "ifft2", "ifftn"]


def _transformed(x: Tensor, dims: Ints, sizes: Ints | None, norm: str | None, forward: bool) -> Tensor:
    scale = scale_of(norm, forward)
    whole = resized(x, dims, whole_dims(x, dims, sizes))
    if not dims:
        result: Tensor = (whole if whole.is_complex() else whole + 0j).clone()
    elif whole.is_complex():
        result = FftC2C.apply(whole, dims, scale, forward)
    else:
        result = FftR2C.apply(whole, dims, scale, forward, False)
    return result


def fft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return X[k] = sum of x[j] exp(-2πi jk / n) along ``dim``, of the first ``n`` numbers (zeros if there are less).

    Real numbers count as complex. ``norm``: "backward" (None) does not scale, "forward" by 1/n, "ortho" by 1/√n.
    """
    x = either("fft", input)
    return delivered("fft", out, _transformed(x, *lines("fft", x, n, dim), norm, True))


def ifft(
    input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of :func:`fft`: ``norm`` "backward" (None) scales by 1/n, "forward" not, "ortho" by 1/√n."""
    x = either("ifft", input)
    return delivered("ifft", out, _transformed(x, *lines("ifft", x, n, dim), norm, False))


def fftn(
    input: Tensor, s: Shape = None, dim: Shape = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return :func:`fft` along several dimensions: all, or ``dim``, or as many of the last ones as ``s`` has sizes.

    Each dimension is cut off or completed by zeros to its size in ``s`` first (-1: as it is).
    """
    x = either("fftn", input)
    return delivered("fftn", out, _transformed(x, *planes(x, s, dim), norm, True))


def ifftn(
    input: Tensor, s: Shape = None, dim: Shape = None, norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of :func:`fftn`."""
    x = either("ifftn", input)
    return delivered("ifftn", out, _transformed(x, *planes(x, s, dim), norm, False))


def fft2(
    input: Tensor, s: Shape = None, dim: Shape = (-2, -1), norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return :func:`fftn` along two dimensions, the last ones unless told otherwise."""
    return fftn(input, s, dim, norm, out=out)


def ifft2(
    input: Tensor, s: Shape = None, dim: Shape = (-2, -1), norm: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Return the inverse of :func:`fft2`."""
    return ifftn(input, s, dim, norm, out=out)
