"""Samples of attention and of recurrent layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .sample import FLOATS, Maker, Sample, samples

HALF = {"float16": (2e-2, 2e-2), "bfloat16": (1e-1, 1e-1)}


def _attention(
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    if enable_gqa:
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = (q @ np.swapaxes(k, -1, -2)) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        mask = np.tril(np.ones(scores.shape[-2:], bool))
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    largest = scores.max(-1, keepdims=True, initial=-1e30)
    weights = np.exp(scores - largest)
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0, 1, total) @ v


@samples("scaled_dot_product_attention", reference=_attention, dtypes=FLOATS, tolerance=HALF)
def _attentions(m: Maker) -> Iterator[Sample]:
    def operands(*heads: int, shared: int | None = None) -> tuple[Any, ...]:
        own = heads if shared is None else (*heads[:-1], shared)
        return m(*heads, 3, 2), m(*own, 4, 2), m(*own, 4, 3)

    for heads in ((), (2,), (2, 1)):
        yield Sample(operands(*heads))
    yield Sample(operands(2), {"is_causal": True})
    yield Sample(operands(2), {"scale": 0.3})
    yield Sample((*operands(1, 4, shared=2),), {"enable_gqa": True})
    yield Sample((*operands(2), m(3, 4)), variables=3)
    mask = m.mask(3, 4)
    mask[0] = False
    yield Sample((*operands(2), mask))


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _cell(mode: str, given: Any, h: Any, c: Any, w_hh: Any, b_hh: Any, w_hr: Any) -> tuple[Any, Any]:
    kept = h @ w_hh.T + (0 if b_hh is None else b_hh)
    if mode == "LSTM":
        i, f, g, o = np.split(given + kept, 4, -1)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        return (h if w_hr is None else h @ w_hr.T), c
    if mode == "GRU":
        (r, z, n), (p, q, s) = np.split(given, 3, -1), np.split(kept, 3, -1)
        z = _sigmoid(z + q)
        return (1 - z) * np.tanh(n + _sigmoid(r + p) * s) + z * h, None
    return (np.tanh(given + kept) if mode == "RNN_TANH" else np.maximum(given + kept, 0)), None


def _layer(
    mode: str, x: Any, sizes: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, w_hr: Any, reverse: bool
) -> list[Any]:
    steps = list(x) if sizes is None else np.split(x, np.cumsum(sizes)[:-1])
    outputs: list[Any] = [None] * len(steps)
    h, c = np.array(h), None if c is None else np.array(c)
    for t in reversed(range(len(steps))) if reverse else range(len(steps)):
        given = steps[t] @ w_ih.T + (0 if b_ih is None else b_ih)
        n = len(given)
        outputs[t], cell = _cell(mode, given, h[:n], None if c is None else c[:n], w_hh, b_hh, w_hr)
        h[:n] = outputs[t]
        if c is not None:
            c[:n] = cell
    y = np.stack(outputs) if sizes is None else np.concatenate(outputs)
    return [y, h] if c is None else [y, h, c]


@samples("_rnn_layer", reference=_layer, dtypes=FLOATS, tolerance=HALF)
def _layers(m: Maker) -> Iterator[Sample]:
    sizes = m.index(3, below=1) + 1
    sizes[0] = 2  # two samples of three steps and of one
    for mode, gates in (("LSTM", 4), ("GRU", 3), ("RNN_TANH", 1), ("RNN_RELU", 1)):
        for biased, packed, projected, reverse in ((1, 0, 0, 0), (0, 0, 0, 1), (1, 1, 0, 0), (1, 1, 1, 1)):
            if projected and mode != "LSTM":
                continue
            width, hidden, inputs = 1 if projected else 2, 2, 3
            rows = gates * hidden
            x = m(4, inputs) if packed else m(3, 2, inputs)
            yield Sample(
                (
                    mode,
                    x,
                    sizes.clone() if packed else None,
                    m(2, width),
                    m(2, hidden) if mode == "LSTM" else None,
                    m(rows, inputs),
                    m(rows, width),
                    m(rows) if biased else None,
                    m(rows) if biased else None,
                    m(width, hidden) if projected else None,
                    bool(reverse),
                )
            )
