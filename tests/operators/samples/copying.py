"""Samples of copies: other types, other orders in memory, other tensors' numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import rushlight

from .sample import FLOATS, INTEGERS, Maker, Sample, samples
from .view import calls, table

SHAPES = (calls(()), calls((3,)), calls((2, 3)), calls((2, 0, 3)))

samples("detach", "detach_copy", reference=lambda x: x)(table(*SHAPES))
samples("clone", "contiguous", reference=lambda x, **_: x)(
    table(*SHAPES, calls((1, 2, 2, 3), memory_format=rushlight.contiguous_format))
)


def _converted(name: str) -> Any:
    def reference(x: Any, **_: Any) -> Any:
        if np.iscomplexobj(x) and not name.startswith("complex"):
            x = x.real
        return x.astype("float32" if name == "bfloat16" else name)

    return reference


# a negative number has no defined counterpart among unsigned ones
_METHODS = {
    "bool": "bool",
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "float": "float32",
    "double": "float64",
    "cfloat": "complex64",
    "cdouble": "complex128",
}


def _positive(m: Maker) -> Iterator[Sample]:
    for shape in ((), (3,), (2, 3), (2, 0, 3)):
        yield Sample((m(*shape, low=0, high=3),))


def _not_derived(m: Maker) -> Iterator[Sample]:
    """What becomes complex is differentiated by tests of its own."""
    for s in _positive(m):
        yield Sample(s.args, derivatives=False)


for _method, _dtype in _METHODS.items():
    samples(_method, reference=_converted(_dtype))(_not_derived if _dtype.startswith("complex") else _positive)


@samples("to", reference=lambda x, *_, **__: x)
def _to(m: Maker) -> Iterator[Sample]:
    own = getattr(rushlight, m.dtype)
    yield Sample((m(2, 3), own))
    yield Sample((m(2, 3),), {"dtype": own, "copy": True})
    yield Sample((m(2, 3), "cpu"))
    yield Sample((m(2, 3), rushlight.device("cpu"), own))
    yield Sample((m(3), m(1)))


@samples("type_as", reference=lambda x, other: x.astype(other.dtype) if not np.iscomplexobj(x) else x)
def _type_as(m: Maker) -> Iterator[Sample]:
    yield Sample((m(2, 3), m(1)))
    if m.dtype in INTEGERS:
        yield Sample((m(2, 3), m(1, dtype="float32")))
    if m.dtype in FLOATS:
        yield Sample((m(2, 3), m(1, dtype="float64")))


@samples("copy_", reference=lambda x, other, *_, **__: np.broadcast_to(other, x.shape).astype(x.dtype))
def _copy(m: Maker) -> Iterator[Sample]:
    for shape, other in (((), ()), ((3,), (3,)), ((2, 3), (3,)), ((2, 3), ()), ((0, 3), (3,))):
        yield Sample((m(*shape), m(*other)))
    yield Sample((m(2, 3), m(2, 3, dtype="bool")))


@samples("fill_", reference=lambda x, number: np.full_like(x, number))
def _fill(m: Maker) -> Iterator[Sample]:
    for shape in ((), (3,), (2, 3), (0,)):
        yield Sample((m(*shape), 1))
    yield Sample((m(2, 3), True))
    if m.is_floating:
        yield Sample((m(2, 3), float("nan")), derivatives=False)


@samples("fill", reference=np.full_like)
def _filled(m: Maker) -> Iterator[Sample]:
    for shape in ((), (3,), (2, 3), (0,)):
        yield Sample((m(*shape), 1))
        yield Sample((m(*shape), m()))
    yield Sample((m(2, 3), True))


@samples("fill_diagonal_", reference=lambda x, number, wrap=False: _fill_diagonal(x, number, wrap))
def _diagonals(m: Maker) -> Iterator[Sample]:
    for shape in ((2, 2), (2, 3), (5, 2), (3, 3, 3)):
        yield Sample((m(*shape), 1))
        yield Sample((m(*shape), 1, True))


def _fill_diagonal(x: Any, number: Any, wrap: bool) -> Any:
    out = np.array(x)
    np.fill_diagonal(out, number, wrap)
    return out


samples("zero_", reference=np.zeros_like)(table(*SHAPES))
