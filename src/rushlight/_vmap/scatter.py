"""Operators that gather and scatter along a dimension."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import Tensor

from ..operators.operation import every_sample
from ..operators.registry import Overload
from .dims import behind, front, shifting
from .table import family, looped, rule

__all__: list[str] = []

family("scatter", "scatter_add", "scatter_reduce")(shifting)


@family("gather")
def gather(call: Any, overload: Overload) -> Any:
    """The result has the dimensions of the index, also where the samples have none."""
    shifted = shifting(call, overload)
    at = [p.name for p in overload.parameters].index("index")

    def gathered(call: Any, level: int, size: int, mask: int, *values: Any) -> Any:
        found = shifted(call, level, size, mask, *values)
        return found.unsqueeze(-1) if values[at].dim() - (mask >> at & 1) > found.dim() - 1 else found

    return gathered


@family("scatter_", "scatter_add_", "scatter_reduce_")
def scatter_in_place(call: Any, overload: Overload) -> Any:
    """As the functional form: the value is batched, or the call is refused before."""
    return shifting(call, overload)


@rule("take_along_dim")
def take_along_dim(call: Any, level: int, size: int, mask: int, value: Tensor, index: Tensor, dim: Any) -> Any:
    """The other dimensions broadcast."""
    value = value if mask & 1 else front(value, size)
    index = index if mask & 2 else front(index, size)
    if dim is None:
        return call(value.reshape(size, -1), index.reshape(size, -1), 1)
    return call(value, index, behind(dim, value.dim() - 1))


def _fits_one_row(arguments: list[Any], size: int, source: int | None, mask: int) -> bool:
    """Is the index a row of places that are all within their sample? What is not is refused sample by sample."""
    value, dim, index = arguments[:3]
    count = value.dim() - 1
    if source is None and mask & 8:
        return False
    if source is not None and arguments[source].dim() - (mask >> source & 1) != count:
        return False
    if (
        index.dim() != 2
        or not size
        or not -count <= dim < count
        or index.dtype not in (rushlight.int64, rushlight.int32)
    ):
        return False
    places = every_sample(index)
    return not ((places < 0) | (places >= value.shape[behind(dim, count)])).any()


def _in_one_row(call: Any, arguments: list[Any], size: int, source: int | None) -> Tensor:
    """The operator along the dimension of all samples, one behind the other."""
    value, dim, index, *rest = arguments
    at = behind(dim, value.dim() - 1)
    length = value.shape[at]
    rows = value.movedim(at, 1).flatten(0, 1)
    index = (index + rushlight.arange(size, dtype=index.dtype).unsqueeze(1) * length).flatten()
    if source is not None:
        given = rest[source - 3]
        given = given if given.dim() == value.dim() else front(given, size)
        rest[source - 3] = given.movedim(at, 1).flatten(0, 1)
    changes = call.__name__[-1] == "_"
    written: Tensor = call(rows.clone() if changes else rows, 0, index, *rest)
    result = written.unflatten(0, (size, length)).movedim(1, at)
    return value.copy_(result) if changes else result


@family("index_add", "index_copy", "index_reduce", "index_fill")
def along_index(call: Any, overload: Overload) -> Any:
    """Positions that are the same for all samples, or one row of positions in the rows of all samples."""
    names = [p.name for p in overload.parameters]
    source = names.index("source") if "source" in names else None

    def written(call: Any, level: int, size: int, mask: int, value: Tensor, dim: int, index: Tensor, *rest: Any) -> Any:
        arguments = [value if mask & 1 else front(value, size), dim, index, *rest]
        if mask & 4 and _fits_one_row(arguments, size, source, mask):
            return _in_one_row(call, arguments, size, source)
        if mask & 4 or arguments[0].dim() == 1 or (source is None and mask & 8):
            mask |= 1
            if source is not None and not mask >> source & 1:
                arguments[source] = front(arguments[source], size)
                mask |= 1 << source
            return looped(call, level, size, mask, *arguments)
        if source is not None and not mask >> source & 1:
            arguments[source] = front(arguments[source], size)
        if source is not None and arguments[source].dim() == 1:
            arguments[source] = arguments[source].unsqueeze(-1)
        arguments[1] = behind(dim, arguments[0].dim() - 1)
        return call(*arguments)

    return written


@rule(
    "masked_scatter",
    "masked_scatter_",
    "combinations",
    "vander",
    "linspace",
    "logspace",
    "nonzero_static",
    "_dirichlet_grad",
    "renorm",
)
def by_sample(call: Any, level: int, size: int, mask: int, *values: Any) -> Any:
    """What takes numbers in order, sample by sample."""
    return looped(call, level, size, mask, *values)


@rule("searchsorted")
def searchsorted(
    call: Any,
    level: int,
    size: int,
    mask: int,
    sequence: Tensor,
    x: Any,
    int32: bool,
    right: bool,
    side: Any,
    order: Any,
) -> Any:
    """Sequences with a batch in front are searched row by row."""
    if not isinstance(x, Tensor):
        return looped(call, level, size, mask, sequence, x, int32, right, side, order)
    count = sequence.dim() - (mask & 1)
    if not mask & 1 and (order is None or not mask & 32) and count == 1:
        return call(sequence, x, int32, right, side, order)
    sequence = sequence if mask & 1 else front(sequence, size)
    x = x if mask & 2 else front(x, size)
    if order is not None and not mask & 32:
        order = front(order, size)
    if count > 1:
        return call(sequence, x, int32, right, side, order)
    return call(sequence, x.reshape(size, -1), int32, right, side, order).view(x.shape)


@rule("bucketize")
def bucketize(call: Any, level: int, size: int, mask: int, x: Any, bounds: Tensor, int32: bool, right: bool) -> Any:
    """searchsorted, by its other name."""
    if not mask & 2:
        return call(x, bounds, int32, right)
    x = x if isinstance(x, Tensor) else rushlight.as_tensor(x)
    x = x if mask & 1 else front(x, size)
    return rushlight.searchsorted(bounds, x.reshape(size, -1), out_int32=int32, right=right).view(x.shape)
