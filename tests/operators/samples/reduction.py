"""Samples of the reductions: over everything, over dimensions, with and without keeping them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import rushlight

from .sample import Maker, Sample, samples

HALF = {"float16": (4e-3, 4e-3), "bfloat16": (3e-2, 3e-2)}


def axes(dim: Any) -> Any:
    """NumPy's axis of a `dim`: no dimensions are all."""
    return tuple(dim) or None if isinstance(dim, tuple | list) else dim


def over_dims(f: Callable[..., Any]) -> Callable[..., Any]:
    """The reference of a reduction: `f` of an array, with `axis` and `keepdims`."""

    def reference(x: Any, dim: Any = None, keepdim: bool = False, **rest: Any) -> Any:
        rest.pop("dtype", None)
        if x.ndim == 0 and dim not in (None, ()):
            dim = None
        return f(x, axis=axes(dim), keepdims=keepdim, **rest)

    return reference


def _sum(x: Any, **how: Any) -> Any:
    return np.sum(x, dtype=np.int64 if x.dtype.kind in "iub" else None, **how)


def _count(x: Any, dim: Any = None) -> Any:
    return np.sum(x != 0, axis=axes(dim) if x.ndim else None)


def reduced(empty: bool = True, one: bool = True, several: bool = True) -> Callable[[Maker], Iterator[Sample]]:
    """Shapes and dimensions. `empty`: nothing to reduce is fine; `one`, `several`: what dim may be."""

    def make(m: Maker) -> Iterator[Sample]:
        for shape in ((), (3,), (2, 3), *(((0,), (2, 0, 3)) if empty else ())):
            yield Sample((m(*shape),))
        yield Sample((m(3, 1).expand(3, 4),))
        if one:
            yield Sample((m(), 0))
            for dim in (0, 1, -1):
                yield Sample((m(2, 3, 2), dim))
            yield Sample((m(2, 3), 1), {"keepdim": True})
            yield Sample((m(2, 0, 3), 2))
            yield Sample((m(1, 3), 0))
        if several:
            yield Sample((m(2, 3, 2), (0, 2)))
            yield Sample((m(2, 3, 2),), {"dim": (-1, 0), "keepdim": True})
            yield Sample((m(2, 3), (0, 1)))
            if empty:
                yield Sample((m(2, 3), ()))

    return make


def without_ties(make: Callable[[Maker], Iterator[Sample]]) -> Callable[[Maker], Iterator[Sample]]:
    """The same samples; where the greatest is not one, there is no derivative."""

    def marked(m: Maker) -> Iterator[Sample]:
        for s in make(m):
            s.derivatives = 0 not in s.args[0].stride()
            yield s

    return marked


def large(m: Maker) -> Iterator[Sample]:
    """Enough for several threads: everything, long and short dimensions."""
    yield Sample((m(300, 400),))
    yield Sample((m(300, 401), 0))
    yield Sample((m(401, 300), 1))
    yield Sample((m(400, 301).t(), 1))


def with_dtype(make: Callable[[Maker], Iterator[Sample]]) -> Callable[[Maker], Iterator[Sample]]:
    """The same samples, and one that is accumulated in another type."""

    def extended(m: Maker) -> Iterator[Sample]:
        yield from make(m)
        if not m.is_complex:
            yield Sample((m(2, 3),), {"dtype": rushlight.float64})

    return extended


samples("sum", reference=over_dims(_sum), large=large, tolerance=HALF)(with_dtype(reduced()))
samples("nansum", reference=over_dims(lambda x, **how: _sum(np.nan_to_num(x, posinf=np.inf, neginf=-np.inf), **how)))(
    with_dtype(reduced())
)
samples("mean", reference=over_dims(np.mean), large=large, tolerance=HALF)(with_dtype(reduced()))
samples("nanmean", reference=over_dims(np.nanmean), tolerance=HALF)(with_dtype(reduced()))
samples("all", reference=lambda x, dim=None, **how: x != 0 if dim == () else over_dims(np.all)(x, dim, **how))(
    reduced()
)
samples("any", reference=lambda x, dim=None, **how: x != 0 if dim == () else over_dims(np.any)(x, dim, **how))(
    reduced()
)
samples("amax", reference=over_dims(np.max), large=large)(without_ties(reduced(empty=False)))
samples("amin", reference=over_dims(np.min), large=large)(without_ties(reduced(empty=False)))
samples("count_nonzero", reference=_count)(
    lambda m: (s for s in reduced()(m) if "keepdim" not in s.kwargs and s.args[1:] != ((),))
)


