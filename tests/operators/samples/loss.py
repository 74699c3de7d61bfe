"""Samples of the losses: every reduction, weights, ignored targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import special

from .sample import FLOATS, Maker, Sample, samples

NONE, MEAN, SUM = 0, 1, 2
HALF = {"float16": (5e-3, 5e-3), "bfloat16": (4e-2, 4e-2)}


def reduced(x: Any, reduction: int) -> Any:
    """What a reduction makes of the elements."""
    return x if reduction == NONE else np.mean(x) if reduction == MEAN else np.sum(x)


def _pairs(*rest: dict[str, Any]) -> Callable[[Maker], Iterator[Sample]]:
    def make(m: Maker) -> Iterator[Sample]:
        for shape in ((), (3,), (2, 3), (0, 2)):
            for reduction in (NONE, MEAN, SUM):
                yield Sample((m(*shape), m(*shape), reduction))
        yield Sample((m(2, 3), m(2, 3)))
        for kwargs in rest:
            yield Sample((m(2, 3), m(2, 3)), kwargs)

    return make


def _distance(f: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: Any, y: Any, reduction: int = MEAN, **rest: Any) -> Any:
        return reduced(f(np.abs(x - y), **rest), reduction)

    return reference


def _smooth(d: Any, beta: float = 1.0) -> Any:
    return np.where(d < beta, 0.5 * d**2 / beta if beta else d, d - 0.5 * beta)


def _huber(d: Any, delta: float = 1.0) -> Any:
    return np.where(d < delta, 0.5 * d**2, delta * (d - 0.5 * delta))


samples("l1_loss", reference=_distance(lambda d: d), dtypes=FLOATS, tolerance=HALF)(_pairs())
samples("mse_loss", reference=_distance(np.square), dtypes=FLOATS, tolerance=HALF)(_pairs())
samples("smooth_l1_loss", reference=_distance(_smooth), dtypes=FLOATS, tolerance=HALF)(
    _pairs({"beta": 0.4}, {"beta": 0.0})
)
samples("huber_loss", reference=_distance(_huber), dtypes=FLOATS, tolerance=HALF)(_pairs({"delta": 0.4}))


def _kl_div(x: Any, target: Any, reduction: int = MEAN, log_target: bool = False) -> Any:
    if log_target:
        return reduced(np.exp(target) * (target - x), reduction)
    return reduced(special.xlogy(target, target) - target * x, reduction)


@samples("kl_div", reference=_kl_div, dtypes=FLOATS, tolerance=HALF)
def _kl_divs(m: Maker) -> Iterator[Sample]:
    for shape in ((), (2, 3), (0,)):
        for reduction in (NONE, MEAN, SUM):
            yield Sample((m(*shape), m(*shape, low=0.1, high=1), reduction))
            yield Sample((m(*shape), m(*shape), reduction), {"log_target": True})


def _bce(x: Any, y: Any, weight: Any = None, reduction: int = MEAN) -> Any:
    loss = -(y * np.maximum(np.log(x), -100) + (1 - y) * np.maximum(np.log1p(-x), -100))
    return reduced(loss if weight is None else loss * weight, reduction)


@samples("binary_cross_entropy", reference=_bce, dtypes=FLOATS, tolerance=HALF)
def _bces(m: Maker) -> Iterator[Sample]:
    for shape in ((), (2, 3)):
        for reduction in (NONE, MEAN, SUM):
            yield Sample((m(*shape, low=0.1, high=0.9), m(*shape, low=0.1, high=0.9), None, reduction))
    yield Sample((m(2, 3, low=0.1, high=0.9), m(2, 3, low=0.1, high=0.9), m(3, low=0.1, high=2), SUM), variables=2)


def _bce_logits(x: Any, y: Any, weight: Any = None, pos_weight: Any = None, reduction: int = MEAN) -> Any:
    loss = -((1 if pos_weight is None else pos_weight) * y * special.log_expit(x) + (1 - y) * special.log_expit(-x))
    return reduced(loss if weight is None else loss * weight, reduction)


@samples("binary_cross_entropy_with_logits", reference=_bce_logits, dtypes=FLOATS, tolerance=HALF)
def _bces_with_logits(m: Maker) -> Iterator[Sample]:
    for shape in ((), (2, 3)):
        for reduction in (NONE, MEAN, SUM):
            yield Sample((m(*shape), m(*shape, low=0.1, high=0.9), None, None, reduction))
    yield Sample((m(2, 3), m(2, 3, low=0.1, high=0.9), m(3, low=0.1, high=2), m(3, low=0.5, high=2)), variables=2)


def _nll(x: Any, target: Any, weight: Any = None, reduction: int = MEAN, ignore_index: int = -100) -> Any:
    if x.ndim == 1:
        x, target = x[None], target.reshape(1)
    weight = np.ones(x.shape[1]) if weight is None else weight
    kept = target != ignore_index
    index = np.where(kept, target, 0)
    picked = np.take_along_axis(x, np.expand_dims(index, 1), 1).squeeze(1)
    w = weight[index] * kept
    loss = -picked * w
    if reduction == NONE:
        return loss
    return loss.sum() / (w.sum() if reduction == MEAN else 1)


def _classes(m: Maker) -> Iterator[Sample]:
    for reduction in (NONE, MEAN, SUM):
        yield Sample((m(2, 3), m.index(2, below=3), None, reduction))
        yield Sample((m(2, 3, 2), m.index(2, 2, below=3), None, reduction))
        yield Sample((m(2, 3), m.index(2, below=3), m(3, low=0.1, high=2), reduction), variables=1)
        yield Sample((m(3, 3), m.index(3, below=3), None, reduction, 1))


@samples("nll_loss_nd", reference=_nll, dtypes=FLOATS, tolerance=HALF)
def _nlls(m: Maker) -> Iterator[Sample]:
    yield from _classes(m)


def _cross_entropy(
    x: Any,
    target: Any,
    weight: Any = None,
    reduction: int = MEAN,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Any:
    logp = special.log_softmax(x, 1)
    weight = np.ones(x.shape[1]) if weight is None else weight
    classes = x.shape[1]
    shaped = weight.reshape(1, -1, *[1] * (x.ndim - 2))
    smooth = -(logp * shaped).sum(1) * (target != ignore_index)
    main = _nll(logp, target, weight, NONE, ignore_index)
    loss = (1 - label_smoothing) * main + label_smoothing / classes * smooth
    if reduction != MEAN:
        return reduced(loss, reduction)
    return loss.sum() / weight[target[target != ignore_index]].sum()


@samples("cross_entropy_loss", reference=_cross_entropy, dtypes=FLOATS, tolerance=HALF)
def _cross_entropies(m: Maker) -> Iterator[Sample]:
    yield from _classes(m)
    yield Sample((m(2, 3), m.index(2, below=3)), {"label_smoothing": 0.25})
