"""Switches of what is recorded: context managers that are decorators too (``torch.autograd.grad_mode``).

Every switch belongs to the thread that set it; a new thread starts with recording on and inference mode off.

The state lives in the core, which reads it on every operation; the classes here do no more than set and restore it.
They ask of ``_C``: ``is_grad_enabled()``, ``_set_grad_enabled(bool)``, ``is_inference_mode_enabled()``,
``_set_inference_mode(bool)`` (the inference flag alone), ``_is_multithreading_enabled()`` and
``_set_multithreading_enabled(bool)``.

PyTorch's ``_force_original_view_tracking`` and ``_unsafe_preserve_version_counter``
are not here: gradients are always laid out for their parameter, and views have one way of being tracked.
"""

import functools
import inspect
import types
import warnings
from collections.abc import Callable, Generator
from typing import Any, Self, TypeVar, overload

from rushlight import _C

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])

_is_grad_enabled = _C.is_grad_enabled
_set_grad_enabled = _C._set_grad_enabled
_is_inference_mode_enabled = _C.is_inference_mode_enabled
_set_inference_mode = _C._set_inference_mode


class _DecoratorContextManager:
    """A context manager that, called with a function, returns that function run inside the context.

    Each call enters a context of its own (``clone``), so that a decorated function may recurse and run in threads.
    """

    __slots__ = ()

    def __enter__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.__enter__")

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__}.__exit__")

    def clone(self) -> Self:
        return type(self)()

    def __call__(self, orig_func: F) -> F:
        decorated: F = _decorate(self.clone, orig_func)
        return decorated


class no_grad(_DecoratorContextManager):
    """Record nothing inside: results of operations do not require grad.

    A context manager, or a decorator with or without parentheses, of functions, generator functions and coroutine
    functions. Creation functions with ``requires_grad=True`` still return leaves that require it. Views made inside
    may not be changed in place outside if their base requires grad.
    """

    __slots__ = ("prev",)

    prev: bool

    @overload
    def __new__(cls) -> Self: ...
    @overload
    def __new__(cls, orig_func: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, orig_func: Any = None) -> Any:
        self = object.__new__(cls)
        return self if orig_func is None else self(orig_func)

    def __enter__(self) -> None:
        self.prev = _is_grad_enabled()
        _set_grad_enabled(False)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _set_grad_enabled(self.prev)


class enable_grad(_DecoratorContextManager):
    """Record inside, also within :class:`no_grad` or :class:`set_grad_enabled`; a context manager and a decorator."""

    __slots__ = ("prev",)

    prev: bool

    @overload
    def __new__(cls) -> Self: ...
    @overload
    def __new__(cls, orig_func: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, orig_func: Any = None) -> Any:
        self = object.__new__(cls)
        return self if orig_func is None else self(orig_func)

    def __enter__(self) -> None:
        self.prev = _is_grad_enabled()
        _set_grad_enabled(True)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _set_grad_enabled(self.prev)


class set_grad_enabled(_DecoratorContextManager):
    """Turn recording on or off: at once as a function, until the end of the block as a context manager.

    Used as a decorator it leaves the state as it was. Raises TypeError unless ``mode`` is a bool.
    """

    __slots__ = ("mode", "prev")

    def __init__(self, mode: bool) -> None:
        if mode is not True and mode is not False:
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        self.prev = _is_grad_enabled()
        self.mode = mode
        _set_grad_enabled(mode)

    def __call__(self, orig_func: F) -> F:
        _set_grad_enabled(self.prev)  # the constructor has switched already, which a decorator must not
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        _set_grad_enabled(self.mode)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _set_grad_enabled(self.prev)

    def clone(self) -> Self:
        return type(self)(self.mode)

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"


