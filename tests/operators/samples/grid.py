"""Samples of grids, products of sets, and matrices built from vectors and blocks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .sample import DTYPES, Maker, Sample, samples
from .view import calls, table


def _vectors(m: Maker) -> Iterator[Sample]:
    yield Sample(([m(3)],))
    yield Sample(([m(2), m(3)],))
    yield Sample(((m(2), m(1), m(2)),))
    yield Sample(([m(2), m(0)],))


@samples("meshgrid", reference=lambda ts, indexing="ij": np.meshgrid(*ts, indexing=indexing))
def _meshgrid(m: Maker) -> Iterator[Sample]:
    for s in _vectors(m):
        yield Sample(s.args, {"indexing": "ij"})
        yield Sample(s.args, {"indexing": "xy"})
    yield Sample(([m(), m(3)],), {"indexing": "ij"})


def _product(vectors: Any) -> Any:
    rows = list(itertools.product(*vectors))
    out = np.array(rows, vectors[0].dtype).reshape(len(rows), len(vectors))
    return out[:, 0] if len(vectors) == 1 else out


samples("cartesian_prod", reference=_product)(_vectors)


def _combinations(x: Any, r: int = 2, with_replacement: bool = False) -> Any:
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(x, r)) if r else []
    return np.array(rows, x.dtype).reshape((len(rows), r) if r else (0,))


samples("combinations", reference=_combinations)(
    table(calls((4,)), calls((3,), 2, True), calls((4,), 3), calls((3,), 1), calls((3,), 0), calls((1,)), calls((0,)))
)


def _block_diag(blocks: Any) -> Any:
    full = [np.reshape(b, (1, -1)) if b.ndim < 2 else b for b in blocks]
    out = np.zeros(tuple(np.sum([b.shape for b in full], 0)), np.result_type(*full))
    at = np.zeros(2, int)
    for b in full:
        out[at[0] : at[0] + b.shape[0], at[1] : at[1] + b.shape[1]] = b
        at += b.shape
    return out


@samples("block_diag", reference=_block_diag)
def _block_diags(m: Maker) -> Iterator[Sample]:
    yield Sample(([m(2, 3)],))
    yield Sample(([m(2, 1), m(), m(3)],))
    yield Sample(([m(2, 2), m(0, 1), m(1, 2)],))


@samples("kron", reference=np.kron, tolerance={"float16": (2e-3, 4e-3), "bfloat16": (1.6e-2, 2e-2)}, dtypes=DTYPES[:-2])
def _kron(m: Maker) -> Iterator[Sample]:
    for a, b in (((), ()), ((2,), (3,)), ((2, 2), (1, 2)), ((2,), (2, 2)), ((2, 1, 2), (2, 2)), ((0, 2), (2, 2))):
        yield Sample((m(*a), m(*b)))


@samples("vander", reference=lambda x, N=None, increasing=False: _vander(x, N, increasing), dtypes=DTYPES[1:-2])
def _vanders(m: Maker) -> Iterator[Sample]:
    yield Sample((m(3),))
    yield Sample((m(3), 2))
    yield Sample((m(2), 4, True))
    yield Sample((m(3), 0))
    yield Sample((m(0),))


def _vander(x: Any, n: Any, increasing: bool) -> Any:
    powers = np.arange(len(x) if n is None else n)
    out = np.power(x[:, None], powers if increasing else powers[::-1])
    return out.astype(np.int64) if x.dtype.kind in "iub" else out


@samples("broadcast_tensors", "_broadcast_tensors", reference=lambda ts: list(np.broadcast_arrays(*ts)))
def _broadcast(m: Maker) -> Iterator[Sample]:
    yield Sample(([m(2, 1), m(3)],))
    yield Sample(([m(), m(2, 3), m(1, 3)],))
    yield Sample(([m(2)],))
    yield Sample(([m(0, 1), m(2)],))
