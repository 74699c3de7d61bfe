"""Tracing: a Python expression over symbols becomes the list of calls that the core runs and differentiates.

A traced expression is ``(constants, calls, output)``: slots number the inputs, then the constants, then one result per
call, and a call is ``(operator name, slots)``. Numbers fold, and what multiplies by 1 or adds 0 disappears, so that a
derivative costs what it must. The derivative of an expression without one of its own is derived here, by running its
calls backwards over symbols.

Complex numbers follow PyTorch's convention: the cotangent of a holomorphic f is g conj(f'(x)), the conjugate of what f's
rule makes of conj(g), so that the rule in the table serves both kinds. Operators that are not holomorphic have a rule of
their own for complex numbers. The core asks for either kind when it first needs it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from .. import _C

Number: TypeAlias = complex | float | int | bool
Traced: TypeAlias = tuple[list[Number], list[tuple[str, tuple[int, ...]]], int]

_definitions: dict[str, Definition] = {}


class Definition:
    """What the tracer knows of a declared operator: how it is derived."""

    def __init__(
        self,
        name: str,
        arity: int,
        body: Traced | None,
        derivative: tuple[Callable[..., Any] | None, ...] | None,
        vjp: tuple[Callable[..., Any] | None, ...] | None,
        complex_vjp: tuple[Callable[..., Any] | None, ...] | None = None,
    ) -> None:
        self.name = name
        self.arity = arity
        self.body = body
        self.derivative = derivative
        self.vjp = vjp
        self.complex_vjp = complex_vjp
        _definitions[name] = self

    def cotangent(self, i: int, xs: Sequence[Operand], y: Operand, g: Operand, complex: bool = False) -> Operand | None:
        """The gradient of input ``i`` given that of the result; None where there is none."""
        if complex and self.complex_vjp is not None:
            rule = self.complex_vjp[i]
            return None if rule is None else rule(g, *xs, y)
        if self.vjp is not None:
            rule = self.vjp[i]
            if rule is None:
                return None
            return _conjugate(rule(_conjugate(g), *xs, y)) if complex else rule(g, *xs, y)
        if self.derivative is not None:
            rule = self.derivative[i]
            if rule is None:
                return None
            return g * (_conjugate(rule(*xs, y)) if complex else rule(*xs, y))
        if self.body is None:
            return None
        return _through_body(self, i, xs, g, complex)


def definition(name: str) -> Definition:
    """How the operator of that name is defined and derived."""
    return _definitions[name]


def is_differentiable(name: str) -> bool:
    """Is there a derivative with respect to some input of the operator?"""
    d = _definitions[name]
    if d.derivative is not None or d.vjp is not None:
        return True
    return d.body is not None and any(is_differentiable(called) for called, _ in d.body[1])


class Symbol:
    """A place in the expression being traced."""

    __slots__ = ("slot", "tape")

    def __init__(self, tape: Tape, slot: int) -> None:
        self.tape = tape
        self.slot = slot

    def __add__(self, other: Operand) -> Operand:
        return self if _is(other, 0) else apply("add", self, other)

    def __radd__(self, other: Operand) -> Operand:
        return self if _is(other, 0) else apply("add", other, self)

    def __sub__(self, other: Operand) -> Operand:
        return self if _is(other, 0) else apply("sub", self, other)

    def __rsub__(self, other: Operand) -> Operand:
        return -self if _is(other, 0) else apply("rsub", self, other)

    def __mul__(self, other: Operand) -> Operand:
        if _is(other, 1):
            return self
        if _is(other, -1):
            return -self
        return apply("mul", self, other)

    def __rmul__(self, other: Operand) -> Operand:
        return self if _is(other, 1) else -self if _is(other, -1) else apply("mul", other, self)

    def __truediv__(self, other: Operand) -> Operand:
        return self if _is(other, 1) else apply("div", self, other)

    def __rtruediv__(self, other: Operand) -> Operand:
        return apply("div", other, self)

    def __pow__(self, other: Operand) -> Operand:
        if _is(other, 2):
            return apply("pow_2", self)
        return apply("pow_number", self, other) if isinstance(other, int | float) else apply("pow", self, other)

    def __rpow__(self, other: Operand) -> Operand:
        return apply("pow_of_number", other, self)

    def __neg__(self) -> Operand:
        return apply("neg", self)

    def __abs__(self) -> Operand:
        return apply("abs", self)

    def __lt__(self, other: Operand) -> Operand:
        return apply("lt", self, other)

    def __le__(self, other: Operand) -> Operand:
        return apply("le", self, other)

    def __gt__(self, other: Operand) -> Operand:
        return apply("gt", self, other)

    def __ge__(self, other: Operand) -> Operand:
        return apply("ge", self, other)

    def __and__(self, other: Operand) -> Operand:
        return apply("logical_and", self, other)

    def __or__(self, other: Operand) -> Operand:
        return apply("logical_or", self, other)

    def __invert__(self) -> Operand:
        return apply("logical_not", self)

    def eq(self, other: Operand) -> Operand:
        """Equality, element by element (``==`` compares symbols as Python objects)."""
        return apply("eq", self, other)

    def ne(self, other: Operand) -> Operand:
        """Inequality, element by element."""
        return apply("ne", self, other)

    def __bool__(self) -> bool:
        raise TypeError("a pointwise expression cannot branch on its numbers; use where(condition, a, b)")


Operand: TypeAlias = Any  # Symbol | Number


def _is(value: Operand, number: float) -> bool:
    return isinstance(value, int | float) and value == number


def _signs(value: Number) -> tuple[float, float]:
    """The signs of both parts, which zeros have too."""
    return math.copysign(1, value.real), math.copysign(1, value.imag)


class Tape:
    """The calls of one expression, each distinct call once."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.constants: list[Number] = []
        self.calls: list[tuple[str, tuple[tuple[str, int], ...]]] = []
        self.known: dict[tuple[str, tuple[tuple[str, int], ...]], int] = {}

    def input(self, i: int) -> Symbol:
        return Symbol(self, i)

    def place(self, value: Operand) -> tuple[str, int]:
        """Where a symbol or number stands: ("in" | "const" | "call", index)."""
        if isinstance(value, Symbol):
            if value.tape is not self:
                raise ValueError("a symbol of another expression was used")
            return ("in", value.slot) if value.slot < self.inputs else ("call", value.slot - self.inputs)
        for i, c in enumerate(self.constants):
            if type(c) is type(value) and c == value and _signs(c) == _signs(value):
                return ("const", i)
        self.constants.append(value)
        return ("const", len(self.constants) - 1)

    def call(self, name: str, args: Sequence[Operand]) -> Symbol:
        key = (name, tuple([self.place(a) for a in args]))
        if key not in self.known:
            self.known[key] = len(self.calls)
            self.calls.append(key)
        return Symbol(self, self.inputs + self.known[key])

    def finish(self, output: Operand) -> Traced:
        """The expression with only the calls that its output needs."""
        out = self.place(output)
        needed: set[int] = set()
        pending = [out[1]] if out[0] == "call" else []
        while pending:
            i = pending.pop()
            if i not in needed:
                needed.add(i)
                pending += [j for kind, j in self.calls[i][1] if kind == "call"]
        kept = sorted(needed)
        used = sorted(
            {j for i in kept for kind, j in self.calls[i][1] if kind == "const"}
            | ({out[1]} if out[0] == "const" else set())
        )
        base = {"in": 0, "const": self.inputs, "call": self.inputs + len(used)}
        index = {"in": None, "const": {j: n for n, j in enumerate(used)}, "call": {j: n for n, j in enumerate(kept)}}

        def slot(place: tuple[str, int]) -> int:
            kind, j = place
            table = index[kind]
            return base[kind] + (j if table is None else table[j])

        calls = [(self.calls[i][0], tuple([slot(p) for p in self.calls[i][1]])) for i in kept]
        return [self.constants[j] for j in used], calls, slot(out)


