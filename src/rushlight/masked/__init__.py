"""Reductions and normalizations over the elements where a mask is True, by PyTorch's names in ``torch.masked``.

Elements where the mask (broadcast to the input; all where None) is False count as absent: they take the number that
changes nothing (0 in a sum, 1 in a product, -inf in a maximum), so that where all are absent this number is the result;
a mean, variance or median is NaN there.
"""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight import Tensor

from .._missing import lazy_module

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

Dims = int | tuple[int, ...] | list[int] | None


def _filled(x: Tensor, mask: Tensor | None, number: Any) -> Tensor:
    """`x` with the number where the mask is False."""
    if mask is None:
        return x
    if mask.dtype != rushlight.bool:
        raise TypeError(f"expected mask of dtype torch.bool, but got {mask.dtype}")
    return rushlight.where(mask.expand(x.shape), x, rushlight.full_like(x, number))


def _counted(x: Tensor, mask: Tensor | None, dims: tuple[int, ...]) -> Tensor:
    """How many elements are there along the dimensions, which stay with size 1."""
    present = rushlight.ones(x.shape, dtype=rushlight.bool) if mask is None else mask.expand(x.shape)
    return present.sum(dims, keepdim=True) if dims else present.long()


def _dims(x: Tensor, dim: Dims) -> tuple[int, ...]:
    """The dimensions, from 0: all where none is named."""
    if dim is None:
        return tuple(range(x.dim()))
    named = (dim,) if isinstance(dim, int) else tuple(dim)
    if not named:
        return tuple(range(x.dim()))
    return tuple([d % max(x.dim(), 1) for d in named]) if x.dim() else ()


def _typed(x: Tensor, dtype: Any, floating: bool = False) -> Tensor:
    """In the type of the result: the named one, else int64 for whole numbers (the default floating type)."""
    if dtype is not None:
        return x.to(dtype)
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return x
    return x.to(rushlight.get_default_dtype() if floating else rushlight.int64)


