"""Samples of choosing by positions and masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .sample import FLOATS, INTEGERS, Maker, Sample, samples
from .view import calls, table

REAL = ("bool", *INTEGERS, *FLOATS)

samples("nonzero", reference=lambda x: np.argwhere(np.atleast_1d(x))[:, : x.ndim])(
    table(calls(()), calls((3,)), calls((2, 3)), calls((0,)), calls((2, 0)))
)


@samples("where", reference=lambda c, *rest: np.where(c, *rest) if rest else tuple(np.nonzero(np.atleast_1d(c))))
def _where(m: Maker) -> Iterator[Sample]:
    for c, a, b in (((2, 3), (2, 3), (2, 3)), ((3,), (2, 1), ()), ((), (3,), (3,)), ((0, 3), (3,), (1, 1))):
        yield Sample((m.mask(*c), m(*a), m(*b)))
    yield Sample((m.mask(3), m(3), 0))
    yield Sample((m.mask(3), 1, m(3)))
    yield Sample((m(2, 3),))


@samples("masked_fill", reference=lambda x, mask, value: np.where(mask, np.asarray(value).astype(x.dtype), x))
def _masked_fill(m: Maker) -> Iterator[Sample]:
    for shape, mask in (((), ()), ((3,), (3,)), ((2, 3), (3,)), ((2, 3), (2, 1)), ((0, 3), (3,))):
        yield Sample((m(*shape), m.mask(*mask), 1))
    yield Sample((m(2, 3), m.mask(2, 3), m()))


def _axis(x: Any, dim: int) -> int:
    return dim % max(x.ndim, 1)


samples_of_dims = (((3,), 0, 2), ((2, 3), -1, 2), ((2, 3), 0, 4), ((2, 3, 2), 1, 0), ((), 0, 1))


@samples("index_select", reference=lambda x, dim, i: np.take(x, i, dim) if x.ndim else x.copy())
def _index_select(m: Maker) -> Iterator[Sample]:
    for dtype in ("int64", "int32"):
        for shape, dim, n in samples_of_dims:
            below = shape[dim] if shape else 1
            yield Sample((m(*shape), dim, m.index(n, below=below, dtype=dtype)))


def _with_source(x: Any, dim: int, index: Any, source: Any, put: Callable[[Any, Any, Any], None]) -> Any:
    out = x.copy()
    if x.ndim == 0:
        flat = out.reshape(1)
        put(flat, (index.reshape(-1),), np.reshape(source, -1))
        return flat.reshape(())
    put(out, (slice(None),) * _axis(x, dim) + (index,), source)
    return out


def _add_at(x: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    return _with_source(x, dim, index, source * np.asarray(alpha).astype(x.dtype), np.add.at)


@samples("index_add", reference=_add_at)
def _index_add(m: Maker) -> Iterator[Sample]:
    for shape, dim, n in samples_of_dims:
        below = shape[dim] if shape else 1
        source = list(shape)
        if shape:
            source[dim] = n
        index = m.index(n, below=below)
        yield Sample((m(*shape), dim, index, m(*source)))
        if m.dtype != "bool":
            yield Sample((m(*shape), dim, index, m(*source)), {"alpha": 2})


# ---- along a dimension


def _places(m: Maker) -> Iterator[tuple[Any, int, Any]]:
    """A tensor, a dimension, and an index of its rank."""
    for shape, dim, size in (
        ((3,), 0, (2,)),
        ((2, 3), 1, (2, 2)),
        ((2, 3), 0, (1, 3)),
        ((2, 3), -1, (1, 2)),
        ((), 0, ()),
    ):
        yield m(*shape), dim, m.index(*size, below=shape[dim] if shape else 1)


def _at(x: Any, dim: int, index: Any) -> tuple[Any, ...]:
    grid = list(np.indices(index.shape))
    grid[dim % x.ndim] = index
    return tuple(grid)


def _gather(x: Any, dim: int, index: Any) -> Any:
    return x[_at(x, dim, index)] if x.ndim else x


@samples("gather", reference=_gather)
def _gathers(m: Maker) -> Iterator[Sample]:
    for x, dim, index in _places(m):
        yield Sample((x, dim, index))


@samples(
    "take_along_dim",
    reference=lambda x, i, dim=None: x.reshape(-1)[i] if dim is None else np.take_along_axis(x, i, dim),
)
def _take_along_dim(m: Maker) -> Iterator[Sample]:
    yield Sample((m(2, 3), m.index(4, below=6)))
    yield Sample((m(2, 3), m.index(2, 2, below=3), 1))
    yield Sample((m(2, 3), m.index(1, 3, below=2), 0))


@samples("take", reference=lambda x, i: np.take(x, i))
def _take(m: Maker) -> Iterator[Sample]:
    yield Sample((m(2, 3), m.index(4, below=6)))
    yield Sample((m(2, 3), m.index(2, 2, below=6)))
    yield Sample((m(3), m.index(below=3)))
    yield Sample((m(3), m.index(0, below=3)))


def _put_along(x: Any, dim: int, index: Any, src: Any, put: Callable[[Any, Any, Any], None]) -> Any:
    if x.ndim == 0:
        flat = x.reshape(1).copy()
        put(flat, (np.zeros(1, np.int64),), np.reshape(src, 1))
        return flat.reshape(())
    out = x.copy()
    put(out, _at(x, dim, index), src[tuple([slice(0, n) for n in index.shape])] if isinstance(src, np.ndarray) else src)
    return out


def _set(out: Any, where: Any, values: Any) -> None:
    out[where] = np.asarray(values).astype(out.dtype)


_REDUCTIONS = {
    None: _set,
    "add": np.add.at,
    "multiply": np.multiply.at,
    "sum": np.add.at,
    "prod": np.multiply.at,
    "amax": np.maximum.at,
    "amin": np.minimum.at,
}


def _scatter(x: Any, dim: int, index: Any, src: Any, reduce: Any = None, include_self: bool = True) -> Any:
    return _put_along(x, dim, index, src, _REDUCTIONS[reduce])


def _distinct_places(m: Maker) -> Iterator[tuple[Any, int, Any]]:
    """Places that differ, so that the order of writing does not matter."""
    yield m(3), 0, m.index(2, below=3, distinct=True)
    yield m(2, 3), 0, m.index(2, below=2, distinct=True).reshape(2, 1).expand(2, 3).contiguous()
    yield m(2, 3), 1, m.index(2, below=3, distinct=True).reshape(1, 2).expand(2, 2).contiguous()
    yield m(), 0, m.index(below=1)


@samples("scatter", reference=_scatter)
def _scatters(m: Maker) -> Iterator[Sample]:
    for x, dim, index in _distinct_places(m):
        yield Sample((x, dim, index, m(*index.shape)))
        yield Sample((x, dim, index, 1))
    if m.dtype != "bool" and not m.is_complex:
        for reduce in ("add", "multiply"):
            yield Sample((m(2, 3), 1, m.index(2, 3, below=3), 2), {"reduce": reduce}, derivatives=False)


@samples("scatter_add", reference=lambda x, dim, i, src: _put_along(x, dim, i, src, np.add.at))
def _scatter_adds(m: Maker) -> Iterator[Sample]:
    for x, dim, index in _places(m):
        yield Sample((x, dim, index, m(*index.shape)))
    yield Sample((m(2, 3), 1, m.index(2, 2, below=3), m(3, 3)))


@samples("scatter_reduce", reference=_scatter, dtypes=REAL)
def _scatter_reduces(m: Maker) -> Iterator[Sample]:
    for x, dim, index in _places(m):
        for reduce in ("sum", "prod", "amax", "amin"):
            yield Sample((x, dim, index, m(*index.shape), reduce))


def _index_along(x: Any, dim: int, index: Any, source: Any, reduce: Any = None, include_self: bool = True) -> Any:
    put = {None: _set, "prod": np.multiply.at, "amax": np.maximum.at, "amin": np.minimum.at}[reduce]
    return _with_source(x, dim, index, source, put)


@samples("index_copy", reference=_index_along)
def _index_copies(m: Maker) -> Iterator[Sample]:
    yield Sample((m(3), 0, m.index(2, below=3, distinct=True), m(2)))
    yield Sample((m(2, 3), 1, m.index(2, below=3, distinct=True), m(2, 2)))
    yield Sample((m(2, 3), -2, m.index(1, below=2), m(1, 3)))
    yield Sample((m(), 0, m.index(1, below=1), m(1)))


@samples("index_fill", reference=_index_along)
def _index_fills(m: Maker) -> Iterator[Sample]:
    for shape, dim, n in samples_of_dims:
        below = shape[dim] if shape else 1
        index = m.index(min(n, below), below=below, distinct=True)
        yield Sample((m(*shape), dim, index, 1))
        yield Sample((m(*shape), dim, index, m()))


@samples("index_reduce", reference=_index_along, dtypes=REAL[1:])
def _index_reduces(m: Maker) -> Iterator[Sample]:
    for reduce in ("prod", "amax", "amin"):
        yield Sample((m(2, 3), 1, m.index(4, below=3), m(2, 4), reduce))
        yield Sample((m(3), 0, m.index(2, below=3), m(2), reduce))


def _index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    out = x.copy()
    (np.add.at if accumulate else _set)(out, tuple(indices), values)
    return out


@samples("index_put", reference=_index_put)
def _index_puts(m: Maker) -> Iterator[Sample]:
    yield Sample((m(3), [m.index(2, below=3, distinct=True)], m(2)))
    yield Sample((m(2, 3), [m.index(2, below=2, distinct=True)], m(3)))
    yield Sample(
        (m(2, 3), [m.index(2, below=2, distinct=True).reshape(2, 1), m.index(3, below=3, distinct=True)], m(), False)
    )
    yield Sample((m(2, 3), [m.mask(2, 3)], m()))
    if m.dtype != "bool":
        yield Sample((m(2, 3), [m.index(4, below=2), m.index(4, below=3)], m(4), True))


def _put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    flat = x.reshape(-1).copy()
    (np.add.at if accumulate else _set)(flat, index.reshape(-1), source.reshape(-1))
    return flat.reshape(x.shape)


@samples("put", reference=_put)
def _puts(m: Maker) -> Iterator[Sample]:
    yield Sample((m(2, 3), m.index(2, below=6, distinct=True), m(2)))
    yield Sample((m(2, 3), m.index(2, 2, below=6), m(2, 2), True))
    yield Sample((m(3), m.index(0, below=3), m(0)))


@samples(
    "masked_select",
    reference=lambda x, mask: np.broadcast_arrays(x, mask)[0][
        np.broadcast_to(mask, np.broadcast_shapes(x.shape, mask.shape))
    ],
)
def _masked_select(m: Maker) -> Iterator[Sample]:
    for shape, mask in (((3,), (3,)), ((2, 3), (3,)), ((3,), (2, 1)), ((), ()), ((0,), (0,))):
        yield Sample((m(*shape), m.mask(*mask)))


def _masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    out = x.copy()
    mask = np.broadcast_to(mask, x.shape)
    out[mask] = source.reshape(-1)[: mask.sum()]
    return out


@samples("masked_scatter", reference=_masked_scatter)
def _masked_scatters(m: Maker) -> Iterator[Sample]:
    yield Sample((m(3), m.mask(3), m(3)))
    yield Sample((m(2, 3), m.mask(3), m(2, 3)))
    yield Sample((m(2, 3), m.mask(2, 1), m(7)))


@samples("nonzero_static", reference=lambda x, size, fill_value=-1: _nonzero_static(x, size, fill_value))
def _nonzero_statics(m: Maker) -> Iterator[Sample]:
    yield Sample((m(2, 3),), {"size": 8})
    yield Sample((m(3),), {"size": 2, "fill_value": 7})


def _nonzero_static(x: Any, size: int, fill_value: int) -> Any:
    found = np.argwhere(x)[:size]
    rest = np.full((size - len(found), x.ndim), fill_value, np.int64)
    return np.concatenate([found, rest])