_FOLD: dict[str, Callable[..., Number]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "rsub": lambda a, b: b - a,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
}


def apply(name: str, *args: Operand) -> Operand:
    """A call of the operator ``name`` in the expression that its symbols belong to."""
    if name == "where" and not isinstance(args[0], Symbol):
        return args[1] if args[0] else args[2]
    for a in args:
        if isinstance(a, Symbol):
            return a.tape.call(name, args)
    return _FOLD[name](*args) if name in _FOLD else _evaluated(name, args)


def _evaluated(name: str, args: Sequence[Number]) -> Number:
    """What the operator gives for numbers alone."""
    from .declare import declared  # which declares with this module

    result: Number = declared[name].function(*[_C.full((), a) for a in args]).item()
    return result


def _conjugate(value: Operand) -> Operand:
    """The conjugate; of what is conjugated already, what it was."""
    if not isinstance(value, Symbol):
        return value
    tape = value.tape
    if value.slot >= tape.inputs:
        name, args = tape.calls[value.slot - tape.inputs]
        if name == "conj_physical":
            kind, j = args[0]
            return tape.constants[j] if kind == "const" else Symbol(tape, j if kind == "in" else tape.inputs + j)
    return tape.call("conj_physical", (value,))


def trace(f: Callable[..., Any], arity: int) -> Traced:
    """The expression that ``f`` computes from its ``arity`` arguments."""
    tape = Tape(arity)
    return tape.finish(f(*[tape.input(i) for i in range(arity)]))


def derive(name: str, i: int, complex: bool = False) -> Traced | None:
    """The gradient of input ``i`` of an operator, over inputs, result and gradient; None where there is none.

    ``complex``: by the convention for complex numbers."""
    definition = _definitions[name]
    n = definition.arity
    tape = Tape(n + 2)
    g = definition.cotangent(i, [tape.input(k) for k in range(n)], tape.input(n), tape.input(n + 1), complex)
    return None if g is None else tape.finish(g)


def _through_body(definition: Definition, i: int, xs: Sequence[Operand], g: Operand, complex: bool) -> Operand | None:
    """The chain rule over the calls of a composite, latest first."""
    assert definition.body is not None
    constants, calls, output = definition.body
    slots: list[Operand] = [*xs, *constants]
    for name, args in calls:
        slots.append(apply(name, *[slots[a] for a in args]))
    first = len(xs) + len(constants)
    depends = [s == i for s in range(first)]
    for _name, args in calls:
        depends.append(any(depends[a] for a in args))
    gradients: dict[int, Operand] = {output: g}
    for k in reversed(range(len(calls))):
        here = gradients.pop(first + k, None)
        if here is None:
            continue
        name, args = calls[k]
        inner = _definitions[name]
        for position, a in enumerate(args):
            if not depends[a]:
                continue
            part = inner.cotangent(position, [slots[s] for s in args], slots[first + k], here, complex)
            if part is not None:
                gradients[a] = gradients[a] + part if a in gradients else part
    return gradients.get(i)
