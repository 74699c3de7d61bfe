"""Samples of joining tensors and of taking them apart again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .sample import Maker, Sample, samples


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
