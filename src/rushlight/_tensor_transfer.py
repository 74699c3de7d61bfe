"""Methods of Tensor that give its numbers in another type or place, and those that walk them one by one in Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from . import _C
from ._creation import LEGACY, tensor
from ._tensor import Tensor, _method

__all__: list[str] = []

_TYPE_NAMES = {dtype: f"torch.{name}" for name, dtype in LEGACY.items()}
_TYPE_NAMES[_C.complex64] = "torch.ComplexFloatTensor"
_TYPE_NAMES[_C.complex128] = "torch.ComplexDoubleTensor"
_DTYPES = {name: dtype for dtype, name in _TYPE_NAMES.items()}


def _dtype_of(dtype: Any) -> Any:
    """The dtype that ``Tensor.type`` is asked for: by itself, by the name of a legacy class, or by the class."""
    if isinstance(dtype, _C.dtype):
        return dtype
    if isinstance(dtype, str):
        found = _DTYPES.get(dtype)
        if found is None and dtype.startswith("torch.cuda."):
            raise RuntimeError(f"cannot convert to {dtype!r}: rushlight runs on CPUs only")
        if found is None:
            raise ValueError(f"invalid type: {dtype!r}")
        return found
    found = getattr(dtype, "dtype", None)
    if not isinstance(found, _C.dtype):
        raise TypeError("dtype must be a type, str, or dtype object")
    return found


@_method
def type(self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """Return the name of the tensor's legacy class (``torch.FloatTensor``), or the tensor in another type.

    ``dtype`` is a dtype, such a name, or such a class. ValueError for an unknown name, TypeError for anything else.
    """
    if dtype is None:
        return _TYPE_NAMES[self.dtype]
    return self.to(_dtype_of(dtype))


@_method
def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Copy ``data`` into a new leaf, of this tensor's type where ``dtype`` is None."""
    made = tensor(data.detach().clone() if isinstance(data, Tensor) else data, dtype=dtype or self.dtype, device=device)
    return made.requires_grad_() if requires_grad else made


@_method
def new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """Make a tensor of this type by the legacy constructor: of sizes, of a sequence, or of another tensor."""
    from ._creation import _legacy

    return _legacy(self.dtype, args, {} if device is None else {"device": device})


@_method
def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """Return the tensor itself, in another order of dimensions where ``memory_format`` asks for one."""
    return self if memory_format is None else self.to(memory_format=memory_format)


@_method
def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """Raise AssertionError: there is no CUDA device."""
    raise AssertionError("Torch not compiled with CUDA enabled: rushlight runs on CPUs only")


@_method
def xpu(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """Raise AssertionError: there is no XPU device."""
    raise AssertionError("Torch not compiled with XPU enabled: rushlight runs on CPUs only")


@_method
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Raise RuntimeError: there is no accelerator to pin memory for."""
    raise RuntimeError("Cannot access accelerator device when none is available.")


@_method
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Return False: there is no accelerator to pin memory for."""
    return False


@_method
def get_device(self: Tensor) -> int:
    """Return -1, the number of the CPU."""
    return -1


@_method
def is_shared(self: Tensor) -> bool:
    """True where other processes see the tensor's memory."""
    return self.untyped_storage().is_shared()


@_method
def share_memory_(self: Tensor) -> Tensor:
    """Move the tensor's memory, for all tensors over it, to where other processes can see it."""
    from .multiprocessing.shared_storage import share

    share(self.untyped_storage())
    return self


def _walked(self: Tensor, name: str, others: Sequence[Tensor], callable: Callable[..., Any]) -> Tensor:
    """Overwrite every element with what ``callable`` gives for it and the elements of ``others``, one after the other."""
    if self.requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    for other in others:
        if other.dtype is not self.dtype:
            raise TypeError(f"{name}: expected {self.type()} for 'other' (got {other.type()})")
    columns = [self.flatten().tolist(), *(other.expand(self.shape).flatten().tolist() for other in others)]
    results = [callable(*elements) for elements in zip(*columns, strict=True)]
    if not (self.is_floating_point() or self.is_complex()):
        results = [math.trunc(result) if isinstance(result, float) else result for result in results]
    self.copy_(tensor(results, dtype=self.dtype).reshape(self.shape))
    return self


@_method
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Overwrite every element with ``callable(element)``; slow, in Python."""
    return _walked(self, "apply_", (), callable)


@_method
def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Overwrite every element with ``callable(element, element of tensor)``; slow, in Python."""
    return _walked(self, "map_", (tensor,), callable)


@_method
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Overwrite every element with ``callable(element, element of x, element of y)``; slow, in Python."""
    return _walked(self, "map2_", (x, y), callable)
