"""One fused operator from a Python function of tensors: ``@rushlight.pointwise``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from .. import _C
from . import trace
from .declare import declared
from .declare import pointwise as declare
from .registry import overloads_of

__all__ = ["pointwise"]

_counts: dict[str, int] = {}


class Element(trace.Symbol):
    """What the function sees in the place of a tensor: one element of it, whichever."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Any:
        return trace.apply("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return trace.apply("ne", self, other)

    def __getattr__(self, name: str) -> Any:
        if not isinstance(getattr(_C.Tensor, name, None), _C.Operator):
            raise AttributeError(f"a pointwise function sees single elements, which have no attribute {name!r}")
        return lambda *args, **kwargs: _called(getattr(_C.Tensor, name), (self, *args), kwargs)


class _FunctionTape(trace.Tape):
    def input(self, i: int) -> Element:
        return Element(self, i)

    def call(self, name: str, args: Any) -> Element:
        return Element(self, super().call(name, [_number(a) for a in args]).slot)


def _number(value: Any) -> Any:
    """An operand: an element, or the number that a constant is."""
    if isinstance(value, _C.Tensor):
        if value.numel() != 1 or value.requires_grad:
            raise TypeError("a pointwise function takes the tensors that it computes with as arguments")
        value = value.item()
    if not isinstance(value, trace.Symbol | bool | int | float):
        raise TypeError(f"a pointwise function computes with tensors and real numbers, not {type(value).__name__}")
    return value


def _clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    if min is not None:
        x = trace.apply("maximum", x, min)
    return x if max is None else trace.apply("minimum", x, max)


def _div(x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    return trace.apply({None: "div", "floor": "floor_divide", "trunc": "trunc_divide"}[rounding_mode], x, y)


# What the package's operators of these names choose among; the others are declared under their own names.
_CHOSEN: dict[str, Callable[..., Any]] = {
    "add": lambda x, y, alpha=1: x + (y if alpha == 1 else y * alpha),
    "sub": lambda x, y, alpha=1: x - (y if alpha == 1 else y * alpha),
    "pow": lambda x, exponent: x**exponent,
    "div": _div,
    "clamp": _clamp,
    "clip": _clamp,
    "clamp_min": lambda x, min: _clamp(x, min=min),
    "clamp_max": lambda x, max: _clamp(x, max=max),
    "gelu": lambda x, approximate="none": trace.apply(f"gelu_{approximate}", x),
    "addcmul": lambda x, a, b, value=1: x + value * (a * b),
    "addcdiv": lambda x, a, b, value=1: x + value * (a / b),
}


def _called(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call made while the function is traced: on the tape if an element is among its arguments."""
    if not any(isinstance(a, Element) for a in [*args, *kwargs.values()]):
        return operator(*args, **kwargs)
    name = operator.__name__
    if name in _CHOSEN:
        return _CHOSEN[name](*args, **kwargs)
    if name not in declared:
        why = "changes its argument" if operator.inplace else "is not computed element by element"
        raise TypeError(f"a pointwise function cannot call {name}(): it {why}")
    arity = trace.definition(name).arity
    parameters = max((o.parameters[:arity] for o in overloads_of(operator)), key=len)
    operands = list(args)
    for parameter in parameters[len(args) :]:
        if parameter.name in kwargs:
            operands.append(kwargs.pop(parameter.name))
        elif parameter.default is not None:
            operands.append(float(parameter.default))
    if kwargs or len(operands) != arity:
        raise TypeError(f"a pointwise function cannot call {name}() with {', '.join(kwargs) or 'these arguments'}")
    return trace.apply(name, *operands)


def _parameters(function: Callable[..., Any]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for p in inspect.signature(function).parameters.values():
        if p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            raise TypeError(f"a pointwise function has a fixed number of positional parameters, not {p}")
        found.append((p.name,) if p.default is p.empty else (p.name, _number(p.default)))
    if not found:
        raise TypeError("a pointwise function has at least one parameter")
    return found


def pointwise(function: Callable[..., Any]) -> Any:
    """Make one operator of a function that computes each element of its result from one element of each argument.

    The function is run once, now, on symbols; what it computes becomes a program that runs in one pass over memory,
    forward and for the gradient of each input, with derivatives of every order. Its parameters are tensors that
    broadcast (numbers are accepted too); a parameter with a default takes numbers. Whole numbers are converted to the
    default floating type. It may use arithmetic, comparisons and the pointwise functions of the package and methods of
    tensors, such as ``where``; numbers and one-element tensors from outside are constants. Branching on elements and
    functions that are not pointwise raise TypeError.

        @rushlight.pointwise
        def gelu(x):
            return 0.5 * x * (1 + rushlight.tanh(0.7978845608 * (x + 0.044715 * x**3)))
    """
    parameters = _parameters(function)

    tape = _FunctionTape(len(parameters))
    _C._push_call_handler(_called)
    try:
        result = function(*[tape.input(i) for i in range(len(parameters))])
    finally:
        _C._pop_call_handler()
    if not isinstance(result, Element):
        raise TypeError(f"a pointwise function returns what it computed from its arguments, not {result!r}")
    qualified = f"{function.__module__}.{function.__qualname__}"
    count = _counts[qualified] = _counts.get(qualified, 0) + 1
    words = re.findall("[A-Za-z0-9]+", function.__name__)
    return declare(
        qualified if count == 1 else f"{qualified}#{count}",
        tape.finish(result),
        params=parameters,
        rule="float",
        node="".join(word[:1].upper() + word[1:] for word in words) + "Backward0",
        operands="".join("e" if len(p) == 1 else "n" for p in parameters),
        forms="",
        doc=inspect.getdoc(function) or "",
    )
