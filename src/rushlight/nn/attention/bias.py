"""Causal masks for as many queries as keys, and for others."""

from __future__ import annotations

import warnings
from enum import IntEnum, auto

import rushlight
from rushlight import Tensor

__all__ = ["CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Which corner the diagonal of a causal mask runs to, where there are not as many queries as keys."""

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


def causal_upper_left(*size: int) -> Tensor:
    """The mask ``(queries, keys)`` that lets query ``i`` see the keys up to ``i``, as ``is_causal=True`` does."""
    queries, keys = _checked(size)
    return rushlight.ones(queries, keys, dtype=rushlight.bool).tril()


def causal_lower_right(*size: int) -> Tensor:
    """The mask ``(queries, keys)`` that lets the last query see all keys, and each before it one less."""
    queries, keys = _checked(size)
    if queries > keys:
        warnings.warn(
            "Lower right causal bias leaves the first queries without keys: their results are 0", stacklevel=2
        )
    return rushlight.ones(queries, keys, dtype=rushlight.bool).tril(keys - queries)


def _checked(size: tuple[int, ...]) -> tuple[int, int]:
    if len(size) != 2:
        raise RuntimeError(f"causal masks have 2 dimensions, got {len(size)}")
    return size[0], size[1]
