"""Samples of sorting, choosing by rank, counting and searching."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .sample import FLOATS, INTEGERS, Maker, Sample, samples

REAL = ("bool", *INTEGERS, *FLOATS)


def _distinct(m: Maker, *shape: int) -> Any:
    """Different numbers, so that positions are defined: a stable order among equals is not promised."""
    n = int(np.prod(shape))
    return m(*shape) if m.is_floating else m.index(*shape, below=max(n, 1), distinct=True).to(m(0).dtype)


def _each(m: Maker) -> Iterator[Sample]:
    for shape, kwargs in (((), {}), ((3,), {}), ((2, 3), {"dim": 0}), ((2, 3), {}), ((0, 2), {"dim": 0})):
        yield Sample((_distinct(m, *shape) if m.dtype != "bool" else m(*shape),), kwargs)


def _argsort(x: Any, dim: int, descending: bool) -> Any:
    if x.ndim == 0:
        return np.zeros((), np.int64)
    if descending:
        return np.flip(x.shape[dim] - 1 - np.argsort(np.flip(x, dim), dim, kind="stable"), dim)
    return np.argsort(x, dim, kind="stable")


def _sort(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    places = _argsort(x, dim, descending)
    return (x, places) if x.ndim == 0 else (np.take_along_axis(x, places, dim), places)


@samples("sort", reference=_sort, dtypes=REAL)
@samples("argsort", reference=lambda *args, **how: _sort(*args, **how)[1], dtypes=REAL)
def _sorts(m: Maker) -> Iterator[Sample]:
    for s in _each(m):
        yield Sample(s.args, {**s.kwargs, "stable": True})
        yield Sample(s.args, {**s.kwargs, "stable": True, "descending": True})
        if m.dtype != "bool":
            yield s


@samples("msort", reference=lambda x: np.sort(x, 0) if x.ndim else x, dtypes=REAL)
def _msort(m: Maker) -> Iterator[Sample]:
    for s in _each(m):
        yield Sample(s.args)


def _topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    values, places = _sort(x, dim, largest)
    return (values, places) if x.ndim == 0 else (_first(values, k, dim), _first(places, k, dim))


def _first(x: Any, k: int, dim: int) -> Any:
    return np.take(x, np.arange(k), dim)


@samples("topk", reference=_topk, dtypes=REAL[1:])
def _topks(m: Maker) -> Iterator[Sample]:
    yield Sample((_distinct(m, 4), 2))
    yield Sample((_distinct(m, 2, 3), 2, 0, False))
    yield Sample((_distinct(m, 2, 3), 3))
    if m.dtype == "float64":
        yield Sample((_distinct(m, 2, 3), 0))
    yield Sample((m(), 1))


def _kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    values, places = _sort(x, dim)
    if x.ndim == 0:
        return values, places
    pick = [np.take(r, [k - 1], dim) for r in (values, places)]
    return tuple(pick) if keepdim else tuple(np.squeeze(p, dim) for p in pick)


@samples("kthvalue", reference=_kthvalue, dtypes=REAL[1:])
def _kthvalues(m: Maker) -> Iterator[Sample]:
    yield Sample((_distinct(m, 4), 2))
    yield Sample((_distinct(m, 2, 3), 1, 0))
    yield Sample((_distinct(m, 2, 3), 3), {"keepdim": True})
    yield Sample((m(), 1))


def _median(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is None:
        return np.sort(x, None)[(x.size - 1) // 2]
    return _kthvalue(x, (x.shape[dim] + 1) // 2 if x.ndim else 1, dim, keepdim)


@samples("median", "nanmedian", reference=_median, dtypes=REAL[1:])
def _medians(m: Maker) -> Iterator[Sample]:
    yield Sample((_distinct(m, 5),))
    yield Sample((_distinct(m, 2, 3),))
    yield Sample((_distinct(m, 2, 3), 1))
    yield Sample((_distinct(m, 2, 3), 0, True))
    yield Sample((m(),))
    yield Sample((m(), 0))


@samples("mode", reference=lambda x, dim=-1, keepdim=False: _mode(x, dim, keepdim), dtypes=REAL)
def _modes(m: Maker) -> Iterator[Sample]:
    yield Sample((m.numbers(1, 0, 1, 0, 1),), derivatives=False)
    yield Sample((m.numbers(1, 0, 1, 0, 0, 1).reshape(2, 3), 1, True), derivatives=False)
    yield Sample((m(),))


def _mode(x: Any, dim: int, keepdim: bool) -> Any:
    if x.ndim == 0:
        return x, np.zeros((), np.int64)

    def of_row(row: Any) -> Any:
        values, counts = np.unique(row, return_counts=True)
        best = values[np.argmax(counts)]
        return best, len(row) - 1 - np.argmax(row[::-1] == best)

    rows = np.moveaxis(x, dim, -1)
    found = [of_row(r) for r in rows.reshape(-1, rows.shape[-1])]
    both = [np.reshape([f[i] for f in found], rows.shape[:-1]) for i in (0, 1)]
    return tuple(np.expand_dims(b, dim) if keepdim else b for b in both)


@samples("searchsorted", reference=lambda s, x, right=False, **_: _search(s, x, right), dtypes=REAL[1:])
def _searchsorted(m: Maker) -> Iterator[Sample]:
    row = m.numbers(0, 1, 1, 2)
    yield Sample((row, m(2, 3)))
    yield Sample((row, row), {"right": True})
    yield Sample((row, 1))
    yield Sample((row, m(0)))
    yield Sample((row, row), {"out_int32": True})


@samples("bucketize", reference=lambda x, s, right=False, **_: _search(s, x, right), dtypes=REAL[1:])
def _bucketize(m: Maker) -> Iterator[Sample]:
    for s in _searchsorted(m):
        yield Sample(s.args[::-1], s.kwargs)


def _search(ordered: Any, x: Any, right: bool) -> Any:
    return np.searchsorted(ordered, x, "right" if right else "left")


@samples("bincount", reference=lambda x, weights=None, minlength=0: np.bincount(x, weights, minlength), dtypes=INTEGERS)
def _bincount(m: Maker) -> Iterator[Sample]:
    yield Sample((m(5, low=0, high=3),))
    yield Sample((m(5, low=0, high=3), None, 6))
    yield Sample((m(5, low=0, high=3), m(5, dtype="float64")))
    yield Sample((m(0),))


def _unique(x: Any, inverse: bool, counts: bool, dim: Any) -> Any:
    found = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    where = np.reshape(found[1], x.shape if dim is None else (-1,))
    none = np.zeros(0, np.int64)
    return found[0], where if inverse else none, found[2] if counts else none


def _few(m: Maker) -> Iterator[Sample]:
    """Numbers of which several are equal, for each choice of results and dimension."""
    for inverse, counts in ((False, False), (True, False), (True, True)):
        how = {"return_inverse": inverse, "return_counts": counts}
        yield Sample((m.numbers(1, 0, 1, 2, 2, 0),), how)
        yield Sample((m.numbers(1, 0, 1, 0, 2, 0).reshape(3, 2),), how)
        yield Sample((m.numbers(1, 0, 1, 0, 2, 0).reshape(3, 2),), {**how, "dim": 0})
        yield Sample((m.numbers(1, 1, 0, 0, 2, 0).reshape(2, 3),), {**how, "dim": -1})
        yield Sample((m(2, 3, 2, low=0, high=1),), {**how, "dim": 2})
        yield Sample((m(2, 3, 2, low=0, high=1),), {**how, "dim": 1})
        yield Sample((m(),), how)
        yield Sample((m(0),), how)
        yield Sample((m(0, 2),), {**how, "dim": 0})


@samples(
    "_unique2",
    reference=lambda x, return_inverse=False, return_counts=False, dim=None: _unique(
        x, return_inverse, return_counts, dim
    ),
    dtypes=REAL,
)
def _uniques(m: Maker) -> Iterator[Sample]:
    yield from _few(m)


def _runs(x: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None) -> Any:
    rows = x.reshape(-1) if dim is None else np.moveaxis(x, dim, 0)
    starts = [i for i in range(len(rows)) if i == 0 or (rows[i] != rows[i - 1]).any()]
    places = np.array([sum(s <= i for s in starts) - 1 for i in range(len(rows))], np.int64)
    counts = np.diff([*starts, len(rows)]) if starts else np.zeros(0, np.int64)
    kept = rows[np.array(starts, np.int64)]
    none = np.zeros(0, np.int64)
    return (
        kept if dim is None else np.moveaxis(kept, 0, dim),
        (places.reshape(x.shape) if dim is None else places) if return_inverse else none,
        counts if return_counts else none,
    )


samples("_unique_consecutive", reference=_runs, dtypes=REAL)(_few)


@samples("one_hot", reference=lambda x, n=-1: np.eye(n if n > 0 else x.max() + 1, dtype=np.int64)[x], dtypes=("int64",))
def _one_hot(m: Maker) -> Iterator[Sample]:
    yield Sample((m.index(4, below=3), 3))
    yield Sample((m.index(4, below=3),))
    yield Sample((m.index(2, 3, below=3), 5))
    yield Sample((m.index(below=3), 4))
    yield Sample((m.index(0, 2, below=3), 3))


@samples("is_nonzero", reference=lambda x: bool(x.reshape(())))
def _is_nonzero(m: Maker) -> Iterator[Sample]:
    for shape in ((), (1,), (1, 1)):
        yield Sample((m(*shape),))
        yield Sample((m.numbers(0).reshape(shape),))


@samples("is_same_size", reference=lambda x, y: x.shape == y.shape)
def _is_same_size(m: Maker) -> Iterator[Sample]:
    for a, b in (((), ()), ((2, 3), (2, 3)), ((2, 3), (3, 2)), ((2,), (2, 1)), ((0,), (0,))):
        yield Sample((m(*a), m(*b, dtype="int64")))
