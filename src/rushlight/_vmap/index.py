"""Indexing: Python's index expressions, and what picks elements by positions."""

from __future__ import annotations

import operator
from typing import Any

import rushlight
from rushlight import _C, Tensor

from .dims import wrapped
from .levels import levels_of
from .table import BatchingError, whole

__all__ = ["get_item", "set_item"]

Batched: Any = _C._BatchedTensor


def _split(x: Tensor, key: Any) -> tuple[Tensor, list[Any]]:
    """The view by the basic parts of an expression, and the index tensors for its dimensions (None: all of one)."""
    spread = isinstance(key, list) and any(p is None or p is Ellipsis or isinstance(p, slice) for p in key)
    parts = list(key) if spread or isinstance(key, tuple) else [key]
    taken = sum([_taken(p) for p in parts])
    if taken > x.dim():
        raise IndexError(f"too many indices for tensor of dimension {x.dim()}")
    indices: list[Any] = []
    dim = 0
    for p in parts:
        if p is Ellipsis:
            skipped = x.dim() - dim - _left(parts)
            indices += [None] * skipped
            dim += skipped
        elif p is None:
            x = x.unsqueeze(dim)
            indices.append(None)
            dim += 1
        elif isinstance(p, slice):
            x = _sliced(x, dim, p)
            indices.append(None)
            dim += 1
        elif isinstance(p, bool):
            x = x.unsqueeze(dim)
            indices.append(rushlight.zeros(int(p), dtype=rushlight.int64))
            dim += 1
        elif isinstance(p, int) or (hasattr(p, "__index__") and not isinstance(p, Tensor)):
            x = _selected(x, dim, operator.index(p))
        else:
            for index in _positions(p):
                indices.append(index)
                dim += 1
    return x, indices


def _taken(part: Any) -> int:
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    if isinstance(part, Tensor) and part.dtype in (rushlight.bool, rushlight.uint8):
        return part.dim()
    return 1


def _left(parts: list[Any]) -> int:
    """How many dimensions the parts behind the ellipsis take."""
    at = next(i for i, p in enumerate(parts) if p is Ellipsis)
    return sum([_taken(p) for p in parts[at + 1 :]])


def _sliced(x: Tensor, dim: int, part: slice) -> Tensor:
    if part == slice(None):
        return x
    start, stop, step = part.indices(x.shape[dim])
    if part.step is not None and part.step <= 0:
        raise ValueError("step must be greater than zero")
    return rushlight.narrow(x, dim, start, max(stop - start, 0)) if step == 1 else _stepped(x, dim, start, stop, step)


def _stepped(x: Tensor, dim: int, start: int, stop: int, step: int) -> Tensor:
    value, levels = _C._unbatch(x)
    key = (slice(None),) * (dim + len(levels)) + (slice(start, stop, step),)
    return _C._rebatch(value[key], levels)


def _selected(x: Tensor, dim: int, at: int) -> Tensor:
    size = x.shape[dim]
    if not -size <= at < size:
        raise IndexError(f"index {at} is out of bounds for dimension {dim} with size {size}")
    return x.select(dim, at)


def _is_batched_mask(key: Any) -> bool:
    return type(key) is Batched and key.dtype == rushlight.bool


def _positions(part: Any) -> list[Tensor]:
    """Index tensors of whole numbers; a mask gives one for each of its dimensions."""
    index = part if isinstance(part, Tensor) else rushlight.as_tensor(part)
    if index.dtype in (rushlight.bool, rushlight.uint8):
        if type(index) is Batched:
            raise BatchingError(
                "vmap: operators that can output dynamic shape are not supported: indexing with a batched boolean mask "
                "is one. Use where() or masked_fill(), whose results have a fixed shape."
            )
        return list(index.nonzero(as_tuple=True))
    if index.is_floating_point() and index.numel() == 0:
        return [index.long()]
    return [index]


def batched(value: Tensor, level: int) -> Tensor:
    """A tensor whose value this is."""
    result: Tensor = _C._batch(value, level)
    return result


def get_item(x: Tensor, key: Any) -> Tensor:
    """``x[key]`` where the tensor, or a tensor of the key, is batched."""
    view, indices = _split(x, key)
    if all(i is None for i in indices):
        return view.view_as(view) if view is x else view
    return gather(view, indices)


def gather(x: Tensor, indices: list[Any]) -> Tensor:
    """The elements at positions; an index of None takes its dimension whole.

    The dimensions of the positions stand where the index tensors stand side by side, else in front.
    """
    at, lead = _places(indices)
    given = [indices[k] for k in at]
    picked = _pick(x.movedim(at, tuple(range(len(at)))) if at[-1] >= len(at) else x, given)
    if not lead:
        return picked
    count = max([i.dim() for i in given])
    return picked.movedim(tuple(range(count)), tuple(range(lead, lead + count)))


def _places(indices: list[Any]) -> tuple[tuple[int, ...], int]:
    """Which dimensions have positions, and how many come before those of the result."""
    at = tuple([k for k, i in enumerate(indices) if i is not None])
    return at, at[0] if at[-1] - at[0] + 1 == len(at) else 0


def _pick(x: Tensor, indices: list[Tensor]) -> Tensor:
    """The elements at positions in the first dimensions, level by level."""
    level = _C._highest_level([x, *indices])
    if not level:
        return x[tuple(indices)]
    value = _C._value_at(x, level)
    count = max([i.dim() for i in indices])
    size, full = _behind_batch(indices, level, count)
    if size is None:  # the positions are those of every sample
        return batched(_pick(value.movedim(0, len(indices)), indices).movedim(count, 0), level)
    if value is None:  # the numbers are those of every sample
        return batched(_pick(x, full), level)
    return batched(_pick(value, [_samples(size, count), *full]), level)


