"""Samples of parts and their counterparts: diagonals, splits, windows, and the operators that write a part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .sample import Maker, Sample, samples
from .view import as_strided_reference, calls, narrowed, sliced, table


def _diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    return np.diagonal(x, offset, dim1, dim2)


DIAGONALS = (calls((3, 3)), calls((2, 3), 1), calls((3, 2), -1), calls((2, 3, 3), 0, 1, 2), calls((2, 3), 5))
samples("diagonal", "diagonal_copy", reference=_diagonal)(table(*DIAGONALS))
samples("diag", reference=np.diag)(table(calls((3,)), calls((2,), 1), calls((2, 3)), calls((2, 3), -1), calls((0,))))
samples("diagflat", reference=lambda x, offset=0: np.diagflat(x, offset))(
    table(calls((3,)), calls((2, 2), 1), calls((0,)), calls(()))
)
samples("trace", reference=lambda x: np.trace(x, dtype=np.int64 if x.dtype.kind in "iub" else None))(
    table(calls((2, 2)), calls((2, 3)), calls((0, 2)))
)


def _diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    n = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], n, n), x.dtype)
    rows = np.arange(x.shape[-1]) + max(-offset, 0)
    out[..., rows, rows + offset] = x
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


samples("diag_embed", reference=_diag_embed)(
    table(calls((3,)), calls((2, 3)), calls((2, 2), 1), calls((2, 2), -1, 0, 2), calls((0,)))
)


def _pieces(x: Any, size: Any, dim: int = 0) -> list[Any]:
    if isinstance(size, tuple | list):
        ends = np.cumsum(size)[:-1]
    else:
        ends = np.arange(size, x.shape[dim], size) if size else []
    return list(np.split(x, ends, dim))


def _chunks(x: Any, n: int, dim: int = 0) -> list[Any]:
    return _pieces(x, max(-(-x.shape[dim] // n), 1), dim)


samples("split", "unsafe_split", "split_copy", reference=_pieces)(
    table(calls((5,), 2), calls((2, 3), 2, 1), calls((4, 2), 2, -2), calls((3,), 5), calls((2, 0), 1))
)
samples("split_with_sizes", "unsafe_split_with_sizes", "split_with_sizes_copy", reference=_pieces)(
    table(calls((5,), (2, 3)), calls((2, 3), (1, 0, 2), 1), calls((0, 2), (0, 0)))
)
samples("chunk", "unsafe_chunk", reference=_chunks)(
    table(calls((5,), 2), calls((2, 3), 3, 1), calls((2, 3), 5, -1), calls((4, 2), 1))
)
samples("tensor_split", reference=lambda x, parts, dim=0: np.array_split(x, parts, dim))(
    table(calls((5,), 2), calls((2, 3), 2, 1), calls((5,), (1, 3)), calls((2, 3), (2, 1), -1), calls((0, 2), 2))
)
samples("hsplit", reference=np.hsplit)(table(calls((4,), 2), calls((2, 4), 2), calls((2, 4), (1, 3))))
samples("vsplit", reference=np.vsplit)(table(calls((4, 2), 2), calls((4, 2), (1, 3))))
samples("dsplit", reference=np.dsplit)(table(calls((2, 2, 4), 2), calls((1, 2, 4), (1, 3))))


def _windows(x: Any, dim: int, size: int, step: int) -> Any:
    if x.ndim == 0:
        return x.reshape(1)[:size]
    return np.lib.stride_tricks.sliding_window_view(x, size, dim)[
        (slice(None),) * (dim % x.ndim) + (slice(None, None, step),)
    ]


samples("unfold", "unfold_copy", reference=_windows)(
    table(
        calls((5,), 0, 2, 1), calls((5,), 0, 3, 2), calls((2, 4), -1, 2, 2), calls((3, 2), 0, 3, 1), calls((), 0, 1, 1)
    )
)


def _unflatten(x: Any, dim: int, sizes: Any) -> Any:
    at = dim % x.ndim
    return x.reshape(*x.shape[:at], *sizes, *x.shape[at + 1 :])


samples("unflatten", reference=_unflatten)(
    table(calls((6,), 0, (2, 3)), calls((2, 4), -1, (2, -1)), calls((4, 2), 0, (1, 4, 1)))
)


def _written(x: Any, part: Any, source: Any) -> Any:
    """A copy of x whose part (a function giving a view) is overwritten."""
    out = np.array(x)
    part(out)[...] = source
    return out


@samples("diagonal_scatter", reference=lambda x, src, *where: _diagonal_scatter(x, src, *where))
def _diagonal_scatters(m: Maker) -> Iterator[Sample]:
    for (shape, rest, _), size in zip(DIAGONALS[:4], ((3,), (2,), (2,), (2, 3))):
        yield Sample((m(*shape), m(*size), *rest))


def _diagonal_scatter(x: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    out = np.array(x)
    view = np.moveaxis(out, (dim1, dim2), (-2, -1))
    rows = np.arange(src.shape[-1]) + max(-offset, 0)
    view[..., rows, rows + offset] = src
    return out


@samples("select_scatter", reference=lambda x, src, dim, i: _written(x, lambda o: np.moveaxis(o, dim, 0)[i, ...], src))
def _select_scatter(m: Maker) -> Iterator[Sample]:
    yield Sample((m(3), m(), 0, 1))
    yield Sample((m(2, 3), m(2), 1, -1))
    yield Sample((m(2, 3), m(3), 0, 0))


@samples("slice_scatter", reference=lambda x, src, *where: _written(x, lambda o: sliced(o, *where), src))
def _slice_scatter(m: Maker) -> Iterator[Sample]:
    yield Sample((m(4), m(2), 0, 1, 3))
    yield Sample((m(2, 4), m(2, 2), 1, None, None, 2))
    yield Sample((m(2, 3), m(2, 3)))


@samples(
    "as_strided_scatter",
    reference=lambda x, src, *where: _written(x, lambda o: as_strided_reference(o, *where, copy=False), src),
    strides=True,
)
def _as_strided_scatter(m: Maker) -> Iterator[Sample]:
    yield Sample((m(6), m(2, 2), (2, 2), (1, 2), 1))
    yield Sample((m(2, 3), m(3), (3,), (1,), 0))


samples("narrow_copy", reference=narrowed)(table(calls((3,), 0, 1, 2), calls((2, 3), -1, 0, 2), calls((2, 3), 0, 2, 0)))


@samples(
    "resize_",
    strides=True,
    reshapes=True,
    reference=lambda x, size, **_: np.resize(x, size) if np.prod(size) <= x.size else x,
)
def _resize(m: Maker) -> Iterator[Sample]:
    yield Sample((m(6), (2, 3)), derivatives=False)
    yield Sample((m(2, 3), (4,)), derivatives=False)
    yield Sample((m(2), (3, 2)), values=False)
    yield Sample((m(), (0,)), derivatives=False)


@samples("resize_as_", strides=True, reshapes=True, reference=lambda x, other, **_: np.resize(x, other.shape))
def _resize_as(m: Maker) -> Iterator[Sample]:
    yield Sample((m(6), m(2, 3)), derivatives=False)
    yield Sample((m(2, 3), m(2)), derivatives=False)


@samples("diff", reference=lambda x, n=1, dim=-1, prepend=None, append=None: _diff(x, n, dim, prepend, append))
def _diffs(m: Maker) -> Iterator[Sample]:
    yield Sample((m(4),))
    yield Sample((m(2, 3), 2))
    yield Sample((m(3, 2), 1, 0))
    yield Sample((m(2, 3),), {"prepend": m(2, 1), "append": m(2, 2)})


def _diff(x: Any, n: int, dim: int, prepend: Any, append: Any) -> Any:
    joined = np.concatenate([p for p in (prepend, x, append) if p is not None], dim)
    for _ in range(n):
        first, last = sliced(joined, dim, None, -1), sliced(joined, dim, 1)
        joined = last ^ first if joined.dtype == bool else last - first
    return joined
