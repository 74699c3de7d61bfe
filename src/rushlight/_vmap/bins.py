"""Counts of numbers in bins: all samples' bins in one row, those of a sample side by side."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import Tensor

from ..operators.operation import every_sample
from .dims import front
from .table import looped, refused, rule

__all__: list[str] = []


def counted(places: Tensor, amounts: Tensor, bins: int) -> Tensor:
    """The sums of the amounts at each place, for every row: ``(size, bins)`` for places ``(size, n)``."""
    size = places.shape[0]
    places = places + rushlight.arange(size).unsqueeze(1) * bins
    sums = amounts.new_zeros(size * bins).index_add(0, places.flatten(), amounts.flatten())
    return sums.view(size, bins)


@rule("bincount")
def bincount(call: Any, level: int, size: int, mask: int, x: Tensor, weights: Any, minlength: int) -> Any:
    """The greatest number decides how many bins there are, which has to be the same for all samples."""
    x = x if mask & 1 else front(x, size)
    weights = weights if weights is None or mask & 2 else front(weights, size)
    numbers = every_sample(x)
    fits = x.dim() == 2 and not x.is_floating_point() and x.dtype != rushlight.bool and minlength >= 0
    if not fits or size == 0 or (weights is not None and weights.shape != x.shape) or (numbers < 0).any():
        return looped(call, level, size, 1 if weights is None else 3, x, weights, minlength)
    greatest = numbers.amax(-1).flatten() if numbers.numel() else rushlight.tensor([-1])
    bins = max(minlength, int(greatest.max()) + 1)
    if minlength < bins and int(greatest.min()) + 1 < bins:
        raise refused("bincount")
    if weights is None:
        amounts = rushlight.ones_like(x, dtype=rushlight.int64)
    else:
        amounts = weights if weights.dtype == rushlight.float32 else weights.to(rushlight.float64)
    return counted(x.to(rushlight.int64), amounts, bins)


@rule("histc")
def histc(call: Any, level: int, size: int, mask: int, x: Tensor, bins: int, low: Any, high: Any) -> Any:
    """Bins of one width between two numbers, or between the least and the greatest of each sample."""
    given = (x, bins, low, high)
    if bins <= 0 or low > high or not x.is_floating_point() or size == 0:
        return looped(call, level, size, mask, *given)
    x = x.detach().reshape(size, -1)
    least, most = [rushlight.tensor(float(n), dtype=rushlight.float64) for n in (low, high)]
    if low == high and x.shape[1]:
        least, most = x.amin(1, True).double(), x.amax(1, True).double()
    single = least == most
    least, most = rushlight.where(single, least - 1, least), rushlight.where(single, most + 1, most)
    if not (every_sample(least).isfinite() & every_sample(most).isfinite()).all():
        return looped(call, level, size, mask, *given)
    least, most = least.to(x.dtype), most.to(x.dtype)
    inside = (x >= least) & (x <= most)
    part = (x - least) * rushlight.tensor(bins, dtype=x.dtype) / (most - least)
    places = rushlight.where(inside, part, 0).to(rushlight.int64).clamp_max(bins - 1)
    return counted(places, inside.to(rushlight.int64), bins).to(x.dtype)
