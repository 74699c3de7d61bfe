"""Samples of padding and of moving channels to pixels and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .sample import FLOATS, Maker, Sample, samples

REAL = FLOATS[2:]


def _padded(mode: str) -> Callable[..., Any]:
    def reference(x: Any, pad: Any, value: Any = None) -> Any:
        widths = [(0, 0)] * x.ndim
        for i in range(len(pad) // 2):
            before, after = pad[2 * i : 2 * i + 2]
            at, n = x.ndim - 1 - i, x.shape[x.ndim - 1 - i]
            x = x[(slice(None),) * at + (slice(max(-before, 0), n - max(-after, 0)),)]
            widths[at] = (max(before, 0), max(after, 0))
        return (
            x
            if x.ndim == 0
            else np.pad(x, widths, mode, **({"constant_values": value or 0} if mode == "constant" else {}))
        )

    return reference


@samples("constant_pad_nd", reference=_padded("constant"))
def _constant(m: Maker) -> Iterator[Sample]:
    for shape, pad in (((3,), (1, 2)), ((2, 3), (0, 1, 2, 0)), ((2, 4), (-1, 1)), ((0, 2), (1, 1)), ((), ())):
        yield Sample((m(*shape), pad))
        yield Sample((m(*shape), pad, 1))


@samples("pad", reference=lambda x, pad, mode="constant", value=None: _padded(MODES[mode])(x, pad, value), dtypes=REAL)
def _pad(m: Maker) -> Iterator[Sample]:
    yield Sample((m(2, 3), (1, 1)))
    yield Sample((m(2, 3), (1, 0), "constant", 1))
    yield Sample((m(1, 2, 3), (0, 1, 0, 1)), {"value": 2})
    for mode in ("reflect", "replicate", "circular"):
        yield Sample((m(1, 2, 3), (1, 2), mode))
        yield Sample((m(1, 1, 2, 3), (1, 0, 1, 1), mode))


MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _around(dims: int, mode: str, names: tuple[str, ...]) -> None:
    """Samples of padding that repeats numbers, over so many dimensions."""
    size = (2, 3, 2)[-dims:]

    @samples(*names, reference=_padded(mode), dtypes=REAL, tolerance={"float32": (0, 0), "float64": (0, 0)})
    def _make(m: Maker) -> Iterator[Sample]:
        for lead in ((2,), (1, 2), (0, 2)):
            yield Sample((m(*lead, *size), (1, 1) * dims))
            yield Sample((m(*lead, *size), (0, 1) * dims))
        if mode == "edge":  # NumPy reflects after cutting, PyTorch before
            yield Sample((m(1, *size), (1, -1) * dims))


for _dims in (1, 2, 3):
    _around(_dims, "reflect", (f"reflection_pad{_dims}d",))
    _around(_dims, "edge", (f"replication_pad{_dims}d",))
_around(2, "wrap", ("_pad_circular",))


def _split(x: Any, groups: int) -> Any:
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])


@samples(
    "channel_shuffle",
    "native_channel_shuffle",
    reference=lambda x, groups: np.swapaxes(_split(x, groups), 1, 2).reshape(x.shape),
)
def _channels(m: Maker) -> Iterator[Sample]:
    yield Sample((m(1, 4, 2), 2))
    yield Sample((m(2, 6, 1, 1), 3))
    yield Sample((m(2, 3, 2), 1))
    yield Sample((m(0, 4, 2), 2))


def _shuffled(x: Any, r: int) -> Any:
    *lead, c, h, w = x.shape
    parts = x.reshape(*lead, c // (r * r), r, r, h, w)
    return np.moveaxis(parts, (-4, -3), (-3, -1)).reshape(*lead, c // (r * r), h * r, w * r)


def _unshuffled(x: Any, r: int) -> Any:
    *lead, c, h, w = x.shape
    parts = x.reshape(*lead, c, h // r, r, w // r, r)
    return np.moveaxis(parts, (-3, -1), (-4, -3)).reshape(*lead, c * r * r, h // r, w // r)


@samples("pixel_shuffle", reference=_shuffled)
def _pixels(m: Maker) -> Iterator[Sample]:
    yield Sample((m(1, 4, 2, 1), 2))
    yield Sample((m(8, 1, 2), 2))
    yield Sample((m(2, 1, 2, 2), 1))
    yield Sample((m(0, 4, 2, 2), 2))


@samples("pixel_unshuffle", reference=_unshuffled)
def _blocks(m: Maker) -> Iterator[Sample]:
    yield Sample((m(1, 1, 4, 2), 2))
    yield Sample((m(2, 2, 4), 2))
    yield Sample((m(2, 1, 2, 2), 1))
    yield Sample((m(0, 1, 2, 2), 2))
