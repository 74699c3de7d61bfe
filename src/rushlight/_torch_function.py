"""What Tensor itself does with ``__torch_function__`` (see `overrides`): results of a subclass are of the subclass."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

from . import _C

Tensor = _C.Tensor
_state = threading.local()


def disabled(func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
    """The ``__torch_function__`` of a class whose results are plain tensors: the function itself."""
    return func(*args, **(kwargs or {}))


class DisableTorchFunctionSubclass:
    """A context in which no argument takes over a call, in this thread."""

    def __enter__(self) -> None:
        _state.depth = getattr(_state, "depth", 0) + 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _state.depth -= 1


DisableTorchFunction = DisableTorchFunctionSubclass


def is_enabled() -> bool:
    """May arguments take over calls in this thread?"""
    return not getattr(_state, "depth", 0)


def _of_class(value: Any, cls: type[Tensor]) -> Any:
    """Tensors, and tuples and lists of them, in objects of the class."""
    if isinstance(value, Tensor) and not isinstance(value, cls):
        return value.as_subclass(cls)
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return type(value)([_of_class(part, cls) for part in value])
    return value


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
    from .overrides import get_default_nowrap_functions

    return result if func in get_default_nowrap_functions() else _of_class(result, cls)


setattr(Tensor, "__torch_function__", classmethod(_torch_function))  # noqa: B010  (the core's class)
setattr(_C, "_disabled_torch_function_impl", disabled)  # noqa: B010
setattr(_C, "DisableTorchFunctionSubclass", DisableTorchFunctionSubclass)  # noqa: B010
setattr(_C, "DisableTorchFunction", DisableTorchFunction)  # noqa: B010
setattr(_C, "_is_torch_function_enabled", is_enabled)  # noqa: B010
