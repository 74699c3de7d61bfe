"""Samples of what is composed of special functions and powers, of covariances, and of cross products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import special

from .sample import FLOATS, INTEGERS, Maker, Sample, samples

REAL = ("bool", *INTEGERS, *FLOATS)
NUMBERS = (*INTEGERS, *FLOATS)
HALF = {"float16": (4e-3, 4e-3), "bfloat16": (3e-2, 3e-2)}


@samples("polygamma", reference=lambda n, x: special.polygamma(n, np.asarray(x, np.float64)), dtypes=FLOATS)
def _polygamma(m: Maker) -> Iterator[Sample]:
    for shape in ((), (3,), (2, 3), (0,)):
        for n in (0, 1, 2, 4):
            yield Sample((n, m(*shape, low=0.6, high=2.5)))


@samples("mvlgamma", reference=lambda x, p: special.multigammaln(x[..., None], p).reshape(x.shape), dtypes=FLOATS)
def _mvlgamma(m: Maker) -> Iterator[Sample]:
    for shape in ((), (3,), (2, 3)):
        for p in (1, 2, 3):
            yield Sample((m(*shape, low=1.6, high=4), p))


@samples("float_power", reference=lambda a, b: np.float_power(a, b), dtypes=NUMBERS)
def _float_power(m: Maker) -> Iterator[Sample]:
    for a, b in (((2, 3), (3,)), ((), ()), ((0,), (1,))):
        yield Sample((m(*a, low=0.6, high=2), m(*b, low=1, high=2)))
    for number in (2, 0.5, -1):
        yield Sample((m(2, 3, low=0.6, high=2), number))
    yield Sample((2, m(3)))


@samples("float_power_", reference=lambda a, b: np.float_power(a, b), dtypes=("float64",))
def _float_power_in_place(m: Maker) -> Iterator[Sample]:
    yield Sample((m(2, 3, low=0.6, high=2), m(3)))
    yield Sample((m(2, 3, low=0.6, high=2), 2))


@samples("ldexp", reference=lambda a, b: a * np.power(2.0, b), dtypes=REAL)
def _ldexp(m: Maker) -> Iterator[Sample]:
    for a, b in (((2, 3), (3,)), ((), (2,)), ((0, 2), (2,))):
        yield Sample((m(*a), m(*b, dtype="int64")))
        yield Sample((m(*a), m(*b)))


def _parts(x: Any) -> Any:
    fraction, exponent = np.frexp(x)
    return fraction, np.where(np.isfinite(x), exponent, 0)


@samples("frexp", reference=_parts, dtypes=FLOATS, own_precision=True)
def _frexp(m: Maker) -> Iterator[Sample]:
    for shape in ((), (3,), (2, 3), (0,)):
        yield Sample((m(*shape, low=-9, high=9),))
    yield Sample((m.special(),), derivatives=False)


def _cov(x: Any, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    return np.cov(x.astype(np.float64), ddof=correction, fweights=fweights, aweights=aweights)


@samples("cov", reference=_cov, dtypes=NUMBERS, tolerance=HALF)
def _covs(m: Maker) -> Iterator[Sample]:
    counts = m.numbers(1, 2, 1).long()
    yield Sample((m(3),))
    yield Sample((m(2, 3),))
    yield Sample((m(2, 3),), {"correction": 0})
    yield Sample((m(2, 3),), {"fweights": counts})
    if m.dtype in ("float32", "float64"):
        weights = m(3, low=0.5, high=2)
        yield Sample((m(2, 3),), {"aweights": weights})
        yield Sample((m(2, 3),), {"aweights": weights, "fweights": counts, "correction": 0})


@samples("corrcoef", reference=lambda x: np.corrcoef(x.astype(np.float64)), dtypes=("float32", "float64"))
def _corrcoef(m: Maker) -> Iterator[Sample]:
    yield Sample((m(3),))
    yield Sample((m(2, 4),))
    yield Sample((m(3, 5),))


def _cross(a: Any, b: Any, dim: int | None = None) -> Any:
    a, b = np.broadcast_arrays(a, b)
    axis = dim if dim is not None else a.shape.index(3)
    return np.cross(a, b, axis=axis)


@samples("linalg_cross", reference=lambda a, b, dim=-1: _cross(a, b, dim), dtypes=NUMBERS, tolerance=HALF)
def _linalg_cross(m: Maker) -> Iterator[Sample]:
    yield Sample((m(3), m(3)))
    yield Sample((m(2, 3), m(1, 3)))
    yield Sample((m(3, 2), m(3, 2)), {"dim": 0})
    yield Sample((m(0, 3), m(0, 3)))


@samples("cross", reference=_cross, dtypes=NUMBERS, tolerance=HALF)
def _crosses(m: Maker) -> Iterator[Sample]:
    yield Sample((m(3), m(3)))
    yield Sample((m(3, 2), m(3, 2)))
    yield Sample((m(2, 3), m(2, 3), 1))
    yield Sample((m(3, 3), m(3, 1), 0))


def _renorm(x: Any, p: float, dim: int, limit: float) -> Any:
    others = tuple(d for d in range(x.ndim) if d != dim % x.ndim)
    norm = np.sum(np.abs(x) ** p, others, keepdims=True) ** (1 / p)
    return x * np.where(norm > limit, limit / (norm + 1e-7), 1)


@samples("renorm", reference=_renorm, dtypes=FLOATS, tolerance=HALF)
def _renorms(m: Maker) -> Iterator[Sample]:
    yield Sample((m(2, 3), 2, 0, 1))
    yield Sample((m(2, 3), 1, -1, 1.5))
    yield Sample((m(2, 3), 3, 1, 100.0))
    yield Sample((m(2, 2, 2), 2.5, 1, 1.0))