class inference_mode(_DecoratorContextManager):
    """Record nothing inside, and never: tensors made here cannot take part in a graph later.

    Such inference tensors have no version counter; they may not be saved for backward nor changed in place outside.
    ``inference_mode(False)`` inside is a normal block with recording on. A context manager and a decorator, with or
    without parentheses. Raises TypeError unless ``mode`` is a bool.
    """

    __slots__ = ("mode", "prev", "prev_grad")

    mode: bool
    prev: bool
    prev_grad: bool

    @overload
    def __new__(cls, mode: bool = True) -> Self: ...
    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, mode: Any = True) -> Any:
        self = object.__new__(cls)
        self.mode = True
        if mode is not True and mode is not False:
            if not callable(mode):
                raise TypeError(
                    f"inference_mode(): argument 'mode' (position 1) must be bool, not {type(mode).__name__}"
                )
            return self(mode)
        self.mode = mode
        return self

    def __enter__(self) -> None:
        self.prev = _is_inference_mode_enabled()
        self.prev_grad = _is_grad_enabled()
        _set_inference_mode(self.mode)
        _set_grad_enabled(not self.mode)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _set_inference_mode(self.prev)
        _set_grad_enabled(self.prev_grad)

    def clone(self) -> Self:
        return type(self)(self.mode)


class set_multithreading_enabled(_DecoratorContextManager):
    """Allow or forbid the engine to use other threads than the caller's: as a function or a context manager."""

    __slots__ = ("mode", "prev")

    def __init__(self, mode: bool) -> None:
        if mode is not True and mode is not False:
            raise TypeError(f"set_multithreading_enabled(): argument 'mode' must be bool, not {type(mode).__name__}")
        self.prev = _C._is_multithreading_enabled()
        self.mode = mode
        _C._set_multithreading_enabled(mode)

    def __enter__(self) -> None:
        """Nothing is left to do: the constructor has switched."""

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _C._set_multithreading_enabled(self.prev)

    def clone(self) -> Self:
        return type(self)(self.mode)


class enforce_grad_layout_policy(_DecoratorContextManager):
    """Let gradients have other strides than their parameters (``enable=False``), or not.

    A permission that is not made use of: gradients are laid out for their parameters in any case.
    """

    __slots__ = ("enable",)

    def __init__(self, enable: bool = True) -> None:
        self.enable = bool(enable)

    def __enter__(self) -> None:
        """Nothing changes."""

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        """Nothing is to be undone."""

    def clone(self) -> Self:
        return type(self)(self.enable)


def _decorate(context: Callable[[], Any], func: Any) -> Any:
    """``func`` with each of its calls (generators and coroutines: each of their steps) inside a new ``context()``."""
    if not callable(func):
        raise TypeError(f"expected a function to decorate, but got {type(func).__name__}")
    if inspect.isclass(func):
        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
            "functions or methods. To preserve the current behavior of class decoration, you can directly decorate "
            "the `__init__` method and nothing else.",
            FutureWarning,
            stacklevel=3,
        )
    elif inspect.isgeneratorfunction(func):
        return _decorate_generator(context, func)
    elif inspect.iscoroutinefunction(func):
        return _decorate_coroutine(context, func)

    @functools.wraps(func, updated=() if inspect.isclass(func) else ("__dict__",))
    def call(*args: Any, **kwargs: Any) -> Any:
        with context():
            return func(*args, **kwargs)

    return call


def _decorate_generator(context: Callable[[], Any], func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (yield from _step_inside(context, func(*args, **kwargs)))

    return call


def _decorate_coroutine(context: Callable[[], Any], func: Callable[..., Any]) -> Callable[..., Any]:
    """PyTorch leaves the body of a coroutine outside the context; it is meant to be inside."""
    step_inside = types.coroutine(_step_inside)

    @functools.wraps(func)
    async def call(*args: Any, **kwargs: Any) -> Any:
        return await step_inside(context, func(*args, **kwargs))

    return call


def _step_inside(context: Callable[[], Any], inner: Any) -> Generator[Any, Any, Any]:
    """Drive a generator or coroutine with every one of its steps, but nothing of its caller's, inside a context."""
    send: Callable[[Any], Any] = inner.send
    value: Any = None
    try:
        while True:
            with context():
                request = send(value)
            try:
                value = yield request
                send = inner.send
            except GeneratorExit:
                with context():
                    inner.close()
                raise
            except BaseException as error:
                send, value = inner.throw, error
    except StopIteration as stop:
        return stop.value
