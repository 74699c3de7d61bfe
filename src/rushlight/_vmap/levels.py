"""The vmaps that are open on this thread, from the outermost to the innermost."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .. import _C

_numbers = itertools.count(1)  # never used twice, so that a tensor of a finished vmap is not taken for one of another


@dataclass(frozen=True, slots=True)
class Level:
    """One vmap: its number, the number of samples, and what random operations do."""

    number: int
    size: int
    randomness: str


class _Open(threading.local):
    levels: tuple[Level, ...] = ()


_open = _Open()


def open_levels() -> tuple[Level, ...]:
    """The open vmaps, the outermost first."""
    return _open.levels


@contextmanager
def reopened(levels: tuple[Level, ...]) -> Iterator[None]:
    """Have these vmaps open again within the context."""
    before, _open.levels = _open.levels, levels
    _C._enter_transform(True)
    try:
        yield
    finally:
        _open.levels = before
        _C._leave_transform(True)


def refused_draw(name: str, randomness: str) -> RuntimeError:
    """The error for a random operation that cannot be what a vmap wants."""
    if randomness == "error":
        return RuntimeError(
            f"vmap: called random operation while in randomness error mode: {name}. Give vmap randomness='same' (one "
            "draw for all samples) or randomness='different' (a draw for each), or draw outside of vmap."
        )
    return RuntimeError(
        f"vmap: {name} does not currently support same randomness with a batched tensor input: what is drawn depends "
        "on its numbers. Use randomness='different'."
    )


def levels_of(tensors: Iterable[Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The numbers of all levels of some tensors, and how many samples each has."""
    sizes: dict[int, int] = {}
    for t in tensors:
        value, levels = _C._unbatch(t)
        sizes.update(zip(levels, value.shape, strict=False))
    numbers = tuple(sorted(sizes))
    return numbers, tuple([sizes[n] for n in numbers])


class batching:
    """A context in which one more vmap is open."""

    __slots__ = ("level",)

    def __init__(self, size: int, randomness: str) -> None:
        self.level = Level(next(_numbers), size, randomness)

    def __enter__(self) -> int:
        _open.levels = (*_open.levels, self.level)
        _C._enter_transform(True)
        return self.level.number

    def __exit__(self, *exc: object) -> None:
        _open.levels = _open.levels[:-1]
        _C._leave_transform(True)
