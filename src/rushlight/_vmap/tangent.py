"""Dual tensors under vmap: values carry tangents that are values."""

from __future__ import annotations

from typing import Any

from rushlight import _C, Tensor

from .levels import levels_of

__all__ = ["make_dual", "unpack_dual"]


def make_dual(primal: Tensor, tangent: Tensor, level: int) -> Tensor:
    """A dual with every vmap level that either tensor has."""
    numbers, sizes = levels_of((primal, tangent))
    value, moved = [_C._unbatch(_C._spread(t, numbers, sizes))[0] for t in (primal, tangent)]
    dual: Tensor = _C._rebatch(_C._make_dual(value, moved, level), numbers)
    return dual


def unpack_dual(x: Tensor, level: int) -> tuple[Tensor, Any]:
    """The primal and the tangent, None if there is none."""
    value, levels = _C._unbatch(x)
    primal, tangent = _C._unpack_dual(value, level)
    return _C._rebatch(primal, levels), None if tangent is None else _C._rebatch(tangent, levels)
