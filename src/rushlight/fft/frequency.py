"""Which frequency stands where in a spectrum, and spectra with frequency 0 in the middle."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import Tensor

from .arguments import Shape

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def _frequencies(name: str, places: Tensor, n: int, d: float, out: Tensor | None, how: dict[str, Any]) -> Tensor:
    dtype = how.pop("dtype", None) or (rushlight.get_default_dtype() if out is None else out.dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    result: Tensor = rushlight.tensor([], dtype=dtype, **how)  # refuses unknown keywords and devices
    requires_grad = result.requires_grad
    result = places.to(dtype) * (1 / (n * d)) if n else result.detach()
    if out is not None:
        if out.shape != result.shape:
            out.resize_(result.shape)
        return out.copy_(result)
    return result.requires_grad_(requires_grad)


def fftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, **how: Any) -> Tensor:
    """Return the frequencies of the numbers of ``fft`` of size ``n``, in cycles, samples being ``d`` apart.

    0, 1, ... (n - 1) // 2, -(n // 2), ..., -1, all divided by n d.
    """
    negative = rushlight.arange(-(n // 2), 0)
    return _frequencies("fftfreq", rushlight.cat([rushlight.arange((n + 1) // 2), negative]), n, d, out, how)


def rfftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, **how: Any) -> Tensor:
    """Return the frequencies of the numbers of ``rfft``: 0, 1, ..., n // 2, divided by n d."""
    return _frequencies("rfftfreq", rushlight.arange(n // 2 + 1), n, d, out, how)


def _rolled(input: Tensor, dim: int | Shape, middle: bool) -> Tensor:
    dims = tuple(range(input.dim())) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    for d in dims:
        if not -input.dim() <= d < input.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-input.dim()}, {input.dim() - 1}], but got {d})"
            )
    shifts = [input.shape[d] // 2 if middle else (input.shape[d] + 1) // 2 for d in dims]
    return input.roll(shifts, dims) if dims else input.clone()


def fftshift(input: Tensor, dim: int | Shape = None) -> Tensor:
    """Return a spectrum with frequency 0 in the middle, and negative ones before it."""
    return _rolled(input, dim, True)


def ifftshift(input: Tensor, dim: int | Shape = None) -> Tensor:
    """Return the inverse of :func:`fftshift`."""
    return _rolled(input, dim, False)
