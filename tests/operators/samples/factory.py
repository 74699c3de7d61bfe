"""Samples of the factories: new tensors by sizes, by numbers, and shaped like others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import rushlight

from .sample import Maker, Sample, samples

SIZES = ((), (3,), (2, 3), (2, 0, 3))
STRIDED = (((), ()), ((3,), (2,)), ((2, 3), (1, 2)), ((2, 0), (1, 1)))


def _like_numpy(make: Any) -> Any:
    """A reference by sizes; NumPy's type is given by whoever compares."""
    return lambda size, *rest, dtype=None, **_: make(size, *rest)


@samples("zeros", reference=_like_numpy(np.zeros))
@samples("ones", reference=_like_numpy(np.ones))
def _sizes(m: Maker) -> Iterator[Sample]:
    dtype = getattr(rushlight, m.dtype)
    for size in SIZES:
        yield Sample((size,), {"dtype": dtype})
    yield Sample(([2, 3],))


@samples("empty")
def _empty(m: Maker) -> Iterator[Sample]:
    for size in SIZES:
        yield Sample((size,), {"dtype": getattr(rushlight, m.dtype)}, values=False)
    yield Sample(((1, 2, 2, 2),), {"memory_format": rushlight.channels_last}, values=False)


@samples("empty_strided")
def _empty_strided(m: Maker) -> Iterator[Sample]:
    for size, stride in STRIDED:
        yield Sample((size, stride), {"dtype": getattr(rushlight, m.dtype)}, values=False)


@samples("full", reference=_like_numpy(np.full))
def _full(m: Maker) -> Iterator[Sample]:
    for size in SIZES:
        yield Sample((size, 1), {"dtype": getattr(rushlight, m.dtype)})
    for number in (True, 3, 2.5):
        yield Sample(((2,), number))


@samples("zeros_like", reference=lambda x, **_: np.zeros_like(x))
@samples("ones_like", reference=lambda x, **_: np.ones_like(x))
def _like(m: Maker) -> Iterator[Sample]:
    for size in SIZES:
        yield Sample((m(*size),))
    yield Sample((m(2, 3),), {"dtype": rushlight.float64})
    yield Sample((m(1, 2, 2, 2),), {"memory_format": rushlight.channels_last})


@samples("full_like", reference=lambda x, number, **_: np.full_like(x, number))
def _full_like(m: Maker) -> Iterator[Sample]:
    for s in _like(m):
        yield Sample((*s.args, 1), s.kwargs)


@samples("empty_like")
def _empty_like(m: Maker) -> Iterator[Sample]:
    for s in _like(m):
        yield Sample(s.args, s.kwargs, values=False)


@samples("new_zeros", reference=lambda x, size, **_: np.zeros(size, x.dtype))
@samples("new_ones", reference=lambda x, size, **_: np.ones(size, x.dtype))
def _new(m: Maker) -> Iterator[Sample]:
    for size in SIZES:
        yield Sample((m(2), size))
    yield Sample((m(2), (3,)), {"dtype": rushlight.float64})


@samples("new_full", reference=lambda x, size, number, **_: np.full(size, number, x.dtype))
def _new_full(m: Maker) -> Iterator[Sample]:
    for s in _new(m):
        yield Sample((*s.args, 1), s.kwargs)


@samples("new_empty")
def _new_empty(m: Maker) -> Iterator[Sample]:
    for s in _new(m):
        yield Sample(s.args, s.kwargs, values=False)


@samples("new_empty_strided")
def _new_empty_strided(m: Maker) -> Iterator[Sample]:
    for size, stride in STRIDED:
        yield Sample((m(2), size, stride), values=False)


@samples("arange", reference=lambda *numbers, dtype=None: np.arange(*numbers))
def _arange(m: Maker) -> Iterator[Sample]:
    dtype = {"dtype": getattr(rushlight, m.dtype)}
    for numbers in ((0,), (4,), (1, 5), (1, 9, 3), (5, 1, -2), (2, 2)):
        yield Sample(numbers, dtype)
    yield Sample((5,))
    yield Sample((0.0, 1.0, 0.25))


@samples("linspace", reference=lambda a, b, n, dtype=None: np.linspace(a, b, n))
def _linspace(m: Maker) -> Iterator[Sample]:
    dtype = {"dtype": getattr(rushlight, m.dtype)}
    for numbers in ((0, 4, 5), (3, 6, 4), (2, 2, 3)):
        yield Sample(numbers, dtype)
    if m.dtype != "bool":
        for numbers in ((1, 5, 1), (1, 5, 0)):
            yield Sample(numbers, dtype)
    yield Sample((0.0, 1.0, 5))


@samples("logspace", reference=lambda a, b, n, base=10.0, dtype=None: np.logspace(a, b, n, base=base))
def _logspace(m: Maker) -> Iterator[Sample]:
    dtype = {"dtype": getattr(rushlight, m.dtype)}
    if m.dtype != "bool":
        for numbers in ((0, 2, 3), (0, 3, 4, 2.0), (0, 6, 3, 2.0), (1, 1, 1), (0, 1, 0)):
            yield Sample(numbers, dtype)
    yield Sample((-1.0, 1.0, 5))


@samples("range", reference=lambda a, b, step=1, dtype=None: np.arange(a, b + step / 2, step))
def _range(m: Maker) -> Iterator[Sample]:
    dtype = {"dtype": getattr(rushlight, m.dtype)}
    for numbers in ((0, 4), (1, 7, 3), (5, 1, -2), (2, 2)):
        yield Sample(numbers, dtype)
    yield Sample((0.0, 1.0, 0.25))


@samples("tril_indices", reference=lambda n, m, k=0, dtype=None: np.array(np.tril_indices(n, k, m)))
@samples("triu_indices", reference=lambda n, m, k=0, dtype=None: np.array(np.triu_indices(n, k, m)))
def _triangles(m: Maker) -> Iterator[Sample]:
    dtype = {"dtype": getattr(rushlight, m.dtype)}
    for numbers in ((3, 3), (2, 3), (3, 2, 1), (3, 3, -1), (2, 2, -5), (2, 2, 5), (0, 2), (2, 0)):
        yield Sample(numbers, dtype)
    yield Sample((2, 3))


@samples("scalar_tensor", reference=lambda number, dtype=None: np.array(number))
def _scalar(m: Maker) -> Iterator[Sample]:
    for number in (1, 0, True):
        yield Sample((number,), {"dtype": getattr(rushlight, m.dtype)})
    yield Sample((2.5,))
    if m.is_floating:
        yield Sample((float("nan"),), {"dtype": getattr(rushlight, m.dtype)})


@samples("empty_permuted", strides=True)
def _empty_permuted(m: Maker) -> Iterator[Sample]:
    for size, order in (((), ()), ((3,), (0,)), ((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((2, 0), (1, 0))):
        yield Sample((size, order), {"dtype": getattr(rushlight, m.dtype)}, values=False)


@samples("eye", reference=lambda n, m=None, dtype=None: np.eye(n, m))
def _eye(m: Maker) -> Iterator[Sample]:
    dtype = {"dtype": getattr(rushlight, m.dtype)}
    for numbers in ((3,), (2, 3), (0,), (3, 0)):
        yield Sample(numbers, dtype)
    yield Sample((2,))
