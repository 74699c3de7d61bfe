"""Tensors that a module owns: parameters, buffers, and both before their shape is known."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import rushlight
from rushlight import Tensor

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "is_lazy",
]


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """Lets a tensor of any subclass that was marked as a parameter pass for a `Parameter`."""

    def __instancecheck__(self, instance: object) -> bool:
        if type.__instancecheck__(self, instance):
            return True
        return self is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A leaf tensor that a `Module` registers as its parameter when it is assigned as an attribute.

    `data` is a tensor of any shape and dtype (an empty one by default), whose memory the parameter shares;
    `requires_grad=True` needs a floating point or complex dtype. A tensor of a user's subclass stays of that
    subclass and is marked as a parameter; a subclass whose `detach` gives another type raises RuntimeError.
    """

    # Results of operations on parameters are plain tensors.
    __torch_function__ = rushlight._C._disabled_torch_function_impl

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = rushlight.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        marked = data.detach().requires_grad_(requires_grad)
        if type(marked) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns "
                f"an instance of the same type, but return type {type(marked).__name__} was found instead. To use the "
                "type as a Parameter, please correct the detach() semantics defined by its __torch_function__() "
                "implementation."
            )
        marked._is_param = True
        return marked  # type: ignore[no-any-return]  # of the user's class, which passes for a Parameter

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        copied: Parameter | None = memo.get(id(self))
        if copied is None:
            data = self.data.clone(memory_format=rushlight.preserve_format)
            memo[id(self)] = copied = type(self)(data, self.requires_grad)
        return copied

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        from rushlight.io.rebuild import rebuild_parameter, rebuild_parameter_with_state

        # The empty dict stands where PyTorch's format once held backward hooks, which are not saved.
        parts: tuple[Any, ...] = (self.data, self.requires_grad, OrderedDict())
        state = dict(self.__dict__)
        return (rebuild_parameter_with_state, (*parts, state)) if state else (rebuild_parameter, parts)


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    """Lets every tensor that was marked as a buffer pass for a `Buffer`."""

    def __instancecheck__(self, instance: object) -> bool:
        if type.__instancecheck__(self, instance):
            return True
        return self is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a `Module` registers as its buffer when it is assigned as an attribute.

    The result is an alias of `data` (an empty tensor by default) of `data`'s own type, marked as a buffer; with
    `persistent=False` it stays out of the module's `state_dict`.
    """

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = rushlight.empty(0)
        marked = data.detach().requires_grad_(data.requires_grad)
        marked.persistent = persistent
        marked._is_buffer = True
        return marked

    __torch_function__ = rushlight._C._disabled_torch_function_impl


# What may be asked of a tensor without a shape: its dtype and device, and conversions of them.
_SHAPELESS = frozenset(
    ["__hash__", "size", "copy_", "is_complex", "is_floating_point", "half", "float", "double", "char", "short", "int"]
    + ["long", "cuda", "cpu", "to", "get_device"]
)


class UninitializedTensorMixin:
    """What an uninitialized parameter and buffer share: only what needs no shape may be asked of them."""

    cls_to_become: type[Tensor]
    data: Any

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Turn this object in place into a tensor of `shape` with unset numbers.

        `device` and `dtype` default to the ones given at creation.
        """
        data = self.data
        self.data = rushlight.empty(shape, device=device or data.device, dtype=dtype or data.dtype)
        self.__class__ = self.cls_to_become  # type: ignore[assignment]

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> Any:
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.requires_grad,)  # type: ignore[attr-defined]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # Attribute access arrives as the `__get__` of a property.
        if func.__name__ in _SHAPELESS or type(func).__name__ == "method-wrapper":
            return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[misc]
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a "
            "`LazyModule` or explicitly manipulating `torch.nn.parameter.UninitializedParameter` objects. When using "
            "LazyModules Call `forward` with a dummy batch to initialize the parameters before calling torch functions"
        )


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter whose shape is not known yet; `materialize` makes a `Parameter` of it.

    Operations that need the shape raise ValueError, access to `shape` RuntimeError.
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        rushlight._C._watch_overrides()
        return Tensor._make_subclass(cls, rushlight.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> UninitializedParameter:
        copied: UninitializedParameter | None = memo.get(id(self))
        if copied is None:
            memo[id(self)] = copied = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return copied


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known yet; `materialize` makes a tensor of it.

    Operations that need the shape raise ValueError, access to `shape` RuntimeError.
    """

    cls_to_become = Tensor
    persistent: bool
    _is_buffer: bool

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> UninitializedBuffer:
        rushlight._C._watch_overrides()
        made = Tensor._make_subclass(cls, rushlight.empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made


def is_lazy(param: Any) -> bool:
    """Whether `param` is an `UninitializedParameter` or an `UninitializedBuffer`."""
    return isinstance(param, UninitializedTensorMixin)
