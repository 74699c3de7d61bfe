"""Functions over any number of tensors, given one by one or as a list: what ``torch.functional`` holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from . import _C
from ._missing import lazy_module

Tensor = _C.Tensor
split = _C.split

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "meshgrid",
    "split",
    "unravel_index",
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
    return _C.broadcast_tensors(_listed(tensors))


def block_diag(*tensors: Tensor) -> Tensor:
    """Return the matrix with the tensors (of two dimensions at most) along its diagonal, zeros elsewhere."""
    return _C.block_diag(tensors)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return all combinations of one element of each vector, one row each."""
    return _C.cartesian_prod(tensors)


def meshgrid(*tensors: Any, indexing: str | None = None) -> Any:
    """Return the coordinates of a grid: a view per vector, which varies along its own dimension.

    ``indexing`` "ij" gives dimension i to vector i; "xy" exchanges the first two dimensions.
    """
    return _C.meshgrid(_listed(tensors), indexing=indexing)


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Return the coordinates, one tensor per dimension, of elements numbered in row-major order in ``shape``.

    TypeError for indices that are not integers, ValueError for a negative size.
    """
    if indices.is_floating_point() or indices.is_complex() or indices.dtype is _C.bool:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = _C.Size([shape] if isinstance(shape, int) else shape)
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    if not sizes:
        return ()
    steps = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    scaled = indices.unsqueeze(-1).floor_divide(_C._tensor_from_data(steps, _C.int64, True, None))
    return scaled.remainder(_C._tensor_from_data(list(sizes), _C.int64, True, None)).unbind(-1)


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


# PyTorch has these here, too
_ELSEWHERE = (
    "cdist",
    "chain_matmul",
    "einsum",
    "istft",
    "lu",
    "norm",
    "pca_lowrank",
    "stft",
    "svd_lowrank",
    "tensordot",
)
__getattr__, __dir__ = lazy_module(
    __name__, names=dict.fromkeys((*_ELSEWHERE, "unique", "unique_consecutive"), "rushlight")
)
