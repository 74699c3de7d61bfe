"""Operators of one tensor that apply to values as they are, and those that name sizes."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import Tensor

from ..operators.registry import Overload
from .dims import behind
from .table import BatchingError, family, rule, whole

__all__: list[str] = []


@rule(
    *("alias", "alias_copy", "bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "clone", "contiguous", "detach"),
    *("detach_copy", "double", "empty_like", "float", "full_like", "gelu", "half", "int", "logit", "logit_", "long"),
    *("nan_to_num", "nan_to_num_", "ones_like", "one_hot", "round", "round_", "short", "zero_", "zeros_like"),
    *("constant_pad_nd", "conj", "frexp", "mvlgamma", "real", "imag"),
    *("view_as_real", "view_as_complex", "view_as_real_copy", "view_as_complex_copy"),
)
def mapped(call: Any, level: int, size: int, mask: int, value: Tensor, *rest: Any) -> Any:
    """The operator on the value: it does the same to every element, or to the last dimensions."""
    if call.__name__ == "one_hot" and rest[0] == -1:
        raise BatchingError(
            "vmap: one_hot() with num_classes=-1 counts the classes in the numbers, which may differ between samples "
            "(data-dependent); give num_classes"
        )
    if call.__name__ == "constant_pad_nd" and len(rest[0]) > 2 * (value.dim() - 1):
        raise RuntimeError(
            f"Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(rest[0])} while the input has {value.dim() - 1} dimensions."
        )
    return call(value, *rest)


@rule("tril", "tril_", "triu", "triu_")
def triangle(call: Any, level: int, size: int, mask: int, value: Tensor, diagonal: int) -> Any:
    """The last two dimensions, which a sample must have."""
    if value.dim() < 3:
        raise RuntimeError(f"{call.__name__}: input tensor must have at least 2 dimensions")
    return call(value, diagonal)


@whole("to", "type_as")
def to(call: Any, x: Tensor, kind: Any, *rest: Any) -> Any:
    """To a type, or that of another tensor."""
    if isinstance(kind, Tensor):
        return x.to(kind.dtype, *rest[:2])
    dtype = kind
    if isinstance(rest[0], rushlight.dtype) or (kind is None and not isinstance(rest[0], bool)):
        dtype, rest = rest[0], rest[1:]  # to(device, dtype, ...)
    value, levels = rushlight._C._unbatch(x)
    same = dtype is None or dtype == value.dtype
    if same and not rest[1]:
        return x
    return rushlight._C._rebatch(value.to(value.dtype if dtype is None else dtype, *rest[:2]), levels)


@family("view", "view_copy", "reshape")
def view(call: Any, overload: Overload) -> Any:
    """Another shape of the samples, or another type."""

    def resized(call: Any, level: int, size: int, mask: int, value: Tensor, shape: Any) -> Any:
        if -1 in shape and not size:
            raise RuntimeError(f"cannot reshape tensor of 0 elements into shape {list(shape)}")
        return call(value, (size, *shape))

    def retyped(call: Any, level: int, size: int, mask: int, value: Tensor, dtype: Any) -> Any:
        if value.dim() == 1 and dtype.itemsize != value.dtype.itemsize:
            raise RuntimeError(
                "self.dim() cannot be 0 to view "
                f"{str(value.dtype).removeprefix('torch.')} as {str(dtype).removeprefix('torch.')} "
                "(different element sizes)"
            )
        return call(value, dtype)

    return retyped if overload.parameters[1].type == "torch.dtype" else resized


@whole("view_as", "reshape_as", "expand_as")
def as_other(call: Any, x: Tensor, other: Tensor) -> Any:
    """The shape of another tensor is that of its samples."""
    method: Any = getattr(x, call.__name__[: -len("_as")])
    return method(other.shape)


@rule("expand", "expand_copy", "broadcast_to")
def expand(call: Any, level: int, size: int, mask: int, value: Tensor, shape: Any, *rest: Any) -> Any:
    """New dimensions come between the batch and those that a sample has."""
    value = padded(value, len(shape))
    return call(value, (size, *shape), *rest)


def padded(value: Tensor, count: int) -> Tensor:
    """Dimensions of one behind the batch, until a sample has ``count``."""
    missing = count - (value.dim() - 1)
    if missing <= 0:
        return value
    return value.view(value.shape[0], *(1,) * missing, *value.shape[1:])


@rule("repeat", "tile")
def repeat(call: Any, level: int, size: int, mask: int, value: Tensor, repeats: Any) -> Any:
    """As for expand; fewer repetitions than dimensions stand for the last ones (tile)."""
    count = value.dim() - 1
    if len(repeats) < count:
        if call.__name__ == "repeat":
            raise RuntimeError(
                "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
            )
        repeats = (*(1,) * (count - len(repeats)), *repeats)
    return padded(value, len(repeats)).repeat(1, *repeats)


@rule("ravel")
def ravel(call: Any, level: int, size: int, mask: int, value: Tensor) -> Any:
    """The samples flattened."""
    return value.reshape(size, -1) if size else value.reshape(0, value[0:0].numel())


@rule("sum_to_size")
def sum_to_size(call: Any, level: int, size: int, mask: int, value: Tensor, shape: Any) -> Any:
    """The samples summed over what was broadcast."""
    return call(value, (size, *(1,) * (value.dim() - 1 - len(shape)), *shape)).view(size, *shape)


@rule("as_strided", "as_strided_", "as_strided_copy")
def as_strided(
    call: Any, level: int, size: int, mask: int, value: Tensor, shape: Any, stride: Any, offset: int | None
) -> Any:
    """The geometry is that of a sample; the batch keeps its stride."""
    offset = value.storage_offset() if offset is None else offset
    return call(value, (size, *shape), (value.stride(0), *stride), offset)


@rule("as_strided_scatter")
def as_strided_scatter(
    call: Any, level: int, size: int, mask: int, value: Tensor, new: Tensor, shape: Any, stride: Any, offset: int | None
) -> Any:
    """A copy of each sample, written to."""
    copy = (value if mask & 1 else value.expand(size, *value.shape)).clone(memory_format=rushlight.contiguous_format)
    window = copy.as_strided((size, *shape), (copy.stride(0), *stride), offset or 0)
    window.copy_(padded(new, len(shape)) if mask & 2 else new)
    return copy


@rule("new_empty", "new_full", "new_ones", "new_zeros")
def new(call: Any, level: int, size: int, mask: int, value: Tensor, shape: Any, *rest: Any) -> Any:
    """One tensor for each sample, so that it can be written to."""
    return call(value, (size, *shape), *rest)


@rule("new_empty_strided")
def new_strided(call: Any, level: int, size: int, mask: int, value: Tensor, shape: Any, stride: Any, *rest: Any) -> Any:
    """One block of memory behind the other."""
    extent = 1 + sum([(n - 1) * step for n, step in zip(shape, stride, strict=True)]) if 0 not in shape else 0
    return call(value, (size, *shape), (extent, *stride), *rest)


@rule("flatten")
def flatten(call: Any, level: int, size: int, mask: int, value: Tensor, start: int, end: int) -> Any:
    """A sample without dimensions gets one."""
    count = value.dim() - 1
    first, last = behind(start, count), behind(end, count)
    return call(value, first, last) if count else value.unsqueeze(1)


@rule("unfold", "unfold_copy")
def unfold(call: Any, level: int, size: int, mask: int, value: Tensor, dim: int, length: int, step: int) -> Any:
    """A sample without dimensions has one of a single element."""
    count = value.dim() - 1
    at = behind(dim, count)
    return call(value, at, length, step) if count else call(value.unsqueeze(1), at, length, step).squeeze(1)


@rule("diag_embed")
def diag_embed(call: Any, level: int, size: int, mask: int, value: Tensor, offset: int, a: int, b: int) -> Any:
    """A sample gets one dimension more."""
    count = value.dim()
    return call(value, offset, behind(a, count), behind(b, count))


@rule("diag", "diagflat", "trace")
def diag(call: Any, level: int, size: int, mask: int, value: Tensor, offset: int = 0) -> Any:
    """Diagonals of matrices, and matrices of diagonals."""
    name, count = call.__name__, value.dim() - 1
    if name == "diagflat":
        return value.reshape(size, -1).diag_embed(offset)
    if name == "trace":
        if count != 2:
            raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {count}")
        return value.diagonal(0, 1, 2).sum(-1)
    if count == 1:
        return value.diag_embed(offset)
    if count != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {count}D")
    return value.diagonal(offset, 1, 2).clone()


@rule("fill_diagonal_")
def fill_diagonal(call: Any, level: int, size: int, mask: int, value: Tensor, number: Any, wrap: bool) -> Any:
    """The diagonal of each sample is a view of it."""
    for sample in value.unbind(0):
        sample.fill_diagonal_(number, wrap)
    return value


@whole("is_same_size")
def is_same_size(call: Any, x: Tensor, other: Tensor) -> bool:
    """Sizes are those of samples."""
    return x.shape == other.shape


@whole("equal", "allclose", "is_nonzero")
def to_python(call: Any, *arguments: Any) -> Any:
    """A Python bool would be one for each sample."""
    raise BatchingError(
        f"vmap: {call.__name__}() gives a Python bool, for use in data-dependent control flow, but the samples may "
        "differ: compute with tensors instead (eq, isclose, all)"
    )


@rule(
    *("nonzero", "argwhere", "masked_select", "_unique2", "_unique_consecutive", "resize_", "resize_as_"),
)
def dynamic(call: Any, level: int, size: int, mask: int, *values: Any) -> Any:
    """The shape of the result depends on numbers."""
    from .table import refused

    raise refused(call.__name__)
