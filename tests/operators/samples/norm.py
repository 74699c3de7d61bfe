"""Samples of the normalisations: of batches, layers, groups, by root mean squares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .sample import FLOATS, Maker, Sample, samples

HALF = {"float16": (1e-2, 1e-2), "bfloat16": (6e-2, 6e-2)}


def _scaled(x: Any, weight: Any, bias: Any) -> Any:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _standard(x: Any, axes: Any, eps: float) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def _layer_norm(x: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any) -> Any:
    return _scaled(_standard(x, tuple(range(-len(shape), 0)), eps), weight, bias)


@samples("layer_norm", reference=_layer_norm, dtypes=FLOATS, tolerance=HALF, large=lambda m: _large_layers(m))
def _layer_norms(m: Maker) -> Iterator[Sample]:
    yield Sample((m(2, 3), (3,)))
    yield Sample((m(2, 3), (3,), m(3), m(3)))
    yield Sample((m(2, 2, 3), (2, 3), m(2, 3), None, 0.1))
    yield Sample((m(3), (3,), None, m(3)))
    yield Sample((m(0, 3), (3,)))


def _large_layers(m: Maker) -> Iterator[Sample]:
    yield Sample((m(600, 200), (200,), m(200), m(200)))


def _rms_norm(x: Any, shape: Any, weight: Any = None, eps: Any = None) -> Any:
    axes = tuple(range(-len(shape), 0))
    eps = np.finfo(np.float64).eps if eps is None else eps
    return _scaled(x / np.sqrt((x**2).mean(axes, keepdims=True) + eps), weight, None)


@samples("rms_norm", reference=_rms_norm, dtypes=FLOATS, tolerance=HALF)
def _rms_norms(m: Maker) -> Iterator[Sample]:
    yield Sample((m(2, 3), (3,)))
    yield Sample((m(2, 3), (3,), m(3)))
    yield Sample((m(2, 2, 3), (2, 3), m(2, 3), 0.1))


def _group_norm(x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any) -> Any:
    split = x.reshape(x.shape[0], groups, -1)
    y = _standard(split, 2, eps).reshape(x.shape)
    return _scaled(y, *[p if p is None else p.reshape(-1, *[1] * (x.ndim - 2)) for p in (weight, bias)])


@samples("group_norm", reference=_group_norm, dtypes=FLOATS, tolerance=HALF)
def _group_norms(m: Maker) -> Iterator[Sample]:
    yield Sample((m(2, 4), 2))
    yield Sample((m(2, 2, 3), 1, m(2), m(2)))
    yield Sample((m(1, 4, 2), 2, m(4), None, 0.1))


def _batch_norm(
    x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float, _: Any
) -> Any:
    axes = (0, *range(2, x.ndim))

    def shaped(v: Any) -> Any:
        return None if v is None else v.reshape(-1, *[1] * (x.ndim - 2))

    if training:
        y = _standard(x, axes, eps)
    else:
        y = (x - shaped(mean)) / np.sqrt(shaped(var) + eps)
    return _scaled(y, shaped(weight), shaped(bias))


@samples("batch_norm", reference=_batch_norm, dtypes=FLOATS, tolerance=HALF)
def _batch_norms(m: Maker) -> Iterator[Sample]:
    yield Sample((m(3, 2), None, None, None, None, True, 0.1, 1e-5, False))
    yield Sample((m(2, 2, 3), m(2), m(2), None, None, True, 0.1, 1e-5, False))
    yield Sample((m(2, 3), m(3), m(3), m(3), m(3, low=0.5, high=2), False, 0.1, 0.1, False), variables=3)
