"""Samples of choosing by positions and masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .sample import Maker, Sample, samples
from .view import calls, table

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