@samples("max", reference=lambda x, *rest, **how: _extremum(np.max, np.argmax, np.maximum, x, *rest, **how))
@samples("min", reference=lambda x, *rest, **how: _extremum(np.min, np.argmin, np.minimum, x, *rest, **how))
def _extrema(m: Maker) -> Iterator[Sample]:
    yield from without_ties(reduced(empty=False, several=False))(m)
    yield Sample((m(2, 3), m(3)))
    yield Sample((m(), m(2)))


def _extremum(value: Any, place: Any, other: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is None:
        return value(x)
    if isinstance(dim, np.ndarray):
        return other(x, dim)
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    return value(x, axis=dim, keepdims=keepdim), place(x, axis=dim, keepdims=keepdim)


@samples("argmax", reference=lambda x, dim=None, keepdim=False: _place(np.argmax, x, dim, keepdim))
@samples("argmin", reference=lambda x, dim=None, keepdim=False: _place(np.argmin, x, dim, keepdim))
def _places(m: Maker) -> Iterator[Sample]:
    yield from reduced(empty=False, several=False)(m)


def _place(f: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    return f(x) if x.ndim == 0 else f(x, axis=dim, keepdims=keepdim)


@samples("aminmax", reference=lambda x, dim=None, keepdim=False: _both(x, dim if x.ndim else None, keepdim))
def _aminmax(m: Maker) -> Iterator[Sample]:
    for s in without_ties(reduced(empty=False, several=False))(m):
        yield replace(s, args=s.args[:1], kwargs={**s.kwargs, **({"dim": s.args[1]} if s.args[1:] else {})})


def _both(x: Any, dim: Any, keepdim: bool) -> Any:
    return np.min(x, axis=dim, keepdims=keepdim), np.max(x, axis=dim, keepdims=keepdim)


def _correction(unbiased: Any, correction: Any) -> float:
    return correction if correction is not None else float(unbiased is not False)


def _var(x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, correction: Any = None) -> Any:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    axis = axes(dim) if x.ndim else None
    n = x.size if axis is None else int(np.prod([x.shape[a] for a in (axis if isinstance(axis, tuple) else (axis,))]))
    square = np.sum(np.abs(x - x.mean(axis, keepdims=True)) ** 2, axis=axis, keepdims=keepdim)
    return square / np.maximum(n - _correction(unbiased, correction), 0)


def _mean_of(f: Callable[[Any], Any]) -> Callable[..., Any]:
    def reference(x: Any, dim: Any = None, *rest: Any, keepdim: bool = False, **how: Any) -> Any:
        axis = None if isinstance(dim, bool) or not x.ndim else axes(dim)
        return f(_var(x, dim, *rest, keepdim=keepdim, **how)), x.mean(axis, keepdims=keepdim)

    return reference


@samples("var", reference=_var, tolerance=HALF, large=large)
@samples("std", reference=lambda *args, **how: np.sqrt(_var(*args, **how)), tolerance=HALF, large=large)
@samples("var_mean", reference=_mean_of(lambda v: v), tolerance=HALF)
@samples("std_mean", reference=_mean_of(np.sqrt), tolerance=HALF)
def _moments(m: Maker) -> Iterator[Sample]:
    for shape in ((3,), (2, 3)):
        yield Sample((m(*shape),))
        yield Sample((m(*shape), False))
        yield Sample((m(*shape), 0))
    yield Sample((m(),), {"correction": 0}, derivatives=False)
    yield Sample((m(),), derivatives=False)
    yield Sample((m(2, 0, 3), 1), derivatives=False)
    yield Sample((m(2, 3, 2), (0, 2), False))
    yield Sample((m(2, 3),), {"dim": 1, "keepdim": True})
    yield Sample((m(2, 3),), {"dim": (0, 1), "correction": 2})
    yield Sample((m(2, 3),), {"correction": 0})
