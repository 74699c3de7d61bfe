"""Losses: computed without reduction, then reduced over each sample."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import Tensor

from ..operators.registry import Overload
from .dims import front
from .pointwise import aligned
from .table import family, rule

__all__: list[str] = []

NONE, MEAN, SUM = 0, 1, 2


def reduced(loss: Tensor, reduction: int) -> Tensor:
    """The mean or sum over all dimensions but the batch."""
    if reduction == NONE:
        return loss
    if loss.dim() == 1:
        return loss
    dims = tuple(range(1, loss.dim()))
    return loss.mean(dims) if reduction == MEAN else loss.sum(dims)


@family(
    *("binary_cross_entropy", "binary_cross_entropy_with_logits", "huber_loss", "kl_div", "l1_loss", "mse_loss"),
    *("smooth_l1_loss", "soft_margin_loss"),
)
def pointwise_loss(call: Any, overload: Overload) -> Any:
    """A loss of every element."""
    at = [p.name for p in overload.parameters].index("reduction")

    def loss(call: Any, level: int, size: int, mask: int, *values: Any) -> Any:
        arguments = aligned(mask, *values)
        reduction, arguments[at] = arguments[at], NONE
        return reduced(call(*arguments), reduction)

    return loss


@rule("cross_entropy_loss", "nll_loss_nd")
def classification(
    call: Any,
    level: int,
    size: int,
    mask: int,
    x: Tensor,
    target: Tensor,
    weight: Any,
    reduction: int,
    ignored: int,
    *smoothing: float,
) -> Any:
    """All samples in one longer batch; the mean of a sample is weighed by its own targets."""
    x = x if mask & 1 else front(x, size)
    target = target if mask & 2 else front(target, size)
    if mask & 4:
        from .table import looped

        return looped(call, level, size, 7, x, target, weight, reduction, ignored, *smoothing)
    single = x.dim() == 2  # a sample is one vector of scores
    if single:
        out = call(x, target, weight, NONE, ignored, *smoothing)
    else:
        out = call(x.flatten(0, 1), target.flatten(0, 1), weight, NONE, ignored, *smoothing)
        out = out.unflatten(0, (size, x.shape[1]))
    if reduction == NONE:
        return out
    total = out if single else out.sum(tuple(range(1, out.dim())))
    if reduction == SUM:
        return total
    if target.is_floating_point():
        return total if single else total / (out[0].numel() if size else 1)
    counted = target.ne(ignored)
    shares = counted.to(x.dtype)
    if weight is not None:
        shares = rushlight.where(counted, weight[rushlight.where(counted, target, 0)], 0.0)
    return total / (shares if single else shares.sum(tuple(range(1, shares.dim()))))
