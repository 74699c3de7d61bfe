"""Samples of the recurrent layer: every cell, both directions, biases or none, projections, packed sequences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit

import rushlight

from .sample import Maker, Sample, samples

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _step(mode: str, x: Any, h: Any, c: Any, w: list[Any]) -> tuple[Any, Any]:
    w_ih, w_hh, b_ih, b_hh, w_hr = w
    a, b = x @ w_ih.T + (0 if b_ih is None else b_ih), h @ w_hh.T + (0 if b_hh is None else b_hh)
    if mode == "LSTM":
        i, f, g, o = np.split(a + b, 4, -1)
        c = expit(f) * c + expit(i) * np.tanh(g)
        h = expit(o) * np.tanh(c)
        return (h if w_hr is None else h @ w_hr.T), c
    if mode == "GRU":
        (r, z, n), (r2, z2, n2) = np.split(a, 3, -1), np.split(b, 3, -1)
        n = np.tanh(n + expit(r + r2) * n2)
        return (1 - expit(z + z2)) * n + expit(z + z2) * h, None
    return (np.tanh(a + b) if mode == "RNN_TANH" else np.maximum(a + b, 0)), None


def _layer(mode: str, x: Any, sizes: Any, h: Any, c: Any, *rest: Any) -> list[Any]:
    *w, reverse = rest
    sizes = [x.shape[1]] * len(x) if sizes is None else list(sizes)
    flat, starts = x.reshape(sum(sizes), -1), np.cumsum([0, *sizes])
    h, c = h.copy(), None if c is None else c.copy()
    out = np.zeros((len(flat), h.shape[-1]), x.dtype)
    for t in range(len(sizes))[:: -1 if reverse else 1]:
        n = sizes[t]  # sequences of which this step is a part; the others keep their states
        h[:n], state = _step(mode, flat[starts[t] : starts[t + 1]], h[:n], None if c is None else c[:n], w)
        if c is not None:
            c[:n] = state
        out[starts[t] : starts[t + 1]] = h[:n]
    return [out.reshape(*x.shape[:-1], -1), h, *([c] if c is not None else [])]


@samples(
    "_rnn_layer",
    reference=_layer,
    dtypes=("float32", "float64"),
    tolerance={"float32": (1e-5, 1e-5), "float64": (1e-10, 1e-10)},
    bits=False,
)
def _layers(m: Maker) -> Iterator[Sample]:
    steps, batch, width, hidden = 2, 2, 1, 2
    for mode, gates in GATES.items():
        for biases in (True, False):
            for reverse in (False, True):
                x = m(steps, batch, width)
                yield _call(m, mode, x, None, batch, hidden, gates, biases, reverse)
        packed = rushlight.tensor([2, 1])
        yield _call(m, mode, m(3, width), packed, batch, hidden, gates, True, False)
    yield _call(m, "LSTM", m(1, 1, 1), None, 1, 2, 4, False, False, projected=1)


def _call(
    m: Maker,
    mode: str,
    x: Any,
    sizes: Any,
    batch: int,
    hidden: int,
    gates: int,
    biases: bool,
    reverse: bool,
    **how: int,
) -> Sample:
    out = how.get("projected", hidden)
    rows = gates * hidden
    b = (m(rows, low=-1, high=1), m(rows, low=-1, high=1)) if biases else (None, None)
    w_hr = m(out, hidden, low=-1, high=1) if how else None
    weights = (m(rows, x.shape[-1], low=-1, high=1), m(rows, out, low=-1, high=1), *b, w_hr)
    c = m(batch, hidden, low=-1, high=1) if mode == "LSTM" else None
    return Sample((mode, x, sizes, m(batch, out, low=-1, high=1), c, *weights, reverse))
