"""Operators that name dimensions: with the batch in front, every dimension of a sample is one further."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import Tensor

from ..operators.registry import Overload
from .table import family, looped, rule

__all__ = ["behind", "front", "wrapped"]

NAMES = frozenset(
    ("dim", "dims", "dim0", "dim1", "dim2", "axis0", "axis1", "source", "destination", "start_dim", "end_dim")
    + ("dimension",)
)


def wrapped(dim: int, count: int) -> int:
    """The dimension counted from the front, of ``count``; none counts as one."""
    bound = max(count, 1)
    if not -bound <= dim < bound:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim})")
    return dim + bound if dim < 0 else dim


def behind(dim: Any, count: int) -> Any:
    """The place in a value of a dimension (or several) of its samples, which have ``count``."""
    if type(dim) is int:
        return wrapped(dim, count) + 1
    return tuple([wrapped(d, count) + 1 for d in dim])


def front(value: Tensor, size: int) -> Tensor:
    """A tensor that is the same for all samples, as a value."""
    return value.expand(size, *value.shape)


def shifting(call: Any, overload: Overload) -> Callable[..., Any]:
    """The operator on values, its dimensions one further; tensors beside the first are values too."""
    parameters = overload.parameters
    dims = [i for i, p in enumerate(parameters) if p.name in NAMES]
    others = [i for i, p in enumerate(parameters) if i and p.type == "Tensor"]

    def shifted(call: Any, level: int, size: int, mask: int, value: Tensor, *rest: Any) -> Any:
        arguments = [value if mask & 1 else front(value, size), *rest]
        for i in others:
            if arguments[i] is not None and not mask >> i & 1:
                arguments[i] = front(arguments[i], size)
        count = arguments[0].dim() - 1
        for i in dims:
            if arguments[i] is not None:
                arguments[i] = behind(arguments[i], count)
        if count:
            return call(*arguments)
        for i in (0, *others):  # a sample without dimensions counts as one with a single element
            if arguments[i] is not None and arguments[i].dim() == 1:
                arguments[i] = arguments[i].unsqueeze(-1)
        return _without_last(call(*arguments))

    return shifted


def _without_last(result: Any) -> Any:
    if isinstance(result, Tensor):
        return result.squeeze(-1) if result.dim() == 2 and result.shape[1] == 1 else result
    parts = [_without_last(part) for part in result]
    return type(result)(parts)


family(
    *("softmax", "log_softmax", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "glu"),
    *("sort", "argsort", "topk", "kthvalue", "mode"),
    *("transpose", "transpose_", "transpose_copy", "swapaxes", "swapaxes_", "swapdims", "swapdims_", "movedim"),
    *("moveaxis", "select", "select_copy", "narrow_copy", "slice_copy", "unbind", "unbind_copy"),
    *("split", "split_copy", "split_with_sizes", "split_with_sizes_copy", "chunk", "unsafe_chunk", "unsafe_split"),
    *("unsafe_split_with_sizes", "unflatten", "flip"),
    *("diagonal", "diagonal_copy", "diagonal_scatter", "select_scatter", "slice_scatter", "rot90"),
)(shifting)


@family("narrow")
def narrow(call: Any, overload: Overload) -> Any:
    """A range that starts where a number says, or a tensor, which may differ between samples."""
    return _narrow_from if overload.parameters[2].type == "Tensor" else shifting(call, overload)


def _narrow_from(
    call: Any, level: int, size: int, mask: int, value: Tensor, dim: int, start: Tensor, length: int
) -> Tensor:
    value = value if mask & 1 else front(value, size)
    if value.dim() == 1:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    at = behind(dim, value.dim() - 1)
    first = (start if mask & 4 else front(start, size)).reshape(size, 1)
    places = rushlight.where(first < 0, first + value.shape[at], first) + rushlight.arange(length)
    shape = [size if i == 0 else length if i == at else 1 for i in range(value.dim())]
    return value.take_along_dim(places.reshape(shape), at)


@family("tensor_split")
def tensor_split(call: Any, overload: Overload) -> Any:
    """Places to split at may be a tensor; where it is batched, the sizes differ between the samples."""
    return _split_at if overload.parameters[1].type == "Tensor" else shifting(call, overload)


def _split_at(call: Any, level: int, size: int, mask: int, value: Tensor, places: Tensor, dim: int) -> Any:
    if mask & 2:
        return looped(call, level, size, mask, value, places, dim)
    at: Any = places.tolist()
    return rushlight.tensor_split(value, at, behind(dim, value.dim() - 1))


@rule("permute", "permute_copy")
def permute(call: Any, level: int, size: int, mask: int, value: Tensor, order: Any) -> Any:
    """The batch stays in front."""
    count = value.dim() - 1
    if len(order) != count:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {count} is not equal to len(dims) = {len(order)}"
        )
    return call(value, (0, *behind(order, count)))


@rule("unsqueeze", "unsqueeze_", "unsqueeze_copy")
def unsqueeze(call: Any, level: int, size: int, mask: int, value: Tensor, dim: int) -> Any:
    """A dimension more is one more place to choose."""
    return call(value, behind(dim, value.dim()))


@family("squeeze", "squeeze_", "squeeze_copy")
def squeeze(call: Any, overload: Overload) -> Any:
    """Without a dimension, all of size one but the batch."""
    if len(overload.parameters) > 1:
        return shifting(call, overload)

    def squeeze_all(call: Any, level: int, size: int, mask: int, value: Tensor) -> Any:
        ones = tuple([i for i, n in enumerate(value.shape) if i and n == 1])
        if call.__name__ == "squeeze_":
            return value.squeeze_(ones)
        squeezed = value.squeeze(ones)
        return squeezed.clone() if call.__name__ == "squeeze_copy" else squeezed

    return squeeze_all


@rule("roll")
def roll(call: Any, level: int, size: int, mask: int, value: Tensor, shifts: Any, dims: Any) -> Any:
    """Without dimensions, the samples flattened."""
    if not dims:
        return call(value.flatten(1), shifts, (1,)).view(value.shape) if value.dim() > 1 else value.clone()
    return call(value, shifts, behind(dims, value.dim() - 1))


@rule("fliplr", "flipud", "msort")
def named(call: Any, level: int, size: int, mask: int, value: Tensor) -> Any:
    """Operators whose name chooses the dimension."""
    name = call.__name__
    count = value.dim() - 1
    least = {"fliplr": 2, "flipud": 1, "msort": 0}[name]
    if count < least:
        raise RuntimeError(f"Input must be >= {least}-d.")
    if name == "msort":
        return value.sort(1)[0] if count else value.clone()
    return rushlight.flip(value, (least,))


@rule("t", "t_", "t_copy")
def t(call: Any, level: int, size: int, mask: int, value: Tensor) -> Any:
    """The transposed of samples with at most two dimensions."""
    count = value.dim() - 1
    if count > 2:
        raise RuntimeError(f"{call.__name__}() expects a tensor with <= 2 dimensions, but self is {count}D")
    if call.__name__ == "t_":
        return value.transpose_(1, 2) if count == 2 else value
    turned = value.transpose(1, 2) if count == 2 else value.view_as(value)
    return turned.clone() if call.__name__ == "t_copy" else turned


@rule("adjoint")
def adjoint(call: Any, level: int, size: int, mask: int, value: Tensor) -> Any:
    """The adjoint of the last two dimensions, which a sample must have."""
    if value.dim() < 3:
        raise RuntimeError(
            f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {value.dim() - 1}-D tensor."
        )
    return call(value)


@rule("hsplit", "vsplit", "dsplit")
def nsplit(call: Any, level: int, size: int, mask: int, value: Tensor, places: Any) -> Any:
    """Splitting along the first, second or third dimension."""
    name, count = call.__name__, value.dim() - 1
    dim = {"hsplit": 2 if count > 1 else 1, "vsplit": 1, "dsplit": 3}[name]
    least = {"hsplit": 1, "vsplit": 2, "dsplit": 3}[name]
    if count < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {count} dimensions!"
        )
    if type(places) is int and value.shape[dim] % places:
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim - 1}, but the size of the dimension "
            f"{value.shape[dim]} is not divisible by the split_size {places}!"
        )
    return value.tensor_split(places, dim)


@rule("repeat_interleave")
def repeat_interleave(call: Any, level: int, size: int, mask: int, value: Tensor, *rest: Any) -> Any:
    """The number of repetitions is the same for all samples."""
    if len(rest) < 3 or mask & 2:
        from .table import refused

        raise refused("repeat_interleave")
    repeats, dim, output_size = rest
    if dim is None:
        return rushlight.repeat_interleave(value.reshape(size, -1), repeats, 1, output_size=output_size)
    return rushlight.repeat_interleave(value, repeats, behind(dim, value.dim() - 1), output_size=output_size)


@rule("diff")
def diff(
    call: Any, level: int, size: int, mask: int, value: Tensor, n: int, dim: int, prepend: Any, append: Any
) -> Any:
    """What is put before and behind belongs to the samples."""
    value = value if mask & 1 else front(value, size)
    parts = []
    for bit, part in ((8, prepend), (16, append)):
        parts.append(part if part is None or mask & bit else front(part, size))
    return call(value, n, behind(dim, value.dim() - 1), *parts)
