"""Pointwise choices: the greater or smaller of two, bounds, what is not finite, and near equality (see `pointwise`)."""

from __future__ import annotations

import math

from .declare import INPUT, PAIR, pointwise
from .expression import Symbol, absolute, isnan, maximum, minimum, where
from .trace import apply

NO_COMPLEX_CLAMP = "clamp is not supported for complex types"

# ---- choices

pointwise(
    "maximum",
    loop="maximum",
    refuses={"c": "maximum not implemented for complex tensors."},
    params=PAIR,
    operands="tt",
    vjp=(
        lambda g, a, b, y: where(apply("eq", a, b), g * 0.5, where(a < b, 0.0, g)),
        lambda g, a, b, y: where(apply("eq", a, b), g * 0.5, where(a > b, 0.0, g)),
    ),
    forms="function method",
)
pointwise(
    "minimum",
    loop="minimum",
    refuses={"c": "minimum not implemented for complex tensors."},
    params=PAIR,
    operands="tt",
    vjp=(
        lambda g, a, b, y: where(apply("eq", a, b), g * 0.5, where(a > b, 0.0, g)),
        lambda g, a, b, y: where(apply("eq", a, b), g * 0.5, where(a < b, 0.0, g)),
    ),
    forms="function method",
)
pointwise(
    "fmax",
    loop="fmax",
    refuses={"c": "fmax not implemented for complex tensors."},
    params=PAIR,
    operands="tt",
    vjp=(
        lambda g, a, b, y: where((a >= b) | isnan(b), g, 0.0),
        lambda g, a, b, y: where((a >= b) | isnan(b), 0.0, g),
    ),
    forms="function method",
)
pointwise(
    "fmin",
    loop="fmin",
    refuses={"c": "fmin not implemented for complex tensors."},
    params=PAIR,
    operands="tt",
    vjp=(
        lambda g, a, b, y: where((a <= b) | isnan(b), g, 0.0),
        lambda g, a, b, y: where((a <= b) | isnan(b), 0.0, g),
    ),
    forms="function method",
)


def _within(g: Symbol, x: Symbol, low: Symbol, high: Symbol, y: Symbol) -> Symbol:
    return where((x >= low) & (x <= high), g, 0.0)


def _above(g: Symbol, x: Symbol, low: Symbol, y: Symbol) -> Symbol:
    return where(x >= low, g, 0.0)


def _below(g: Symbol, x: Symbol, high: Symbol, y: Symbol) -> Symbol:
    return where(x <= high, g, 0.0)


def _to_low(g: Symbol, x: Symbol, low: Symbol, y: Symbol) -> Symbol:
    return where(x < low, g, 0.0)


def _to_high(g: Symbol, x: Symbol, high: Symbol, y: Symbol) -> Symbol:
    return where(x > high, g, 0.0)


_LOW, _HIGH = (*INPUT, ("min",)), (*INPUT, ("max",))
_BOUNDS = (*INPUT, ("min",), ("max",))
pointwise(
    "clamp_between",
    lambda x, low, high: minimum(maximum(x, low), high),
    refuses={"b": "", "c": NO_COMPLEX_CLAMP},
    params=_BOUNDS,
    vjp=(
        _within,
        lambda g, x, low, high, y: where((x < low) & (low < high), g, 0.0),
        lambda g, x, low, high, y: where((x > high) | (low > high), g, 0.0),
    ),
    node="ClampBackward0",
    forms="",
)
pointwise(
    "clamp_between_numbers",
    lambda x, low, high: minimum(maximum(x, low), high),
    refuses={"b": "", "c": NO_COMPLEX_CLAMP},
    params=_BOUNDS,
    vjp=(_within, None, None),
    node="ClampBackward1",
    forms="",
)
pointwise(
    "clamp_above",
    lambda x, low: maximum(x, low),
    params=_LOW,
    refuses={"c": NO_COMPLEX_CLAMP},
    vjp=(_above, None),
    node="ClampBackward1",
    forms="",
)
pointwise(
    "clamp_below",
    lambda x, high: minimum(x, high),
    params=_HIGH,
    refuses={"c": NO_COMPLEX_CLAMP},
    vjp=(_below, None),
    node="ClampBackward1",
    forms="",
)
pointwise(
    "clamp_above_tensor",
    lambda x, low: maximum(x, low),
    params=_LOW,
    refuses={"c": NO_COMPLEX_CLAMP},
    vjp=(_above, _to_low),
    node="ClampBackward0",
    forms="",
)
pointwise(
    "clamp_below_tensor",
    lambda x, high: minimum(x, high),
    params=_HIGH,
    refuses={"c": NO_COMPLEX_CLAMP},
    vjp=(_below, _to_high),
    node="ClampBackward0",
    forms="",
)
pointwise(
    "clamp_min",
    lambda x, low: maximum(x, low),
    params=_LOW,
    refuses={"c": NO_COMPLEX_CLAMP},
    vjp=(_above, _to_low),
    node="ClampMinBackward1",
    forms="",
)
pointwise(
    "clamp_max",
    lambda x, high: minimum(x, high),
    params=_HIGH,
    refuses={"c": NO_COMPLEX_CLAMP},
    vjp=(_below, _to_high),
    node="ClampMaxBackward1",
    forms="",
)
pointwise(
    "clamp_min_number",
    lambda x, low: maximum(x, low),
    params=_LOW,
    refuses={"c": NO_COMPLEX_CLAMP},
    vjp=(_above, None),
    node="ClampMinBackward0",
    forms="",
)
pointwise(
    "clamp_max_number",
    lambda x, high: minimum(x, high),
    params=_HIGH,
    refuses={"c": NO_COMPLEX_CLAMP},
    vjp=(_below, None),
    node="ClampMaxBackward0",
    forms="",
)
pointwise(
    "nan_to_num_values",
    refuses="c",
    body=lambda x, nan, positive, negative: where(
        isnan(x), nan, where(apply("eq", x, math.inf), positive, where(apply("eq", x, -math.inf), negative, x))
    ),
    params=(*INPUT, ("nan",), ("posinf",), ("neginf",)),
    vjp=(lambda g, x, nan, positive, negative, y: where(apply("isfinite", x), g, 0.0), None, None, None),
    node="NanToNumBackward0",
    forms="",
)
pointwise("nan_to_num_integer", loop="positive", forms="")

# ---- near equality

pointwise(
    "near",
    lambda a, b, rtol, atol: (
        apply("eq", a, b) | (apply("isfinite", a - b) & (absolute(a - b) <= absolute(atol) + absolute(rtol * b)))
    ),
    params=(*PAIR, ("rtol",), ("atol",)),
    forms="",
)
pointwise(
    "near_or_nan",
    lambda a, b, rtol, atol: apply("near", a, b, rtol, atol) | (isnan(a) & isnan(b)),
    params=(*PAIR, ("rtol",), ("atol",)),
    forms="",
)
pointwise(
    "isposinf",
    refuses={"c": "isposinf does not support complex inputs."},
    body=lambda x: apply("eq", x, math.inf),
    forms="function method",
)
pointwise(
    "isneginf",
    refuses={"c": "isneginf does not support complex inputs."},
    body=lambda x: apply("eq", x, -math.inf),
    forms="function method",
)
pointwise("isreal", loop="is_real", forms="function method")
