"""The protocol ``__torch_function__``: functions of the package that other types implement (``torch.overrides``).

A class with a class method ``__torch_function__(cls, func, types, args, kwargs)`` takes over calls in which an instance of
it is an argument: calls of operators and functions of tensors, and of what a subclass of Tensor inherits. Functions of
other packages offer themselves with :func:`has_torch_function` and :func:`handle_torch_function`, or by
:func:`wrap_torch_function`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

import rushlight
from rushlight import _C, Tensor

from ._missing import lazy_module, torch_name
from ._torch_function import default_nowrap_functions, handle, implementing, is_enabled, relevant, takes_over

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


class TorchFunctionMode:
    """A context in which this object is asked for every call of an operator or function of tensors.

    A subclass overrides ``__torch_function__``.

    What it calls itself goes to the mode around it, or to the operator. It holds for the thread that enters it.
    """

    def __torch_function__(
        self, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Return the result of ``func(*args, **kwargs)``, or another one."""
        raise NotImplementedError(f"{type(self).__name__}.__torch_function__")

    def __enter__(self) -> Self:
        _C._push_call_handler(self._called, True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _C._pop_call_handler()

    def _called(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        types = tuple([type(argument) for argument in implementing(relevant(args, kwargs))])
        result = self.__torch_function__(function, types, args, kwargs)
        if result is NotImplemented:
            raise TypeError(f"no implementation found for '{resolve_name(function)}' in the mode {type(self).__name__}")
        return result


class BaseTorchFunctionMode(TorchFunctionMode):
    """The mode that changes nothing."""

    def __torch_function__(
        self, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Return ``func(*args, **kwargs)``."""
        return func(*args, **(kwargs or {}))


F = TypeVar("F", bound=Callable[..., Any])


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments is of a type that takes over calls."""
    return is_enabled() and any(takes_over(type(argument)) for argument in relevant_args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Call ``public_api`` through the ``__torch_function__`` of its arguments, until one does not return NotImplemented.

    ``relevant_args`` are those that may take over; ``args`` and ``kwargs`` are passed on. TypeError if none does.
    """
    return handle(public_api, relevant_args, args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[F], F]:
    """A decorator that lets arguments take over a function; ``dispatcher``, called alike, says which ones may."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        offered: F = wrapped  # type: ignore[assignment]  # of the same parameters and result
        return offered

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether ``inp`` is a tensor or of a type with ``__torch_function__``."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether ``func``, as ``__torch_function__`` gets it, is a method of Tensor or the access to an attribute."""
    return getattr(func, "__name__", "") == "__get__" or func in _methods()


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Accesses whose results stay of their own type in a subclass: the gradient and the base of a view."""
    return default_nowrap_functions()


@functools.cache
def _methods() -> set[Callable[..., Any]]:
    return {value for value in vars(Tensor).values() if callable(value) and not isinstance(value, type)}


def _places() -> list[Any]:
    submodules = (rushlight.linalg, rushlight.fft, rushlight.special)
    return [rushlight, rushlight.functional, rushlight.nn.functional, rushlight.nn.init, *submodules, Tensor]


def _takes_tensors(function: Any) -> bool:
    """Has the function a parameter that a tensor may stand for?  Python functions are taken to have one."""
    if not isinstance(function, _C.Operator):
        return True
    return any(
        p[1] in ("Tensor", "Operand", "tuple of Tensors") for o in function.overloads for p in o[3] if p[0] != "out"
    )


@functools.cache
def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that arguments may take over, by the module (or Tensor) that offers them."""
    found: dict[Any, list[Callable[..., Any]]] = {}
    for place in _places():
        shown = vars(Tensor) if place is Tensor else getattr(place, "__all__", None) or vars(place)
        for name in shown:
            if name.startswith("_") and place is not Tensor:
                continue
            value: Any = getattr(place, name, None)
            is_function = isinstance(value, _C.Operator) or inspect.isroutine(value)
            if is_function and name not in _OWN_METHODS and _takes_tensors(value):
                found.setdefault(place, []).append(value)
    return found


_OWN_METHODS = frozenset(
    ["__new__", "__init__", "__class__", "__getattribute__", "__setattr__", "__delattr__", "__init_subclass__"]
    + ["__subclasshook__", "__torch_function__", "_make_subclass", "__dir__", "__sizeof__", "__reduce__"]
)


@functools.cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """Functions of the package that no argument takes over: they have no tensors among their arguments."""
    return {value for value in vars(rushlight).values() if isinstance(value, _C.Operator) and not _takes_tensors(value)}


@functools.cache
def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For every function that arguments may take over, a function of the same parameters that returns -1."""
    found: dict[Callable[..., Any], Callable[..., Any]] = {}
    for functions in get_overridable_functions().values():
        for function in functions:
            try:
                parameters = list(inspect.signature(function).parameters.values())
            except (TypeError, ValueError):  # methods of the core that say nothing of their parameters
                continue
            found[function] = _of_the_same_parameters(parameters)
    return found


def _of_the_same_parameters(parameters: list[inspect.Parameter]) -> Callable[..., Any]:
    def replacement(*args: Any, **kwargs: Any) -> int:
        signature.bind(*args, **kwargs)
        return -1

    signature = inspect.Signature(parameters)
    replacement.__signature__ = signature  # type: ignore[attr-defined]
    return replacement


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The dotted name that PyTorch has for a function which arguments may take over; None for another one."""
    for place, functions in get_overridable_functions().items():
        if any(f is function for function in functions):
            name = f.__name__
            return f"torch.Tensor.{name}" if place is Tensor else f"{torch_name(place.__name__)}.{name}"
    return None


__getattr__, __dir__ = lazy_module(__name__)
