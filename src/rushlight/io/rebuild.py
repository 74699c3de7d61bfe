"""Tensors, parameters and their attributes rebuilt from what a checkpoint says about them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import rushlight

from . import memory

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST_INT64 = (1 << 63) - 1

UNSUPPORTED_KINDS = {
    "_rebuild_sparse_tensor": "sparse tensors",
    "_rebuild_qtensor": "quantized tensors",
    "_rebuild_nested_tensor": "nested tensors",
    "_rebuild_wrapper_subclass": "tensors that wrap others",
    "_rebuild_device_tensor_from_numpy": "tensors of devices without storage",
}


def unsupported(kind: str) -> Callable[..., NoReturn]:
    """A rebuild function that says what is not here."""

    def refuse(*args: Any) -> NoReturn:
        raise NotImplementedError(f"the file holds {kind}, which are not in rushlight")

    return refuse


def check_sizes(what: str, values: Any) -> tuple[int, ...]:
    """``values`` as a tuple of integers of at most 63 bits, none negative."""
    if not isinstance(values, (tuple, list)):
        raise TypeError(f"{what} is a {type(values).__name__}, expected a tuple")
    for value in values:
        if type(value) is not int:
            raise TypeError(f"{what} {tuple(values)} has a {type(value).__name__} in it")
        if not 0 <= value <= LARGEST_INT64:
            raise RuntimeError(f"{what} {tuple(values)} has a negative or overflowing number in it")
    return tuple(values)


def check_view(nbytes: int, item_size: int, offset: Any, size: Any, stride: Any) -> None:
    """Refuse a tensor that reaches beyond its storage of ``nbytes`` bytes, with ``RuntimeError``."""
    size, stride = check_sizes("size", size), check_sizes("stride", stride)
    (offset,) = check_sizes("storage offset", (offset,))
    if len(size) != len(stride):
        raise RuntimeError(f"unequal size length ({len(size)}) and stride length ({len(stride)})")
    if prod(size) > LARGEST_INT64:
        raise RuntimeError(f"numel: integer multiplication overflow for size {list(size)}")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    needed = (last + 1) * item_size if prod(size) else offset * item_size
    if needed > nbytes:
        raise RuntimeError(
            f"a tensor of size {list(size)}, stride {list(stride)} and storage offset {offset} needs "
            f"{needed} bytes, but its storage has {nbytes}"
        )


def view_of(storage: Any, dtype: Any, offset: Any, size: Any, stride: Any) -> rushlight.Tensor:
    """A tensor over ``storage``, once it is known to lie inside."""
    check_view(storage.nbytes(), dtype.itemsize, offset, size, stride)
    return memory.tensor_over(storage, dtype, offset, tuple(size), tuple(stride))


def finish(tensor: rushlight.Tensor, requires_grad: Any, metadata: Any) -> rushlight.Tensor:
    """``tensor`` with the flags that a checkpoint keeps beside the numbers."""
    for flag, value in check_attributes({} if metadata is None else metadata).items():
        if flag not in ("conj", "neg"):
            raise NotImplementedError(f"the tensor flag {flag!r} is not in rushlight")
        if value:
            tensor = tensor.conj() if flag == "conj" else tensor.neg()
    if requires_grad is not False:
        tensor.requires_grad_(_flag(requires_grad))
    return tensor


def rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any) -> Any:
    if not isinstance(data, rushlight.Tensor):
        raise TypeError(f"a parameter of a {type(data).__name__}")
    return rushlight.nn.Parameter(data, _flag(requires_grad))


def rebuild_parameter_with_state(data: Any, requires_grad: Any, backward_hooks: Any, state: Any) -> Any:
    return with_type_and_state(rebuild_parameter(data, requires_grad, backward_hooks), None, state)


def rebuild_meta_tensor(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> rushlight.Tensor:
    size, stride = check_sizes("size", size), check_sizes("stride", stride)
    return rushlight.empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=_flag(requires_grad))


def rebuild_from_cpu_tensor(data: Any, dtype: Any, device: Any, requires_grad: Any) -> rushlight.Tensor:
    if not isinstance(data, rushlight.Tensor):
        raise TypeError(f"a tensor of a {type(data).__name__}")
    return finish(data.to(dtype), requires_grad, None)


def with_type_and_state(tensor: Any, cls: Any, state: Any) -> Any:
    """``tensor`` as an instance of ``cls`` (None: as it is), with the attributes that were saved with it."""
    if not isinstance(tensor, rushlight.Tensor):
        raise TypeError(f"a {type(tensor).__name__} where a tensor was expected")
    if cls is not None and type(tensor) is not cls:
        tensor = tensor.as_subclass(cls)
    attributes, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
    if slots:
        raise TypeError("slots of a tensor subclass are not restored")
    tensor.__dict__.update(check_attributes(attributes or {}))
    return tensor


def check_attributes(attributes: Any) -> dict[str, Any]:
    """``attributes``, if they are a dictionary by names."""
    if not isinstance(attributes, dict) or not all(type(name) is str for name in attributes):
        raise TypeError(f"attributes are a {type(attributes).__name__}, expected a dictionary of names")
    return attributes


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise TypeError(f"a flag is a {type(value).__name__}, expected a bool")
    return value
