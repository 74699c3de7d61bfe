"""Samples of convolution, pooling and embedding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .sample import FLOATS, Maker, Sample, samples

HALF = {"float16": (2e-2, 2e-2), "bfloat16": (6e-2, 1e-1)}


def several(value: Any, n: int) -> tuple[int, ...]:
    """One number for each of n dimensions."""
    values = tuple(value) if isinstance(value, tuple | list) else (value,)
    return values * n if len(values) == 1 else values


def windows(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, fill: float = 0.0) -> Any:
    """Windows over the last dimensions: (..., output sizes, kernel sizes)."""
    n = len(kernel)
    x = np.pad(x, [(0, 0)] * (x.ndim - n) + [(p, p) for p in padding], constant_values=fill)
    axes = tuple(range(x.ndim - n, x.ndim))
    span = tuple([d * (k - 1) + 1 for k, d in zip(kernel, dilation)])
    view = np.lib.stride_tricks.sliding_window_view(x, span, axes)
    steps = tuple([slice(None, None, s) for s in stride])
    return view[(..., *steps, *[slice(None, None, d) for d in dilation])]


def _conv(x: Any, w: Any, b: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
    n = w.ndim - 2
    if x.ndim == n + 1:
        return _conv(x[None], w, b, stride, padding, dilation, groups)[0]
    stride, dilation = several(stride, n), several(dilation, n)
    if padding == "same":
        total = [d * (k - 1) for k, d in zip(w.shape[2:], dilation)]
        x = np.pad(x, [(0, 0), (0, 0), *[(t // 2, t - t // 2) for t in total]])
    padding = (0,) * n if isinstance(padding, str) else several(padding, n)
    out = []
    for xs, ws in zip(np.split(x, groups, 1), np.split(w, groups, 0)):
        found = windows(xs, w.shape[2:], stride, padding, dilation)
        axes = [1, *range(2 + n, 2 + 2 * n)]
        out.append(np.moveaxis(np.tensordot(found, ws, (axes, list(range(1, 2 + n)))), -1, 1))
    y = np.concatenate(out, 1)
    return y if b is None else y + b.reshape(-1, *[1] * n)


def _convs(n: int) -> Callable[[Maker], Iterator[Sample]]:
    def make(m: Maker) -> Iterator[Sample]:
        one, two = (1,) * n, (2,) * n
        size = (3,) * n if n < 3 else (2,) * n
        yield Sample((m(1, 1, *size), m(1, 1, *two)))
        yield Sample((m(1, *size), m(2, 1, *two), m(2)))
        yield Sample((m(1, 2, *size), m(2, 1, *one), m(2), 2, 1, 1, 2))
        yield Sample((m(2, 1, *size), m(1, 1, *two)), {"padding": "same"})
        yield Sample((m(1, 1, *size), m(1, 1, *two)), {"padding": 1, "dilation": 2, "stride": 2})
        yield Sample((m(0, 1, *size), m(1, 1, *two)))

    return make


for _n in (1, 2, 3):
    samples(f"conv{_n}d", reference=_conv, dtypes=FLOATS, tolerance=HALF, bits=False)(_convs(_n))


def _conv_transpose(
    x: Any,
    w: Any,
    b: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Any:
    n = w.ndim - 2
    if x.ndim == n + 1:
        return _conv_transpose(x[None], w, b, stride, padding, output_padding, groups, dilation)[0]
    stride, padding, extra, dilation = [several(v, n) for v in (stride, padding, output_padding, dilation)]
    full = [(s - 1) * t + d * (k - 1) + 1 for s, t, d, k in zip(x.shape[2:], stride, dilation, w.shape[2:])]
    per_group = w.shape[1]
    y = np.zeros((x.shape[0], per_group * groups, *[f + e for f, e in zip(full, extra)]))
    for g, (xs, ws) in enumerate(zip(np.split(x, groups, 1), np.split(w, groups, 0))):
        for place in np.ndindex(*w.shape[2:]):
            part = np.moveaxis(np.tensordot(xs, ws[(..., *place)], ([1], [0])), -1, 1)
            at = [slice(p * d, p * d + (s - 1) * t + 1, t) for p, d, s, t in zip(place, dilation, x.shape[2:], stride)]
            y[(slice(None), slice(g * per_group, (g + 1) * per_group), *at)] += part
    cut = [slice(p, size - p) for p, size in zip(padding, y.shape[2:])]
    y = y[(slice(None), slice(None), *cut)]
    return y if b is None else y + b.reshape(-1, *[1] * n)


def _conv_transposes(n: int) -> Callable[[Maker], Iterator[Sample]]:
    def make(m: Maker) -> Iterator[Sample]:
        two = (2,) * n
        yield Sample((m(1, 1, *two), m(1, 1, *two)))
        yield Sample((m(1, *two), m(1, 2, *two), m(2)))
        yield Sample((m(1, 2, *two), m(2, 1, *two), m(2), 2, 1, 1, 2))
        yield Sample((m(1, 1, *two), m(1, 1, *two)), {"dilation": 2, "stride": 2})

    return make


for _n in (1, 2, 3):
    samples(f"conv_transpose{_n}d", reference=_conv_transpose, dtypes=FLOATS, tolerance=HALF, bits=False)(
        _conv_transposes(_n)
    )


@samples("convolution", reference=lambda *a: _any_conv(*a), dtypes=FLOATS, tolerance=HALF, bits=False)
def _convolution(m: Maker) -> Iterator[Sample]:
    yield Sample((m(1, 1, 3, 3), m(2, 1, 2, 2), m(2), (1, 1), (1, 0), (1, 1), False, (0, 0), 1))
    yield Sample((m(1, 1, 2, 2), m(1, 1, 2, 2), None, (2, 1), (0, 0), (1, 1), True, (1, 0), 1))


def _any_conv(
    x: Any, w: Any, b: Any, stride: Any, padding: Any, dilation: Any, back: bool, extra: Any, groups: int
) -> Any:
    if back:
        return _conv_transpose(x, w, b, stride, padding, extra, groups, dilation)
    return _conv(x, w, b, stride, padding, dilation, groups)


# ---- pooling


def _max_pool(
    x: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Any:
    return _pooled(x, kernel, stride, padding, dilation, -np.inf, np.max)


def _pooled(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, fill: float, f: Any) -> Any:
    n = len(kernel)
    stride = several(stride, n) if stride else kernel
    found = windows(x, kernel, several(stride, n), several(padding, n), several(dilation, n), fill)
    return f(found, axis=tuple(range(-n, 0)))


def _max_pools(n: int) -> Callable[[Maker], Iterator[Sample]]:
    def make(m: Maker) -> Iterator[Sample]:
        size = (4,) * n if n < 3 else (2, 3, 3)
        two = (2,) * n
        yield Sample((m(1, 1, *size), two))
        yield Sample((m(1, *size), two, (1,) * n))
        yield Sample((m(1, 1, *size), two, (1,) * n, (1,) * n))
        yield Sample((m(0, 1, *size), two))
        if n < 3:
            yield Sample((m(1, 1, *size), two, (1,) * n, (0,) * n, two))

    return make


def _with_indices(x: Any, kernel: Any, *rest: Any) -> Any:
    values = _max_pool(x, kernel, *rest)
    n = len(kernel)
    spatial = x.shape[-n:]
    flat = x.reshape(int(np.prod(x.shape[:-n])), int(np.prod(spatial)))
    best = values.reshape(len(flat), int(np.prod(values.shape[-n:])))
    picked = [[int(np.argmax(row == v)) for v in row_best] for row, row_best in zip(flat, best)]
    return values, np.array(picked, np.int64).reshape(values.shape)


for _n in (1, 2, 3):
    samples(f"max_pool{_n}d", reference=_max_pool, dtypes=FLOATS)(_max_pools(_n))
    samples(f"max_pool{_n}d_with_indices", reference=_with_indices, dtypes=FLOATS)(_max_pools(_n))


def _avg_pool(
    x: Any,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Any:
    total = _pooled(x, kernel, stride, padding, 1, 0.0, np.sum)
    if divisor_override:
        return total / divisor_override
    count = np.prod(kernel) if count_include_pad else _pooled(np.ones_like(x), kernel, stride, padding, 1, 0.0, np.sum)
    return total / count


def _avg_pools(n: int) -> Callable[[Maker], Iterator[Sample]]:
    def make(m: Maker) -> Iterator[Sample]:
        size = (4,) * n if n < 3 else (2, 3, 3)
        two, one = (2,) * n, (1,) * n
        yield Sample((m(1, 1, *size), two))
        yield Sample((m(1, *size), two, one))
        yield Sample((m(1, 1, *size), two, one, one))
        yield Sample((m(1, 1, *size), two, one, one, False, False))
        if n > 1:
            yield Sample((m(1, 1, *size), two), {"divisor_override": 3})

    return make


for _n in (1, 2, 3):
    samples(f"avg_pool{_n}d", reference=_avg_pool, dtypes=FLOATS, tolerance=HALF)(_avg_pools(_n))


def _bins(size: int, out: int) -> list[slice]:
    return [slice(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]


def _adaptive(f: Any) -> Callable[..., Any]:
    def reference(x: Any, size: Any) -> Any:
        n = len(size)
        cells = [_bins(s, o) for s, o in zip(x.shape[-n:], size)]
        out = np.zeros((*x.shape[:-n], *size))
        for place in np.ndindex(*size):
            out[(..., *place)] = f(x[(..., *[c[p] for c, p in zip(cells, place)])], axis=tuple(range(-n, 0)))
        return out

    return reference


def _adaptive_pools(n: int) -> Callable[[Maker], Iterator[Sample]]:
    def make(m: Maker) -> Iterator[Sample]:
        size = (5,) if n == 1 else (3, 4) if n == 2 else (2, 3, 2)
        yield Sample((m(1, 1, *size), (2,) * n))
        yield Sample((m(1, *size), (1,) * n))
        yield Sample((m(1, 2, *size[:-1], 2), (2,) * n))

    return make


for _n in (1, 2, 3):
    samples(f"adaptive_avg_pool{_n}d", reference=_adaptive(np.mean), dtypes=FLOATS, tolerance=HALF)(_adaptive_pools(_n))
    samples(
        f"adaptive_max_pool{_n}d",
        reference=lambda x, size: (_adaptive(np.max)(x, size), _adaptive_places(x, size)),
        dtypes=FLOATS,
    )(_adaptive_pools(_n))


def _adaptive_places(x: Any, size: Any) -> Any:
    best = _adaptive(np.max)(x, size)
    flat = x.reshape(-1, int(np.prod(x.shape[-len(size) :])))
    picked = [
        [int(np.argmax(row == v)) for v in row_best] for row, row_best in zip(flat, best.reshape(flat.shape[0], -1))
    ]
    return np.array(picked, np.int64).reshape(best.shape)


@samples("embedding", reference=lambda w, i, *_, **__: w[i], dtypes=FLOATS)
def _embedding(m: Maker) -> Iterator[Sample]:
    yield Sample((m(4, 3), m.index(2, below=4)))
    yield Sample((m(4, 3), m.index(2, 2, below=4, dtype="int32")))
    yield Sample((m(4, 3), m.index(below=4)))
    yield Sample((m(4, 3), m.index(0, below=4)))
