"""Tensors from data: ``tensor``, ``as_tensor``, the legacy constructors, default types."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from . import _C

__all__ = [
    "as_tensor",
    "asarray",
    "get_default_device",
    "is_complex",
    "is_floating_point",
    "is_storage",
    "is_tensor",
    "numel",
    "set_default_device",
    "set_default_dtype",
    "set_default_tensor_type",
    "tensor",
    "typename",
]

Tensor = _C.Tensor


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """Copy numbers, nested sequences of them, an array or a tensor into a new leaf.

    ``dtype`` is inferred where None: bool, int64, the default floating type; arrays and tensors keep theirs. Raises
    ValueError for sequences of unequal lengths, TypeError for what is no number, RuntimeError for ``requires_grad`` on
    an integer type.
    """
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            stacklevel=2,
        )
    made = _C._tensor_from_data(data, dtype, True, device)
    return made.requires_grad_() if requires_grad else made


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return ``data`` as a tensor, sharing memory with arrays and tensors where type allows."""
    if isinstance(data, Tensor) and (dtype is None or dtype is data.dtype):
        return data
    if isinstance(data, Tensor):
        return data.to(dtype)
    return _C._tensor_from_data(data, dtype, False, device)


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """Return ``obj`` (tensor, array, DLPack object, buffer or sequence) as a tensor; ``copy`` forces or forbids a copy."""
    if isinstance(obj, Tensor):
        made = obj.clone() if copy else obj
        made = made.to(dtype) if dtype is not None else made
        made = made if requires_grad else made.detach()
    elif hasattr(obj, "__dlpack__") and not isinstance(obj, np.ndarray | np.generic):
        made = _C.from_dlpack(obj)
        made = made.clone() if copy else made
        made = made.to(dtype) if dtype is not None else made
    else:
        made = _C._tensor_from_data(obj, dtype, bool(copy), device)
    if copy is False and isinstance(obj, Tensor) and made.data_ptr() != obj.data_ptr():
        raise ValueError("can't alias tensor with dtype and copy=False")
    return made.requires_grad_() if requires_grad else made


def is_tensor(obj: Any) -> bool:
    """True where ``obj`` is a Tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> bool:
    """True where ``obj`` is an UntypedStorage."""
    return isinstance(obj, _C.UntypedStorage)


@_C._offered
def is_floating_point(input: Tensor) -> bool:
    """True where the tensor's type is float16, bfloat16, float32 or float64."""
    return input.dtype.is_floating_point


@_C._offered
def is_complex(input: Tensor) -> bool:
    """True where the tensor's type is complex."""
    return input.dtype.is_complex


@_C._offered
def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def typename(obj: Any) -> str:
    """The name of a tensor's type (``torch.FloatTensor``), or of the class of another object."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    module = getattr(obj, "__module__", None) or ""
    name = getattr(obj, "__qualname__", None) or type(obj).__qualname__
    return name if module in ("", "builtins") else f"{module}.{name}"


def set_default_dtype(d: Any) -> None:
    """Make ``d`` (a floating type) the type that new tensors of Python floats get."""
    _C._set_default_dtype(d)


def set_default_tensor_type(t: Any) -> None:
    """Set the default type by its legacy name: ``"torch.DoubleTensor"`` or the class."""
    name = t if isinstance(t, str) else getattr(t, "__name__", "")
    dtype = LEGACY.get(name.rsplit(".", 1)[-1])
    if dtype is None or not dtype.is_floating_point:
        raise TypeError(f"invalid type object: only floating-point types are supported as the default type, got {t!r}")
    _C._set_default_dtype(dtype)


def get_default_device() -> Any:
    """Always the CPU."""
    return _C.device("cpu")


def set_default_device(device: Any) -> None:
    """Accept the CPU; any other device raises."""
    if device is not None:
        _C.empty((0,), device=device)


LEGACY = {
    "BoolTensor": _C.bool,
    "ByteTensor": _C.uint8,
    "CharTensor": _C.int8,
    "ShortTensor": _C.int16,
    "IntTensor": _C.int32,
    "LongTensor": _C.int64,
    "HalfTensor": _C.float16,
    "BFloat16Tensor": _C.bfloat16,
    "FloatTensor": _C.float32,
    "DoubleTensor": _C.float64,
}


def _legacy(dtype: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """What ``FloatTensor(...)`` makes: of sizes an uninitialised tensor, of a sequence or array its numbers."""
    device = kwargs.pop("device", None)
    if kwargs:
        raise TypeError(f"legacy constructor got an unexpected keyword argument {next(iter(kwargs))!r}")
    if not args:
        return _C.empty((0,), dtype=dtype, device=device)
    first = args[0]
    if len(args) == 1:
        if isinstance(first, Tensor):
            if first.dtype is not dtype:
                raise TypeError(f"expected {dtype} (got {first.dtype})")
            return first.detach()
        if isinstance(first, _C.Size):
            return _C.empty(first, dtype=dtype, device=device)
        if not isinstance(first, int) or isinstance(first, bool):
            if isinstance(first, float | complex | bool | str):
                raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
            return _C._tensor_from_data(first, dtype, True, device)
    for i, size in enumerate(args):
        if isinstance(size, bool) or not hasattr(size, "__index__"):
            raise TypeError(f"new() takes sizes as integers, but argument {i} is of type {type(size).__name__}")
    return _C.empty(tuple(args), dtype=dtype, device=device)


class _LegacyType(type):
    """The class of FloatTensor and its like: a tensor is an instance of the one of its type."""

    dtype: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return _legacy(cls.dtype, args, kwargs)


for _name, _dtype in LEGACY.items():
    globals()[_name] = _LegacyType(_name, (), {"dtype": _dtype, "__module__": "rushlight"})
__all__ += list(LEGACY)


def _default_tensor(*args: Any, **kwargs: Any) -> Tensor:
    return _legacy(_C.get_default_dtype(), args, kwargs)


_C._set_legacy_constructor(_default_tensor)
