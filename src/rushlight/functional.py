"""Functions over any number of tensors, given one by one or as a list: what ``torch.functional`` holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _C

Tensor = _C.Tensor
split = _C.split

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_shapes",
    "broadcast_tensors",
    "split",
]


def _listed(tensors: tuple[Any, ...]) -> tuple[Any, ...] | list[Any]:
    """The arguments of ``f(a, b)`` or ``f([a, b])``."""
    if len(tensors) == 1 and isinstance(tensors[0], tuple | list):
        return tensors[0]
    return tensors


def atleast_1d(*tensors: Any) -> Any:
    """Return views with at least one dimension: of one tensor a tensor, of several a tuple."""
    if len(tensors) == 1:
        return _C.atleast_1d(tensors[0])
    return _C.atleast_1d(tensors)


def atleast_2d(*tensors: Any) -> Any:
    """Return views with at least two dimensions: of one tensor a tensor, of several a tuple."""
    if len(tensors) == 1:
        return _C.atleast_2d(tensors[0])
    return _C.atleast_2d(tensors)


def atleast_3d(*tensors: Any) -> Any:
    """Return views with at least three dimensions: of one tensor a tensor, of several a tuple."""
    if len(tensors) == 1:
        return _C.atleast_3d(tensors[0])
    return _C.atleast_3d(tensors)


def broadcast_tensors(*tensors: Any) -> Any:
    """Return views of the tensors (given one by one or as a list) in the shape that they broadcast to."""
    return _C._broadcast_tensors(_listed(tensors))


def broadcast_shapes(*shapes: int | Sequence[int]) -> Any:
    """Return the shape that tensors of these shapes broadcast to; an int stands for one dimension.

    RuntimeError where they do not fit, ValueError for a negative size.
    """
    listed = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    result = [1] * max(map(len, listed), default=0)
    for number, shape in enumerate(listed):
        for i in range(-1, -1 - len(shape), -1):
            if shape[i] < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if shape[i] == 1 or shape[i] == result[i]:
                continue
            if result[i] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[i]} at {i}! Mismatching argument at index "
                    f"{number} had {shape}; but expected shape should be broadcastable to {result}"
                )
            result[i] = shape[i]
    return _C.Size(result)
