"""Operators as the declarations' expressions call them: on symbols, while an expression is traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from .trace import apply

Symbol: TypeAlias = Any  # an operand or a result of the traced expression, or a number


def _call(name: str) -> Callable[..., Symbol]:
    return lambda *args: apply(name, *args)


absolute = _call("abs")
conj = _call("conj_physical")
cos = _call("cos")
cosh = _call("cosh")
erf = _call("erf")
exp = _call("exp")
expm1 = _call("expm1")
floor = _call("floor")
isnan = _call("isnan")
log = _call("log")
log1p = _call("log1p")
logical_and = _call("logical_and")
maximum = _call("maximum")
minimum = _call("minimum")
pow_number = _call("pow_number")
real_part = _call("real_part")
round_even = _call("round")
rsqrt = _call("rsqrt")
sgn = _call("sgn")
sigmoid = _call("sigmoid")
sigmoid_slope = _call("sigmoid_slope")
sign = _call("sign")
sin = _call("sin")
sinh = _call("sinh")
sqrt = _call("sqrt")
square = _call("square")
tanh = _call("tanh")
tanh_slope = _call("tanh_slope")
trunc = _call("trunc")
where = _call("where")
