"""Operators that join lists of tensors."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import _C, Tensor

from ..operators.registry import Overload
from .dims import behind, front
from .table import family, rule, whole

__all__: list[str] = []


def values_of(tensors: Any, level: int, size: int) -> list[Tensor]:
    """The values of a list, tensors that are the same for all samples expanded."""
    values = []
    for t in tensors:
        value = _C._value_at(t, level)
        values.append(front(t, size) if value is None else value)
    return values


@rule("cat", "concat", "concatenate", "stack")
def cat(call: Any, level: int, size: int, mask: int, tensors: Any, dim: int) -> Any:
    """Along a dimension of the samples, or a new one."""
    values = values_of(tensors, level, size)
    if call.__name__ == "stack":
        return call(values, behind(dim, values[0].dim()))
    count = max([v.dim() - 1 for v in values])
    if count == 0:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    kept = [v for v in values if not (v.dim() == 2 and v.shape[1] == 0 and count > 1)]  # cat passes over empty vectors
    return call(kept, behind(dim, count))


@whole("hstack", "vstack", "row_stack", "dstack", "column_stack")
def stacked(call: Any, tensors: Any) -> Any:
    """cat, after dimensions of one."""
    name = call.__name__
    if name == "column_stack":
        tensors = [t.reshape(t.numel(), 1) if t.dim() < 2 else t for t in tensors]
        return rushlight.cat(tensors, 1)
    if name == "hstack":
        tensors = [rushlight.atleast_1d(t) for t in tensors]
        return rushlight.cat(tensors, 0 if tensors[0].dim() == 1 else 1)
    if name == "dstack":
        return rushlight.cat([rushlight.atleast_3d(t) for t in tensors], 2)
    return rushlight.cat([rushlight.atleast_2d(t) for t in tensors], 0)


@family("atleast_1d", "atleast_2d", "atleast_3d")
def atleast(call: Any, overload: Overload) -> Any:
    """New dimensions of one for the samples."""
    wanted = int(call.__name__[-2])

    def one(call: Any, level: int, size: int, mask: int, value: Tensor) -> Any:
        count = value.dim() - 1
        if wanted == 3 and count in (1, 2):
            value = value.unsqueeze(-1)
            return value.unsqueeze(1) if count == 1 else value
        for _ in range(wanted - count):
            value = value.unsqueeze(1)
        return value.view_as(value) if count >= wanted else value

    def several(call: Any, level: int, size: int, mask: int, tensors: Any) -> Any:
        return [one(call, level, size, mask, v) for v in values_of(tensors, level, size)]

    return several if overload.parameters[0].type == "tuple of Tensors" else one


@whole("broadcast_tensors", "_broadcast_tensors")
def broadcast_tensors(call: Any, tensors: Any) -> tuple[Tensor, ...]:
    """The samples expanded to one shape."""
    shape = rushlight.broadcast_shapes(*[t.shape for t in tensors])
    return tuple([t.expand(shape) for t in tensors])


@whole("meshgrid")
def meshgrid(call: Any, tensors: Any, indexing: str | None) -> tuple[Tensor, ...]:
    """Every vector along a dimension of its own."""
    swap = indexing == "xy" and len(tensors) > 1
    vectors = [t.reshape(-1) for t in tensors]
    if swap:
        vectors[0], vectors[1] = vectors[1], vectors[0]
    shape = [v.numel() for v in vectors]
    grids = []
    for i, v in enumerate(vectors):
        grids.append(v.reshape([-1 if k == i else 1 for k in range(len(shape))]).expand(shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@whole("cartesian_prod")
def cartesian_prod(call: Any, tensors: Any) -> Any:
    """All combinations of elements, one from each."""
    if len(tensors) == 1:
        return tensors[0]
    return rushlight.stack([g.reshape(-1) for g in rushlight.meshgrid(*tensors, indexing="ij")], 1)


@whole("block_diag")
def block_diag(call: Any, tensors: Any) -> Any:
    """Matrices along a diagonal."""
    blocks = [rushlight.atleast_2d(t) for t in tensors]
    width = sum([b.shape[1] for b in blocks])
    rows, at = [], 0
    for b in blocks:
        rows.append(rushlight.nn.functional.pad(b, (at, width - at - b.shape[1])))
        at += b.shape[1]
    return rushlight.cat(rows, 0)
