"""Samples of joining tensors and of taking them apart again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .sample import Maker, Sample, samples
from .view import calls, table


@samples(
    "cat",
    "concat",
    "concatenate",
    reference=lambda ts, dim=0: np.concatenate([t for t in ts if t.shape != (0,)] or ts, dim),
)
def _cat(m: Maker) -> Iterator[Sample]:
    yield Sample(([m(3)],))
    yield Sample(([m(3), m(2)],))
    yield Sample(([m(2, 3), m(1, 3), m(2, 3)], 0))
    yield Sample(([m(2, 3), m(2, 1)], -1))
    yield Sample(((m(2, 3), m(2, 3)),), {"dim": 1})
    yield Sample(([m(0), m(2, 3)], 0))
    yield Sample(([m(0, 3), m(2, 3)], 0))


@samples("stack", reference=lambda ts, dim=0: np.stack(ts, dim))
def _stack(m: Maker) -> Iterator[Sample]:
    yield Sample(([m(), m()],))
    yield Sample(([m(3), m(3), m(3)],))
    yield Sample(([m(2, 3), m(2, 3)], 1))
    yield Sample(((m(2, 3),),), {"dim": -1})
    yield Sample(([m(0), m(0)],))


def _rows(m: Maker) -> Iterator[Sample]:
    yield Sample(([m(), m()],))
    yield Sample(([m(3), m(3)],))
    yield Sample(([m(2, 3), m(2, 3)],))
    yield Sample(((m(1, 2, 2), m(1, 2, 2)),))
    yield Sample(([m(0, 2), m(0, 2)],))


samples("hstack", reference=np.hstack)(_rows)
samples("vstack", "row_stack", reference=np.vstack)(_rows)
samples("dstack", reference=np.dstack)(_rows)
samples("column_stack", reference=lambda ts: np.column_stack([t.reshape(1, 1) if t.ndim == 0 else t for t in ts]))(
    _rows
)


# ---- other orders and repetitions

samples("flip", reference=lambda x, dims: np.flip(x, dims))(
    table(calls((3,), (0,)), calls((2, 3), (0, 1)), calls((2, 3), (-1,)), calls((0, 2), (0,)), calls((2, 3), ()))
)
samples("fliplr", reference=np.fliplr)(table(calls((2, 3)), calls((2, 0))))
samples("flipud", reference=np.flipud)(table(calls((2, 3)), calls((3,))))
samples("rot90", reference=lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims))(
    table(calls((2, 3)), calls((2, 3), 2), calls((2, 3), -1), calls((2, 3, 2), 1, (1, 2)))
)
samples("roll", reference=lambda x, shifts, dims=(): np.roll(x, shifts, dims or None))(
    table(calls((4,), 1), calls((2, 3), 2), calls((2, 3), -1, 1), calls((2, 3), (1, 2), (0, 1)), calls((0,), 1, 0))
)
samples("repeat", "tile", reference=np.tile)(
    table(calls((3,), (2,)), calls((2, 3), (1, 2)), calls((3,), (2, 1, 2)), calls((2,), (0,)))
)
samples("tril", reference=np.tril)(table(calls((3, 3)), calls((2, 3), 1), calls((2, 3, 2), -1), calls((0, 2))))
samples("triu", reference=np.triu)(table(calls((3, 3)), calls((2, 3), 1), calls((2, 3, 2), -1), calls((0, 2))))


@samples("repeat_interleave", reference=lambda x, n=None, dim=None: _interleaved(x, n, dim))
def _repeat_interleave(m: Maker) -> Iterator[Sample]:
    yield Sample((m(3), 2))
    yield Sample((m(2, 3), 2, 1))
    yield Sample((m(2, 3), m.index(2, below=3), 0))
    yield Sample((m(2, 3), m.index(1, below=3), 1))
    yield Sample((m.index(3, below=3),))


def _interleaved(x: Any, n: Any, dim: Any) -> Any:
    return np.repeat(np.arange(len(x)), x) if n is None else np.repeat(x, n, dim)
