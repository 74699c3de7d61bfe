"""Samples of complex numbers made of parts, and of their parts as views."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .sample import COMPLEX, Maker, Sample, samples

PARTS = ("float32", "float64")


@samples("conj", reference=np.conj)
def _any(m: Maker) -> Iterator[Sample]:
    for shape in ((), (3,), (2, 3), (2, 0, 3)):
        yield Sample((m(*shape),))
    yield Sample((m(3, 2, 4).transpose(0, 2)[1:],))


def _pairs(x: Any) -> Any:
    return np.stack([x.real, x.imag], -1)


samples("real", reference=np.real)(_any)
samples("imag", dtypes=COMPLEX, reference=np.imag)(_any)
samples("view_as_real", "view_as_real_copy", dtypes=COMPLEX, reference=_pairs, strides=True)(_any)


@samples(
    "view_as_complex",
    "view_as_complex_copy",
    dtypes=PARTS,
    reference=lambda x: x[..., 0] + 1j * x[..., 1],
    strides=True,
)
def _of_pairs(m: Maker) -> Iterator[Sample]:
    for shape in ((2,), (3, 2), (2, 3, 2), (0, 2)):
        yield Sample((m(*shape),))
    yield Sample((m(3, 4, 2).transpose(0, 1)[1:],))


@samples("complex", dtypes=PARTS, reference=lambda a, b: a + 1j * b)
def _of_parts(m: Maker) -> Iterator[Sample]:
    for a, b in (((), ()), ((2, 3), (2, 3)), ((2, 1), (3,)), ((0, 3), (3,))):
        yield Sample((m(*a), m(*b)))
    yield Sample((m(3, 2).t(), m(1, 3).expand(2, 3)))


samples("polar", dtypes=PARTS, reference=lambda a, b: a * np.exp(1j * b))(_of_parts)
