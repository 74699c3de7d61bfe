"""What Tensor itself does with ``__torch_function__`` (see `overrides`): results of a subclass are of the subclass.

Operators offer their calls in the core (core/python/override.cpp). Everything else that a tensor has, its attributes,
number slots and other methods, is offered by the subclass: when one is defined it gets members that ask it first. So
plain tensors do not pay for any of this.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from . import _C
from ._missing import torch_name

Tensor = _C.Tensor


def disabled(func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
    """The ``__torch_function__`` of a class whose results are plain tensors: the function itself, which asks nobody."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


class DisableTorchFunctionSubclass:
    """A context in which no argument takes over a call, in this thread."""

    def __enter__(self) -> None:
        _C._override_depth(1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _C._override_depth(-1)


DisableTorchFunction = DisableTorchFunctionSubclass


def is_enabled() -> bool:
    """May arguments take over calls in this thread?"""
    return not _C._override_depth(0)


# ---- asking


def takes_over(kind: type) -> bool:
    """Do objects of a class take over calls? Tensor itself need not, and some classes say that they do not."""
    return kind is not Tensor and getattr(kind, "__torch_function__", disabled) is not disabled


def implementing(arguments: Iterable[Any]) -> list[Any]:
    """One argument per type that takes over calls: as given, but a subclass before its bases."""
    found: list[Any] = []
    for argument in arguments:
        kind = type(argument)
        if not takes_over(kind) or any(type(other) is kind for other in found):
            continue
        at = next((i for i, other in enumerate(found) if issubclass(kind, type(other))), len(found))
        found.insert(at, argument)
    return found


def handle(function: Any, candidates: Iterable[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Ask the types of the relevant arguments, until one does not return NotImplemented; TypeError if all do."""
    asked = implementing(candidates)
    types = tuple([type(argument) for argument in asked])
    for argument in asked:
        result = type(argument).__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{torch_name(getattr(function, '__module__', Tensor.__module__))}.{function.__name__}"
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {list(types)}")


def relevant(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments of an operator that may take over: those of lists too."""
    found: list[Any] = []
    for argument in (*args, *kwargs.values()):
        found += argument if type(argument) in (tuple, list) else (argument,)
    return found


def _dispatch(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The core found that an argument takes over."""
    return handle(function, relevant(args, kwargs), args, kwargs)


# ---- what Tensor does


def _of_class(value: Any, cls: type[Tensor]) -> Any:
    """Tensors, and tuples and lists of them, in objects of the class."""
    if isinstance(value, Tensor):
        return value if isinstance(value, cls) else value.as_subclass(cls)
    if isinstance(value, tuple | list):
        parts = [_of_class(part, cls) for part in value]
        make = getattr(value, "_make", type(value))  # of a named tuple
        return value if all(map(operator.is_, parts, value)) else make(parts)
    return value


@functools.cache
def default_nowrap_functions() -> set[Callable[..., Any]]:
    """Accesses whose results stay of their own type in a subclass: the gradient and the base of a view."""
    attributes: list[Any] = [vars(Tensor)[name] for name in ("_base", "grad", "_grad")]
    return {attribute.__get__ for attribute in attributes}


def _torch_function(
    cls: type[Tensor], func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """Call ``func`` on the arguments as tensors and return its results in objects of ``cls``.

    NotImplemented where an argument is of a type that ``cls`` does not descend from.
    """
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
        return result if func in default_nowrap_functions() else _of_class(result, cls)


# ---- members of subclasses that ask

# what belongs to the object rather than to the tensor
_OWN = frozenset(
    ["__new__", "__init__", "__init_subclass__", "__class__", "__dict__", "__weakref__", "__doc__", "__module__"]
    + ["__getattribute__", "__setattr__", "__delattr__", "__hash__", "__dir__", "__sizeof__", "__subclasshook__"]
    + ["__torch_function__", "__reduce_ex__", "as_subclass", "data_ptr"]
)
# number slots that are operators by other names; the operators ask
_OPERATORS = {
    **{
        f"__{name}__": name
        for name in ("add", "sub", "mul", "pow", "neg", "abs", "matmul", "eq", "ne", "lt", "le", "gt", "ge")
    },
    **{f"__i{name}__": f"{name}_" for name in ("add", "sub", "mul", "pow")},
    "__radd__": "add",
    "__rmul__": "mul",
    "__truediv__": "div",
    "__itruediv__": "div_",
    "__floordiv__": "floor_divide",
    "__mod__": "remainder",
}


def _asking_method(function: Any) -> Any:
    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_enabled():
            return function(self, *args, **kwargs)
        return handle(function, (self, *args, *kwargs.values()), (self, *args), kwargs)

    return call


def _asking_slot(name: str, function: Any) -> Any:
    """A slot of two operands, which leaves what is no operand to the other side."""
    offered = getattr(Tensor, _OPERATORS.get(name, name))

    @functools.wraps(function)
    def call(self: Any, other: Any, *rest: Any) -> Any:
        if not is_enabled() or not (isinstance(other, Tensor | int | float | complex) or takes_over(type(other))):
            return function(self, other, *rest)
        return handle(offered, (self, other), (self, other, *rest), {})

    return call


def _asking_attribute(descriptor: Any) -> Any:
    def read(self: Any) -> Any:
        return handle(descriptor.__get__, (self,), (self,), {}) if is_enabled() else descriptor.__get__(self)

    def write(self: Any, value: Any) -> None:
        if is_enabled():
            handle(descriptor.__set__, (self, value), (self, value), {})
        else:
            descriptor.__set__(self, value)

    return property(read, write)


@functools.cache
def _asking_members() -> dict[str, Any]:
    two_operands = {name for name in vars(Tensor) if name.endswith("__")} & _BINARY
    members: dict[str, Any] = {}
    for name, value in vars(Tensor).items():
        if name in _OWN or (name[0] == "_" and name[:2] != "__") or isinstance(value, _C.Operator | staticmethod):
            continue
        if name in two_operands:
            members[name] = _asking_slot(name, value)
        elif callable(value):
            members[name] = _asking_method(value)
        elif hasattr(value, "__get__"):
            members[name] = _asking_attribute(value)
    return members


_BINARY = {
    *[
        f"__{side}{name}__"
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
        for side in ("", "r", "i")
    ],
    *[f"__{side}{name}__" for name in ("and", "or", "xor", "lshift", "rshift") for side in ("", "r", "i")],
    *["__matmul__", "__rmatmul__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"],
}


def _init_subclass(cls: type[Tensor], /, **kwargs: Any) -> None:
    """Give a class that takes over calls the members that ask it, but for those that it defines itself."""
    super(Tensor, cls).__init_subclass__(**kwargs)
    if not takes_over(cls):
        return
    if not cls.__module__.startswith("rushlight."):  # our own classes watch when one of them is made
        _C._watch_overrides()
    defined = {name for base in cls.__mro__[: cls.__mro__.index(Tensor)] for name in vars(base)}
    for name, member in _asking_members().items():
        if name not in defined:
            setattr(cls, name, member)


def install() -> None:
    """Give Tensor its part of the protocol, once it has all its members."""
    members = {
        "__torch_function__": classmethod(_torch_function),
        "__init_subclass__": classmethod(_init_subclass),
    }
    for name, member in members.items():
        setattr(Tensor, name, member)
    core = {
        "_disabled_torch_function_impl": disabled,
        "DisableTorchFunctionSubclass": DisableTorchFunctionSubclass,
        "DisableTorchFunction": DisableTorchFunction,
        "_is_torch_function_enabled": is_enabled,
    }
    for name, value in core.items():
        setattr(_C, name, value)
    setattr(_C._BatchedTensor, "__torch_function__", disabled)  # noqa: B010  (vmap's own business)
    _C._set_override_dispatch(_dispatch, disabled)


install()
