"""``Variable``, the name that tensors had when they alone were differentiable (``torch.autograd.Variable``)."""

import warnings
from typing import Any

import rushlight
from rushlight import Tensor

__all__ = ["Variable"]


class VariableMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=VariableMeta):
    """``Variable(data, requires_grad=False, volatile=None, name=None)`` returns a new leaf that shares ``data``.

    Every tensor is an instance of Variable. ``Variable()`` is an empty tensor. Raises TypeError if ``data`` is not a
    tensor, RuntimeError for ``requires_grad=True`` on a dtype that has no gradient.

    ``volatile=True`` (deprecated; use ``no_grad``) makes a tensor from which nothing computed is recorded. The flag
    spreads further than ``requires_grad`` and has priority over it: an operation with a volatile input has volatile
    outputs that do not require grad, whatever its other inputs are.

    What this asks of the core: the tensor's flag ``_volatile``, next to ``requires_grad`` in one word of flags. An
    operation takes the union of its inputs' flags, as it does for ``requires_grad``, records if that union has
    ``requires_grad`` and not ``volatile``, and hands ``volatile`` to its outputs, views among them; this costs nothing
    where nothing is volatile. ``detach()`` keeps the flag, ``.data`` drops it. An in-place operation on a tensor with
    history that has a volatile operand makes that tensor volatile, and its history is forgotten; on a leaf that
    requires grad it is refused as any other. ``Tensor.volatile`` reads and sets the flag with the same warning.
    """

    def __new__(
        cls,
        data: Any = None,
        requires_grad: bool = False,
        volatile: bool | None = None,
        _grad_fn: Any = None,
        name: str | None = None,
    ) -> Any:
        if data is None:
            data = rushlight.empty(0)
        elif not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if _grad_fn is not None:
            raise TypeError(f"_grad_fn has to be a Function object or None, but got {type(_grad_fn).__name__}")
        tensor = data.detach()
        if volatile:
            warnings.warn(
                "Variable(..., volatile=True) is deprecated. Use `with torch.no_grad():` instead.",
                DeprecationWarning,
                stacklevel=2,
            )
            tensor._volatile = True
        if requires_grad:
            tensor.requires_grad_()
        if name is not None:
            tensor.name = name
        return tensor