def _behind_batch(indices: list[Tensor], level: int, count: int) -> tuple[int | None, list[Tensor]]:
    """The values of positions that are batched, so that they broadcast behind the batch."""
    size, full = None, []
    for index in indices:
        value = _C._value_at(index, level)
        if value is not None:
            size = value.shape[0]
            value = value.view(size, *(1,) * (count + 1 - value.dim()), *value.shape[1:])
        full.append(index if value is None else value)
    return size, full


def _samples(size: int, count: int) -> Tensor:
    return rushlight.arange(size).view(size, *(1,) * count)


def set_item(x: Tensor, key: Any, new: Any) -> None:
    """``x[key] = new`` where one of the tensors is batched."""
    if not isinstance(new, Tensor):
        new = rushlight.as_tensor(new, dtype=x.dtype)
    if new.numel() == 1 and _is_batched_mask(key):  # the only write by a mask whose size does not depend on it
        x.masked_fill_(key.view(*key.shape, *(1,) * (x.dim() - key.dim())), new.reshape(()))
        return
    view, indices = _split(x, key)
    if any(i is not None for i in indices):
        put(view, indices, new, False)
        return
    while new.dim() > view.dim() and new.shape[0] == 1:
        new = new.squeeze(0)
    view.copy_(new)


def put(x: Tensor, indices: list[Any], new: Tensor, accumulate: bool) -> None:
    """Write at positions, in place; an index of None stands for its whole dimension."""
    at, lead = _places(indices)
    given = [indices[k] for k in at]
    x = x.movedim(at, tuple(range(len(at))))
    own = tuple(rushlight.broadcast_shapes(*[i.shape for i in given]))
    rest = tuple(x.shape[len(at) :])
    while new.dim() > len(own) + len(rest) and new.shape[0] == 1:
        new = new.squeeze(0)
    new = new.expand(*rest[:lead], *own, *rest[lead:])
    if lead:
        new = new.movedim(tuple(range(lead, lead + len(own))), tuple(range(len(own))))
    _write(x, given, new.to(x.dtype), accumulate)


def _write(x: Tensor, indices: list[Tensor], new: Tensor, accumulate: bool) -> None:
    """Write at positions in the first dimensions; ``new`` has the shape of what they select."""
    level = _C._highest_level([x, new, *indices])
    if not level:
        x.index_put_(tuple(indices), new, accumulate)
        return
    value = _C._value_at(x, level)
    if value is None:
        raise RuntimeError(
            "vmap: inplace arithmetic(self, *extra_args) is not possible: index_put_ would write batched numbers into "
            "a tensor that is not batched. Make the tensor inside of the function from a batched one, as with "
            "new_zeros or zeros_like."
        )
    count = max([i.dim() for i in indices])
    size = value.shape[0]
    _, full = _behind_batch(indices, level, count)
    given = _C._value_at(new, level)
    given = new.expand(size, *new.shape) if given is None else given
    _write(value, [_samples(size, count), *full], given, accumulate)


@whole("index", "index_put", "index_put_")
def index_put(call: Any, x: Tensor, indices: Any, new: Tensor, accumulate: bool) -> Any:
    """Positions in the first dimensions."""
    target = x if call.__name__ == "index_put_" else spread_like(x, [new, *indices])
    if len(indices) == 1 and not accumulate and new.numel() == 1 and _is_batched_mask(indices[0]):
        set_item(target, indices[0], new)
        return target
    positions = [p for i in indices for p in _positions(i)]
    put(target, [*positions, *[None] * (x.dim() - len(positions))], new, accumulate)
    return target


def spread_like(x: Tensor, others: list[Tensor]) -> Tensor:
    """A copy of a tensor with the levels of the others too, to be written to."""
    copy: Tensor = _C._spread(x, *levels_of([x, *others])).clone()
    return copy


@whole("index_select")
def index_select(call: Any, x: Tensor, dim: int, index: Tensor) -> Any:
    """The slices at positions."""
    if index.dim() > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if x.dim() == 0:
        return x.reshape(1)[index.reshape(-1)].reshape(())
    dim = wrapped(dim, x.dim())
    return gather(x, [*[None] * dim, index.reshape(-1), *[None] * (x.dim() - dim - 1)])


@whole("take")
def take(call: Any, x: Tensor, index: Tensor) -> Any:
    """Elements of the flattened samples."""
    return gather(x.reshape(-1), [index])


@whole("put", "put_")
def put_flat(call: Any, x: Tensor, index: Tensor, new: Tensor, accumulate: bool) -> Any:
    """Elements of the flattened samples written."""
    target = x if call.__name__ == "put_" else spread_like(x, [index, new])
    put(target.view(-1), [index.reshape(-1)], new.reshape(-1), accumulate)
    return target


@whole("embedding")
def embedding(call: Any, weight: Tensor, indices: Tensor, padding: int, scale: bool, sparse: bool) -> Any:
    """Rows of a table; the row of padding gets no gradient."""
    level = _C._highest_level([weight, indices])
    if _C._value_at(weight, level) is None:  # the table is that of every sample
        return batched(call(weight, _C._value_at(indices, level), padding, scale, sparse), level)
    if padding >= 0:
        row = rushlight.arange(weight.shape[0]).eq(padding).unsqueeze(-1)
        weight = rushlight.where(row, weight.detach(), weight)
    return gather(weight, [indices])
