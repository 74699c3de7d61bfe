"""Samples of the products of vectors, matrices and batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .sample import DTYPES, Maker, Sample, samples

HALF = {"float16": (1e-2, 1e-2), "bfloat16": (3e-2, 6e-2)}


def _products(*shapes: Any) -> Callable[[Maker], Iterator[Sample]]:
    def make(m: Maker) -> Iterator[Sample]:
        for operands in shapes:
            yield Sample(tuple([m(*shape) for shape in operands]))

    return make


def _large(*shapes: Any) -> Callable[[Maker], Iterator[Sample]]:
    return _products(*shapes)


samples("mm", reference=np.matmul, tolerance=HALF, bits=False, large=_large(((130, 70), (70, 90))))(
    _products(((2, 3), (3, 4)), ((1, 1), (1, 1)), ((2, 0), (0, 3)), ((0, 2), (2, 3)), ((2, 3), (3, 0)))
)
samples("bmm", reference=np.matmul, tolerance=HALF, bits=False, large=_large(((5, 40, 50), (5, 50, 30))))(
    _products(((2, 2, 3), (2, 3, 2)), ((1, 2, 3), (1, 3, 1)), ((0, 2, 3), (0, 3, 2)), ((2, 2, 0), (2, 0, 3)))
)
samples("mv", reference=np.matmul, tolerance=HALF)(_products(((2, 3), (3,)), ((2, 0), (0,)), ((0, 3), (3,))))
samples("dot", "inner", reference=np.inner, tolerance=HALF)(_products(((3,), (3,)), ((0,), (0,)), ((1,), (1,))))
samples("vdot", reference=np.vdot, tolerance=HALF)(_products(((3,), (3,)), ((0,), (0,))))
samples("outer", "ger", reference=np.outer, tolerance=HALF)(_products(((2,), (3,)), ((0,), (3,)), ((1,), (1,))))
samples(
    "matmul", reference=np.matmul, tolerance=HALF, bits=False, large=_large(((130, 70), (70, 90)), ((3, 40, 50), (50,)))
)(
    _products(
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 3), (3, 2)),
        ((2, 2, 3), (3,)),
        ((3,), (2, 3, 2)),
        ((2, 2, 3), (3, 2)),
        ((2, 3), (2, 3, 2)),
        ((2, 1, 2, 3), (3, 3, 1)),
        ((2, 0), (0, 3)),
        ((0, 2, 3), (3, 2)),
    )
)


def _added(product: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def reference(x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        return (beta * x if beta else 0) + alpha * product(a, b)

    return reference


def _sums(x: Any, a: Any, b: Any) -> Callable[[Maker], Iterator[Sample]]:
    def make(m: Maker) -> Iterator[Sample]:
        yield Sample((m(*x), m(*a), m(*b)))
        yield Sample((m(1), m(*a), m(*b)))
        if m.dtype != "bool":
            yield Sample((m(*x), m(*a), m(*b)), {"beta": 2, "alpha": 3})
            yield Sample((m(*x), m(*a), m(*b)), {"beta": 0})

    return make


NUMBERS = DTYPES[1:]
samples("addmm", reference=_added(np.matmul), tolerance=HALF, dtypes=NUMBERS)(_sums((2, 4), (2, 3), (3, 4)))
samples("addmv", reference=_added(np.matmul), tolerance=HALF, dtypes=NUMBERS)(_sums((2,), (2, 3), (3,)))
samples("addr", reference=_added(np.outer), tolerance=HALF, dtypes=NUMBERS)(_sums((2, 3), (2,), (3,)))
samples("baddbmm", reference=_added(np.matmul), tolerance=HALF, dtypes=NUMBERS)(_sums((2, 2, 2), (2, 2, 3), (2, 3, 2)))
samples("addbmm", reference=_added(lambda a, b: np.matmul(a, b).sum(0, dtype=a.dtype)), tolerance=HALF, dtypes=NUMBERS)(
    _sums((2, 2), (2, 2, 3), (2, 3, 2))
)


@samples("linear", reference=lambda x, w, b=None: x @ w.T + (0 if b is None else b), tolerance=HALF, dtypes=NUMBERS)
def _linear(m: Maker) -> Iterator[Sample]:
    yield Sample((m(2, 3), m(4, 3)))
    yield Sample((m(2, 3), m(4, 3), m(4)))
    yield Sample((m(3), m(2, 3), m(2)))
    yield Sample((m(2, 2, 3), m(1, 3), m(1)))
    yield Sample((m(0, 3), m(2, 3), m(2)))
