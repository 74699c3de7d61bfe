"""`torch.compile` and `torch.compiler`: programs that ask for compilation run as they are written.

rushlight compiles nothing.  What `torch.compile` promises is that the results are those of the function itself, so
the function itself is returned, as PyTorch does when its compiler is switched off.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from rushlight._missing import lazy_module

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
]

Function = TypeVar("Function", bound=Callable[..., Any])


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Returns `model` itself; without one, a decorator that returns what it decorates.

    AssertionError if `model` is no callable, RuntimeError if both `mode` and `options` are given.
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if model is None:
        return _callable
    return _callable(model)


def _callable(function: Function) -> Function:
    if not callable(function):
        raise AssertionError(f"A callable function is expected, but {type(function)} is provided.")
    return function


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Returns `fn` itself, which is not compiled anyway; without one, a decorator."""
    return _callable if fn is None else _callable(fn)


def allow_in_graph(fn: Function) -> Function:
    """Returns `fn` itself."""
    return fn


def assume_constant_result(fn: Function) -> Function:
    """Returns `fn` itself."""
    return fn


def is_compiling() -> bool:
    """Whether the caller is being compiled: never."""
    return False


def is_dynamo_compiling() -> bool:
    """Whether the caller is being traced by a compiler: never."""
    return False


def is_exporting() -> bool:
    """Whether the caller is being exported: never."""
    return False


def list_backends(exclude_tags: object = ("debug", "experimental")) -> list[str]:
    """The names of the compilers that can be chosen: none."""
    return []


def reset() -> None:
    """Forgets all compiled code: there is none."""


def cudagraph_mark_step_begin() -> None:
    """Marks the beginning of a step for CUDA graphs, of which there are none."""


def set_stance(stance: str = "default", **options: Any) -> AbstractContextManager[None]:
    """Accepts how eagerly to compile; nothing is compiled under any stance.  Usable as a context too."""
    return nullcontext()


__getattr__, __dir__ = lazy_module(__name__)
