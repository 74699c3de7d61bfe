"""Arguments given as one number or as one per dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that turns a single value into `n` equal ones and leaves an iterable as it is."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _spatial(dims: int) -> tuple[Any, ...]:
    """The letters by which messages call `dims` spatial dimensions."""
    return {0: (), 1: ("L",), 2: ("H", "W"), 3: ("D", "H", "W")}.get(dims, (...,))


def _list_with_default(out_size: Any, defaults: Sequence[int]) -> Any:
    """`out_size` with each None replaced by the size of that dimension, counted from the last, in `defaults`."""
    if not isinstance(out_size, (tuple, list)):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    sizes = defaults[len(defaults) - len(out_size) :]
    return [size if wanted is None else wanted for wanted, size in zip(out_size, sizes, strict=True)]
