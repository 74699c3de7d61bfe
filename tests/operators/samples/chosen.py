"""Samples of operators whose arguments choose among pointwise ones: clamp, gelu, addcmul, isclose and their like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import special

from .sample import FLOATS, Maker, Sample, samples

SHAPES = ((), (3,), (2, 3), (0,), (2, 0, 3))


def _clip(x: Any, min: Any = None, max: Any = None) -> Any:
    x = x.astype(np.int64) if x.dtype.kind in "iub" else x
    x = x if min is None else np.maximum(x, min)
    return x if max is None else np.minimum(x, max)


@samples("clamp", "clip", reference=_clip)
def _clamp(m: Maker) -> Iterator[Sample]:
    low = 0 if m.dtype == "uint8" else -1
    for shape in SHAPES:
        yield Sample((m(*shape), low, 1))
    yield Sample((m(2, 3),), {"min": 0})
    yield Sample((m(2, 3),), {"max": 1})
    yield Sample((m(2, 3), 1, low))
    yield Sample((m(2, 3), m(3, low=-2, high=0), m(2, 1, low=0.1, high=2)))
    yield Sample((m(2, 3), m(), None))
    yield Sample((m(2, 3),), {"max": m(3)})
    if m.is_floating:
        yield Sample((m(2, 3), -0.75, 0.75))
        yield Sample((m.special(), -1, 1), derivatives=False)


@samples("clamp_min", reference=np.maximum)
@samples("clamp_max", reference=np.minimum)
def _clamp_one(m: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((m(*shape), 1))
    yield Sample((m(2, 3), m(3)))
    yield Sample((m(2, 1), m(1, 3)))


@samples("addcmul", reference=lambda x, a, b, value=1: x + np.asarray(value).astype(x.dtype) * a * b)
def _addcmul(m: Maker) -> Iterator[Sample]:
    for shapes in (((), (), ()), ((2, 3), (3,), (2, 1)), ((3,), (3,), (3,)), ((0, 3), (3,), (1, 3))):
        yield Sample(tuple([m(*s) for s in shapes]))
    yield Sample((m(2, 3), m(2, 3), m(3)), {"value": 2})


@samples("addcdiv", reference=lambda x, a, b, value=1: x + value * (a / b))
def _addcdiv(m: Maker) -> Iterator[Sample]:
    for s in _addcmul(m):
        yield Sample((*s.args[:2], m(*s.args[2].shape, low=1, high=3)), s.kwargs)


def _gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x * special.ndtr(x)


@samples("gelu", reference=_gelu)
def _gelus(m: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((m(*shape),))
        yield Sample((m(*shape),), {"approximate": "tanh"})


@samples("logit", reference=lambda x, eps=None: special.logit(x if eps is None else np.clip(x, eps, 1 - eps)))
def _logit(m: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((m(*shape, low=0.1, high=0.9),))
    yield Sample((m(2, 3, low=0.1, high=0.9), 0.25))
    yield Sample((m(3, low=0.1, high=0.9),), {"eps": 0.25})


def _finite(x: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    return np.nan_to_num(x, nan=nan or 0.0, posinf=posinf, neginf=neginf)


@samples("nan_to_num", reference=_finite)
def _nan_to_num(m: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((m(*shape),))
    if m.is_floating:
        yield Sample((m.special(), 1.0, 2.0, -3.0), derivatives=False)


@samples("round", reference=lambda x, decimals=0: np.round(x, decimals) if x.dtype.kind == "f" else x)
def _round(m: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample((m(*shape),))
    if m.is_floating:
        yield Sample((m.special(),), derivatives=False)
        yield Sample((m.numbers(0.5, 1.5, 2.5, -0.5),), derivatives=False)
        yield Sample((m(2, 3),), {"decimals": 1})
        yield Sample((m(2, 3, low=-200, high=200),), {"decimals": -1})


def _close(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    return np.isclose(x, y, rtol, atol, equal_nan)


@samples("isclose", reference=_close)
@samples("allclose", reference=lambda *args, **how: bool(np.all(_close(*args, **how))))
def _isclose(m: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        x = m(*shape)
        yield Sample((x, x.clone()))
        yield Sample((x, m(*shape)))
    if m.is_floating:
        yield Sample((m(2, 3), m(3), 0.5, 0.5))
        yield Sample((m.special(), m.special()))
        yield Sample((m.special(), m.special()), {"equal_nan": True})


@samples("glu", reference=lambda x, dim=-1: _gated(*np.split(x, 2, dim)), dtypes=FLOATS)
def _glu(m: Maker) -> Iterator[Sample]:
    yield Sample((m(4),))
    yield Sample((m(2, 4),))
    yield Sample((m(4, 3), 0))
    yield Sample((m(0, 4), -1))


def _gated(a: Any, b: Any) -> Any:
    return a * special.expit(b)


def _prelu(x: Any, weight: Any) -> Any:
    shape = [1] * x.ndim
    if x.ndim > 1:
        shape[1] = -1
    return np.where(x > 0, x, weight.reshape(shape) * x)


@samples("prelu", reference=_prelu)
def _prelus(m: Maker) -> Iterator[Sample]:
    yield Sample((m(3), m(1)))
    yield Sample((m(2, 3), m(1)))
    yield Sample((m(2, 3), m(3)))
    yield Sample((m(2, 3, 2), m(3)))
    yield Sample((m(), m(1)))


def _softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    return special.softmax(x, dim if x.ndim else None)


def _log_softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    return special.log_softmax(x, dim if x.ndim else None)


def _large(m: Maker) -> Iterator[Sample]:
    yield Sample((m(400, 300), 1))
    yield Sample((m(400, 300), 0))


HALF = {"float16": (4e-3, 4e-3), "bfloat16": (3e-2, 3e-2)}


@samples("softmax", reference=_softmax, large=_large, tolerance=HALF)
@samples("log_softmax", reference=_log_softmax, large=_large, tolerance=HALF)
def _softmaxes(m: Maker) -> Iterator[Sample]:
    for shape, dim in (((), 0), ((3,), 0), ((2, 3), 1), ((2, 3), 0), ((2, 3, 2), -2), ((0, 3), 1), ((1, 3), 0)):
        yield Sample((m(*shape), dim))
    if m.is_floating:
        yield Sample((m.numbers(-float("inf"), 0.0, 30.0), 0), derivatives=False)


@samples("logsumexp", reference=lambda x, dim, keepdim=False: _logsumexp(x, dim, keepdim))
def _logsumexps(m: Maker) -> Iterator[Sample]:
    for shape, dim in (((), 0), ((3,), 0), ((2, 3), 1), ((2, 3, 2), (0, -1)), ((0, 3), 0), ((1, 3), 0)):
        yield Sample((m(*shape), dim), derivatives=0 not in shape)
        yield Sample((m(*shape), dim, True), derivatives=0 not in shape)
    if m.is_floating:
        infinite = -float("inf")
        yield Sample((m.numbers(infinite, infinite), 0), derivatives=False)


def _logsumexp(x: Any, dim: Any, keepdim: bool) -> Any:
    if x.ndim == 0:
        return x
    if x.size == 0:
        return np.log(np.sum(np.exp(x), axis=dim, keepdims=keepdim))
    return special.logsumexp(x, axis=dim, keepdims=keepdim)


@samples(
    "dist", reference=lambda x, y, p=2: np.linalg.norm(np.ravel(x - y), p) if np.size(x - y) else 0.0, dtypes=FLOATS
)
def _dist(m: Maker) -> Iterator[Sample]:
    for p in (2, 1, 0.5, 3, float("inf"), 0):
        yield Sample((m(2, 3), m(3), p), derivatives=p != 0)
    yield Sample((m(0), m(0)))


@samples("equal", reference=lambda x, y: bool(x.shape == y.shape and (x == y).all()))
def _equal(m: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        x = m(*shape)
        yield Sample((x, x.clone()))
        yield Sample((x, m(*shape)))
    yield Sample((m(3), m(2)))