def _without(x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    return x if keepdim or not dims else x.squeeze(dims)


def _least(x: Tensor) -> Any:
    return -math.inf if x.dtype.is_floating_point else rushlight.iinfo(x.dtype).min


def _greatest(x: Tensor) -> Any:
    return math.inf if x.dtype.is_floating_point else rushlight.iinfo(x.dtype).max


def sum(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the sum; 0 of nothing."""
    x = _typed(input, dtype)
    dims = _dims(x, dim)
    return _filled(x, mask, 0).sum(dims, keepdim) if dims else _filled(x, mask, 0)


def prod(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the product; 1 of nothing."""
    x = _typed(input, dtype)
    dims = _dims(x, dim)
    result = _filled(x, mask, 1)
    for d in sorted(dims, reverse=True):
        result = result.prod(d, keepdim)
    return result


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return the sums up to each element."""
    return _filled(_typed(input, dtype), mask, 0).cumsum(dim)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return the products up to each element."""
    return _filled(_typed(input, dtype), mask, 1).cumprod(dim)


def amax(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the greatest element; -inf (the type's least number) of nothing."""
    x = input if dtype is None else input.to(dtype)
    dims = _dims(x, dim)
    filled = _filled(x, mask, _least(x))
    return filled.amax(dims, keepdim) if dims else filled


def amin(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the smallest element; inf (the type's greatest number) of nothing."""
    x = input if dtype is None else input.to(dtype)
    dims = _dims(x, dim)
    filled = _filled(x, mask, _greatest(x))
    return filled.amin(dims, keepdim) if dims else filled


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the place of the greatest element, in the type of the input (or the named one)."""
    x = input if dtype is None else input.to(dtype)
    return _filled(x, mask, _least(x)).argmax(dim, keepdim).to(x.dtype)


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the place of the smallest element, in the type of the input (or the named one)."""
    x = input if dtype is None else input.to(dtype)
    return _filled(x, mask, _greatest(x)).argmin(dim, keepdim).to(x.dtype)


def mean(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the mean; NaN of nothing."""
    x = _typed(input, dtype, floating=True)
    dims = _dims(x, dim)
    total = sum(x, dims, keepdim=True, mask=mask) if dims else _filled(x, mask, 0)
    return _without(total / _counted(x, mask, dims), dims, keepdim)


def _nan_at_absent(x: Tensor, mask: Tensor | None) -> Tensor:
    if not x.dtype.is_floating_point:
        raise ValueError(f"median expects input to be floating point, got {x.dtype}")
    return _filled(x, mask, math.nan)


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the lower median; NaN of nothing. An element that is NaN counts as absent only under the mask."""
    x = input if dtype is None else input.to(dtype)
    if mask is None:
        return x.median(dim, keepdim).values if x.dim() else x
    filled = _nan_at_absent(x, mask)
    result: Tensor = filled.nanmedian(dim, keepdim).values if x.dim() else filled
    return result


def logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the logarithm of the sum of exponentials; -inf of nothing."""
    x = _typed(input, dtype, floating=True)
    return _filled(x, mask, -math.inf).logsumexp(_dims(x, dim), keepdim)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Return log(exp(input) + exp(other)), each absent where its mask is False."""
    a, b = (t if dtype is None else t.to(dtype) for t in (input, other))
    return rushlight.logaddexp(_filled(a, input_mask, -math.inf), _filled(b, other_mask, -math.inf))


def norm(
    input: Tensor,
    ord: float = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the vector norm; 0 of nothing (inf for ord -inf)."""
    x = _typed(input, dtype, floating=True)
    dims = _dims(x, dim)
    filled = _filled(x, mask, math.inf if ord == -math.inf else 0)
    return rushlight.linalg.vector_norm(filled, ord, dims or None, keepdim)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the input over its norm along ``dim`` (at least ``eps``), 0 where absent."""
    x = _typed(input, dtype, floating=True)
    size = norm(x, ord, dim, keepdim=True, mask=mask)
    return _filled(x, mask, 0) / size.clamp_min(eps)


def _deviations(
    input: Tensor, dim: Dims, correction: float, keepdim: bool, dtype: Any, mask: Tensor | None, root: bool
) -> Tensor:
    x = _typed(input, dtype, floating=True)
    dims = _dims(x, dim)
    count = _counted(x, mask, dims)
    centre = mean(x, dims, keepdim=True, mask=mask) if dims else _filled(x, mask, 0) / count
    centred = _filled(x - centre, mask, 0)
    squares = centred * centred.conj() if x.is_complex() else centred.square()
    squares = squares.sum(dims, keepdim=True) if dims else squares
    variance = squares / (count - correction).clamp_min(0)
    return _without(variance.sqrt() if root else variance, dims, keepdim)


def _correction(unbiased: bool | None, correction: float | None) -> float:
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    if correction is not None:
        return correction
    return 1.0 if unbiased is None or unbiased else 0.0


def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the variance: the sum of squared deviations over the number of elements less ``correction`` (1)."""
    return _deviations(input, dim, _correction(unbiased, correction), keepdim, dtype, mask, root=False)


def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the standard deviation: the root of the variance."""
    return _deviations(input, dim, _correction(unbiased, correction), keepdim, dtype, mask, root=True)


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return exp(x) over the sum of exp(x) along ``dim``; 0 where absent."""
    return _filled(_typed(input, dtype, floating=True), mask, -math.inf).softmax(dim)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return the logarithm of softmax along ``dim``; -inf where absent."""
    return _filled(_typed(input, dtype, floating=True), mask, -math.inf).log_softmax(dim)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return exp(-x) over the sum of exp(-x) along ``dim``; 0 where absent."""
    return softmax(-_typed(input, dtype, floating=True), dim, mask=mask)


__getattr__, __dir__ = lazy_module(__name__)
