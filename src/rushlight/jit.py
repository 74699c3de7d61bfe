"""`torch.jit` as PyTorch has it with `PYTORCH_JIT=0`: what is to be scripted or traced runs as it is written.

Decorators return what they decorate.  Files of scripted programs cannot be written or read, and say so.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Generic, NamedTuple, NoReturn, TypeVar

from rushlight import nn
from rushlight._missing import lazy_module

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "ScriptWarning",
    "TracerWarning",
    "TracingCheckError",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

Value = TypeVar("Value")


class Error(Exception):
    """Raised by scripted programs in PyTorch; kept so that it can be caught."""


class TracingCheckError(Exception):
    """Raised by tracing in PyTorch; kept so that it can be caught."""


class TracerWarning(Warning):
    """Given by tracing in PyTorch; kept so that it can be filtered."""


class ScriptWarning(Warning):
    """Given by scripting in PyTorch; kept so that it can be filtered."""


class ScriptModule(nn.Module):
    """A module written for scripting: an ordinary module."""


class RecursiveScriptModule(ScriptModule):
    """The type of scripted modules in PyTorch, of which there are none here."""


class ScriptFunction:
    """The type of scripted functions in PyTorch, of which there are none here."""

    def __new__(cls) -> "ScriptFunction":
        raise RuntimeError("rushlight scripts nothing: torch.jit.script returns the function itself")


class Attribute(NamedTuple):
    """A value with the type that scripting is to give it."""

    value: Any
    type: Any


class Future(Generic[Value]):
    """The result of `fork`, there already."""

    def __init__(self, value: Value) -> None:
        self._value = value

    def wait(self) -> Value:
        """The result."""
        return self._value

    def value(self) -> Value:
        """The result."""
        return self._value

    def done(self) -> bool:
        """Whether the result is there: yes."""
        return True


def script(obj: Value, *args: Any, **kwargs: Any) -> Value:
    """Returns the function, class or module itself."""
    return obj


def trace(func: Value, example_inputs: object = None, *args: Any, **kwargs: Any) -> Value:
    """Returns the function or module itself, without running it."""
    return func


def trace_module(mod: Value, inputs: object, *args: Any, **kwargs: Any) -> Value:
    """Returns the module itself, without running it."""
    return mod


def script_if_tracing(fn: Value) -> Value:
    """Returns the function itself."""
    return fn


def script_method(fn: Value) -> Value:
    """Returns the method itself."""
    return fn


def export(fn: Value) -> Value:
    """Returns the method itself."""
    return fn


def unused(fn: Value) -> Value:
    """Returns the function itself."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Returns the function itself, as `@ignore` or as `@ignore(drop=True)`."""
    return drop if callable(drop) else _itself


def interface(obj: Value) -> Value:
    """Returns the class itself."""
    return obj


def freeze(mod: Value, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Value:
    """Returns the module itself."""
    return mod


def optimize_for_inference(mod: Value, other_methods: list[str] | None = None) -> Value:
    """Returns the module itself."""
    return mod


def annotate(the_type: object, the_value: Value) -> Value:
    """Returns the value itself."""
    return the_value


def is_scripting() -> bool:
    """Whether the caller runs as a scripted program: never."""
    return False


def is_tracing() -> bool:
    """Whether the caller is being traced: never."""
    return False


def fork(func: Callable[..., Value], *args: Any, **kwargs: Any) -> Future[Value]:
    """Calls the function now and returns its result as a future, as PyTorch does outside of scripted programs."""
    return Future(func(*args, **kwargs))


def wait(future: Future[Value]) -> Value:
    """The result of `fork`."""
    return future.wait()


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A context in which scripted programs are optimised or not: there are none."""
    yield


def enable_onednn_fusion(enabled: bool) -> None:
    """Accepts whether scripted programs are to be fused: there are none."""


def onednn_fusion_enabled() -> bool:
    """Whether scripted programs are fused: there are none."""
    return False


def save(m: object, f: object, _extra_files: object = None) -> NoReturn:
    """Raises NotImplementedError: there is no scripted program to write."""
    raise NotImplementedError("rushlight has no 'torch.jit.save'; save the parameters by torch.save(m.state_dict(), f)")


def load(f: object, map_location: object = None, _extra_files: object = None) -> NoReturn:
    """Raises NotImplementedError: scripted programs are not read."""
    raise NotImplementedError("rushlight has no 'torch.jit.load'; it reads state dicts by torch.load, not programs")


def _itself(fn: Value) -> Value:
    return fn


__getattr__, __dir__ = lazy_module(__name__)
