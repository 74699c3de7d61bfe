"""The table of pointwise operators: one line each, forward and derivative side by side.

In a derivative, ``x`` (and ``a, b, ...``) are the operands, ``y`` the result and ``g`` the gradient. Subgradients at
kinks, and what happens at infinities and NaN, are PyTorch's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .declare import INPUT, PAIR, pointwise
from .trace import apply

LN2, LN10, SQRT_HALF, TWO_OVER_SQRT_PI = math.log(2), math.log(10), math.sqrt(0.5), 2 / math.sqrt(math.pi)

Any_ = Any


def where(condition: Any_, a: Any_, b: Any_) -> Any_:
    return apply("where", condition, a, b)


def _call(name: str) -> Any_:
    return lambda *args: apply(name, *args)


exp, log, sin, cos, tanh, sqrt, log1p, expm1 = map(
    _call, ("exp", "log", "sin", "cos", "tanh", "sqrt", "log1p", "expm1")
)
sinh, cosh, sign, rsqrt, sigmoid, erf, relu = map(_call, ("sinh", "cosh", "sign", "rsqrt", "sigmoid", "erf", "relu"))
maximum, minimum, square, isnan, absolute, floor = map(_call, ("maximum", "minimum", "square", "isnan", "abs", "floor"))
trunc, pow_number, logical_and = map(_call, ("trunc", "pow_number", "logical_and"))

# ---- comparison and logic: nothing to differentiate

for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    pointwise(_name, loop=_name, params=PAIR)
for _name in ("logical_and", "logical_or", "logical_xor"):
    pointwise(_name, loop=_name, params=PAIR, operands="tt")
for _name in ("isnan", "isinf", "isfinite", "signbit"):
    pointwise(_name, loop=_name, forms="function method")
pointwise("logical_not", loop="logical_not")
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    pointwise(_name, loop=_name, params=PAIR, rule="integral", operands="ee")
for _name in ("bitwise_left_shift", "bitwise_right_shift"):
    pointwise(_name, loop=_name, params=PAIR, rule="whole", operands="ee")
pointwise("bitwise_not", loop="bitwise_not", rule="integral")
pointwise("gcd", loop="gcd", params=PAIR, rule="whole", operands="tt")
pointwise("lcm", loop="lcm", params=PAIR, rule="whole", operands="tt")

# ---- arithmetic

NO_BOOL_MINUS = (
    "Subtraction, the `-` operator, with two bool tensors is not supported. "
    "Use the `^` or `logical_xor()` operator instead."
)
NO_BOOL_NEGATIVE = (
    "Negation, the `-` operator, on a bool tensor is not supported. "
    "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
)

where_op = pointwise(
    "where",
    loop="where",
    params=(("condition",), ("input",), ("other",)),
    promoted=0b110,
    vjp=(None, lambda g, c, a, b, y: where(c, g, 0.0), lambda g, c, a, b, y: where(c, 0.0, g)),
    forms="",
)
pointwise(
    "masked_fill",
    lambda x, mask, value: where(mask, value, x),
    params=(*INPUT, ("mask",), ("value",)),
    promoted=0b101,
    vjp=(lambda g, x, mask, value, y: where(mask, 0.0, g), None, lambda g, x, mask, value, y: where(mask, g, 0.0)),
    forms="",
)
pointwise("add", loop="add", params=PAIR, operands="ee", vjp=(lambda g, a, b, y: g, lambda g, a, b, y: g))
pointwise(
    "sub",
    loop="sub",
    params=PAIR,
    refuses={"b": NO_BOOL_MINUS},
    operands="ee",
    vjp=(lambda g, a, b, y: g, lambda g, a, b, y: -g),
)
pointwise("neg", loop="neg", refuses={"b": NO_BOOL_NEGATIVE}, vjp=lambda g, x, y: -g)
pointwise("mul", loop="mul", params=PAIR, operands="ee", derivative=(lambda a, b, y: b, lambda a, b, y: a))
pointwise(
    "rsub",
    lambda a, b: apply("sub", b, a),
    params=PAIR,
    refuses={"b": NO_BOOL_MINUS},
    vjp=(lambda g, a, b, y: -g, lambda g, a, b, y: g),
    node="RsubBackward1",
    forms="function method",
)
pointwise(
    "div",
    loop="true_divide",
    params=PAIR,
    rule="float",
    operands="ee",
    vjp=(lambda g, a, b, y: g / b, lambda g, a, b, y: -g * ((a / b) / b)),
)
pointwise("reciprocal", loop="reciprocal", rule="float", vjp=lambda g, x, y: -g * (y * y))
pointwise("square", loop="square", node="PowBackward0", derivative=lambda x, y: 2 * x)
pointwise("abs", loop="abs", rule="not_bool", vjp=lambda g, x, y: g * sign(x))
pointwise("sign", loop="sign", vjp=lambda g, x, y: g * 0.0)
pointwise("sgn", loop="sign", vjp=lambda g, x, y: g * 0.0)
pointwise(
    "positive",
    loop="positive",
    refuses={"b": "The `+` operator, on a bool tensor is not supported."},
    vjp=lambda g, x, y: g,
    forms="function method",
)
for _name in ("floor", "ceil", "trunc"):
    pointwise(_name, loop=_name, rule="not_bool", vjp=lambda g, x, y: g * 0.0)
pointwise("round", loop="round", rule="not_bool", vjp=lambda g, x, y: g * 0.0, forms="")
pointwise("round_whole", loop="round", vjp=lambda g, x, y: g * 0.0, node="RoundBackward1", forms="")
_round = _call("round")
pointwise(
    "round_finer",
    lambda x, power: _round(x * power) / power,
    params=(*INPUT, ("power",)),
    vjp=(lambda g, x, p, y: g * 0.0, None),
    node="RoundBackward1",
    forms="",
)
pointwise(
    "round_coarser",
    lambda x, power: _round(x / power) * power,
    params=(*INPUT, ("power",)),
    vjp=(lambda g, x, p, y: g * 0.0, None),
    node="RoundBackward1",
    forms="",
)
pointwise("frac", lambda x: x - trunc(x), rule="floating", vjp=lambda g, x, y: g)
pointwise("sqrt", loop="sqrt", rule="float", vjp=lambda g, x, y: g / (2 * y))
pointwise("rsqrt", loop="rsqrt", rule="float", vjp=lambda g, x, y: -0.5 * g * (y * y * y))

# ---- scaled and rounding forms

pointwise(
    "add_scaled",
    lambda a, b, alpha: a + b * alpha,
    params=(*PAIR, ("alpha",)),
    vjp=(lambda g, a, b, alpha, y: g, lambda g, a, b, alpha, y: g * alpha, None),
    node="AddBackward0",
    forms="",
)
pointwise(
    "sub_scaled",
    lambda a, b, alpha: a - b * alpha,
    params=(*PAIR, ("alpha",)),
    rule="not_bool",
    vjp=(lambda g, a, b, alpha, y: g, lambda g, a, b, alpha, y: -g * alpha, None),
    node="SubBackward0",
    forms="",
)
pointwise(
    "rsub_scaled",
    lambda a, b, alpha: b - a * alpha,
    params=(*PAIR, ("alpha",)),
    rule="not_bool",
    vjp=(lambda g, a, b, alpha, y: -g * alpha, lambda g, a, b, alpha, y: g, None),
    node="RsubBackward1",
    forms="",
)
pointwise(
    "floor_divide",
    loop="floor_divide",
    params=PAIR,
    operands="ee",
    rule="not_bool",
    vjp=(lambda g, a, b, y: g * 0.0, lambda g, a, b, y: g * 0.0),
)
pointwise(
    "trunc_divide",
    loop="trunc_divide",
    params=PAIR,
    rule="not_bool",
    vjp=(lambda g, a, b, y: g * 0.0, lambda g, a, b, y: g * 0.0),
    node="DivBackward1",
    forms="",
)
pointwise(
    "remainder",
    loop="remainder",
    params=PAIR,
    operands="ee",
    rule="not_bool",
    vjp=(lambda g, a, b, y: g, lambda g, a, b, y: -g * floor(a / b)),
)
pointwise(
    "fmod", loop="fmod", params=PAIR, rule="not_bool", vjp=(lambda g, a, b, y: g, lambda g, a, b, y: -g * trunc(a / b))
)

# ---- powers: the exponent chooses (core/operators/arithmetic.cpp)

pointwise("pow_2", lambda x: square(x), derivative=lambda x, y: 2 * x, node="PowBackward0", forms="")
pointwise("pow_3", lambda x: x * x * x, derivative=lambda x, y: 3 * (x * x), node="PowBackward0", forms="")
pointwise("pow_half", lambda x: sqrt(x), vjp=lambda g, x, y: g * (0.5 / y), node="PowBackward0", forms="")
pointwise("pow_minus_1", lambda x: 1.0 / x, vjp=lambda g, x, y: -g * (y * y), node="PowBackward0", forms="")
pointwise("power", loop=np.power, params=(("input",), ("exponent",)), forms="")
pointwise(
    "pow_number",
    lambda x, e: apply("power", x, e),
    params=(("input",), ("exponent",)),
    vjp=(lambda g, x, e, y: where(apply("eq", e, 0.0), 0.0, g * (e * pow_number(x, e - 1.0))), None),
    node="PowBackward0",
    forms="",
)
pointwise(
    "pow_of_number",
    lambda x, e: apply("power", x, e),
    params=(("input",), ("exponent",)),
    vjp=(None, lambda g, x, e, y: g * where(logical_and(apply("eq", x, 0.0), e >= 0.0), 0.0, y * log(x))),
    node="PowBackward1",
    forms="",
)
pointwise(
    "pow",
    lambda x, e: apply("power", x, e),
    params=(("input",), ("exponent",)),
    rule="not_bool",
    operands="ee",
    vjp=(
        lambda g, x, e, y: where(apply("eq", e, 0.0), 0.0, g * (e * apply("pow", x, e - 1.0))),
        lambda g, x, e, y: g * where(logical_and(apply("eq", x, 0.0), e >= 0.0), 0.0, y * log(x)),
    ),
    node="PowBackward1",
)

# ---- choices

pointwise(
    "maximum",
    loop="maximum",
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
    params=PAIR,
    operands="tt",
    vjp=(
        lambda g, a, b, y: where((a <= b) | isnan(b), g, 0.0),
        lambda g, a, b, y: where((a <= b) | isnan(b), 0.0, g),
    ),
    forms="function method",
)


def _within(g: Any_, x: Any_, low: Any_, high: Any_, y: Any_) -> Any_:
    return where((x >= low) & (x <= high), g, 0.0)


def _above(g: Any_, x: Any_, low: Any_, y: Any_) -> Any_:
    return where(x >= low, g, 0.0)


def _below(g: Any_, x: Any_, high: Any_, y: Any_) -> Any_:
    return where(x <= high, g, 0.0)


def _to_low(g: Any_, x: Any_, low: Any_, y: Any_) -> Any_:
    return where(x < low, g, 0.0)


def _to_high(g: Any_, x: Any_, high: Any_, y: Any_) -> Any_:
    return where(x > high, g, 0.0)


_LOW, _HIGH = (*INPUT, ("min",)), (*INPUT, ("max",))
_BOUNDS = (*INPUT, ("min",), ("max",))
pointwise(
    "clamp_between",
    lambda x, low, high: minimum(maximum(x, low), high),
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
    params=_BOUNDS,
    vjp=(_within, None, None),
    node="ClampBackward1",
    forms="",
)
pointwise(
    "clamp_above", lambda x, low: maximum(x, low), params=_LOW, vjp=(_above, None), node="ClampBackward1", forms=""
)
pointwise(
    "clamp_below", lambda x, high: minimum(x, high), params=_HIGH, vjp=(_below, None), node="ClampBackward1", forms=""
)
pointwise(
    "clamp_above_tensor",
    lambda x, low: maximum(x, low),
    params=_LOW,
    vjp=(_above, _to_low),
    node="ClampBackward0",
    forms="",
)
pointwise(
    "clamp_below_tensor",
    lambda x, high: minimum(x, high),
    params=_HIGH,
    vjp=(_below, _to_high),
    node="ClampBackward0",
    forms="",
)
pointwise(
    "clamp_min", lambda x, low: maximum(x, low), params=_LOW, vjp=(_above, _to_low), node="ClampMinBackward1", forms=""
)
pointwise(
    "clamp_max",
    lambda x, high: minimum(x, high),
    params=_HIGH,
    vjp=(_below, _to_high),
    node="ClampMaxBackward1",
    forms="",
)
pointwise(
    "clamp_min_number",
    lambda x, low: maximum(x, low),
    params=_LOW,
    vjp=(_above, None),
    node="ClampMinBackward0",
    forms="",
)
pointwise(
    "clamp_max_number",
    lambda x, high: minimum(x, high),
    params=_HIGH,
    vjp=(_below, None),
    node="ClampMaxBackward0",
    forms="",
)
pointwise(
    "nan_to_num_values",
    lambda x, nan, positive, negative: where(
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
        apply("eq", a, b) | (apply("isfinite", a - b) & (absolute(a - b) <= atol + absolute(rtol * b)))
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
pointwise("isposinf", lambda x: apply("eq", x, math.inf), forms="function method")
pointwise("isneginf", lambda x: apply("eq", x, -math.inf), forms="function method")
pointwise("isreal", lambda x: apply("eq", x, x) | isnan(x), forms="function method")

# ---- exponentials and logarithms

pointwise("exp", loop=np.exp, rule="float", derivative=lambda x, y: y)
pointwise("exp2", loop=np.exp2, rule="float", derivative=lambda x, y: y * LN2)
pointwise("expm1", loop=np.expm1, rule="float", derivative=lambda x, y: y + 1)
pointwise("log", loop=np.log, rule="float", vjp=lambda g, x, y: g / x)
pointwise("log2", loop=np.log2, rule="float", vjp=lambda g, x, y: g / (x * LN2))
pointwise("log10", loop=np.log10, rule="float", vjp=lambda g, x, y: g / (x * LN10))
pointwise("log1p", loop=np.log1p, rule="float", vjp=lambda g, x, y: g / (x + 1))
pointwise(
    "logaddexp",
    loop=np.logaddexp,
    params=PAIR,
    operands="tt",
    rule="floating",
    vjp=(lambda g, a, b, y: g / (1 + exp(b - a)), lambda g, a, b, y: g / (1 + exp(a - b))),
    forms="function method",
)
pointwise(
    "logaddexp2",
    loop=np.logaddexp2,
    params=PAIR,
    operands="tt",
    rule="floating",
    vjp=(lambda g, a, b, y: g / (1 + apply("exp2", b - a)), lambda g, a, b, y: g / (1 + apply("exp2", a - b))),
    forms="function method",
)
pointwise(
    "xlogy",
    lambda a, b: where(isnan(b), b, where(apply("eq", a, 0.0), 0.0, a * log(b))),
    params=PAIR,
    operands="ee",
    rule="float",
    vjp=(
        lambda g, a, b, y: g * where(apply("eq", a, 0.0) & (b <= 0.0), 0.0, log(b)),
        lambda g, a, b, y: g * a / b,
    ),
)

# ---- trigonometry

pointwise("sin", loop=np.sin, rule="float", derivative=lambda x, y: cos(x))
pointwise("cos", loop=np.cos, rule="float", derivative=lambda x, y: -sin(x))
pointwise("tan", loop=np.tan, rule="float", derivative=lambda x, y: 1 + y * y)
pointwise("asin", loop=np.arcsin, rule="float", vjp=lambda g, x, y: g * rsqrt(1 - x * x))
pointwise("acos", loop=np.arccos, rule="float", vjp=lambda g, x, y: -g * rsqrt(1 - x * x))
pointwise("atan", loop=np.arctan, rule="float", vjp=lambda g, x, y: g / (x * x + 1))
pointwise("sinh", loop=np.sinh, rule="float", derivative=lambda x, y: cosh(x))
pointwise("cosh", loop=np.cosh, rule="float", derivative=lambda x, y: sinh(x))
pointwise("tanh", loop=np.tanh, rule="float", derivative=lambda x, y: 1 - y * y)
pointwise("asinh", loop=np.arcsinh, rule="float", vjp=lambda g, x, y: g * rsqrt(x * x + 1))
pointwise("acosh", loop=np.arccosh, rule="float", vjp=lambda g, x, y: g * rsqrt(x * x - 1))
pointwise("atanh", loop=np.arctanh, rule="float", vjp=lambda g, x, y: g / (1 - x * x))
pointwise(
    "atan2",
    loop=np.arctan2,
    params=PAIR,
    operands="tt",
    rule="float",
    vjp=(lambda g, a, b, y: g * b / (a * a + b * b), lambda g, a, b, y: -g * a / (a * a + b * b)),
)
pointwise(
    "hypot",
    loop="hypot",
    params=PAIR,
    operands="tt",
    rule="floating",
    vjp=(lambda g, a, b, y: g * (a / y), lambda g, a, b, y: g * (b / y)),
)
pointwise("deg2rad", lambda x: x * (math.pi / 180), rule="float")
pointwise("rad2deg", lambda x: x * (180 / math.pi), rule="float")
pointwise(
    "sinc",
    lambda x: where(apply("eq", x, 0.0), 1.0, sin(x * math.pi) / (x * math.pi)),
    rule="float",
    vjp=lambda g, x, y: (
        g * where(apply("eq", x, 0.0), 0.0, (cos(x * math.pi) * (x * math.pi) - sin(x * math.pi)) / (x * x * math.pi))
    ),
)
pointwise(
    "copysign",
    loop="copysign",
    params=PAIR,
    rule="float",
    vjp=(lambda g, a, b, y: g * where(apply("eq", a, 0.0), 0.0, y / a), lambda g, a, b, y: g * 0.0),
)
pointwise("nextafter", loop="nextafter", params=PAIR, operands="tt", rule="floating")
pointwise(
    "heaviside",
    lambda x, v: where(isnan(x), x, where(apply("eq", x, 0), v, x > 0)),
    params=(("input",), ("values",)),
    operands="tt",
    vjp=(None, None),
)

# ---- error function and gamma

pointwise("erf", loop="erf", rule="float", vjp=lambda g, x, y: g * (TWO_OVER_SQRT_PI * exp(-(x * x))))
pointwise("erfc", loop="erfc", rule="float", vjp=lambda g, x, y: g * (-TWO_OVER_SQRT_PI * exp(-(x * x))))

# ---- activations

pointwise("sigmoid", lambda x: 1.0 / (1.0 + exp(-x)), rule="float", derivative=lambda x, y: y * (1.0 - y))
pointwise(
    "relu",
    loop="relu",
    refuses={"b": "Boolean inputs not supported for relu"},
    vjp=lambda g, x, y: where(y <= 0.0, 0.0, g),
)
pointwise(
    "relu6",
    refuses={"b": "Boolean inputs not supported for hardtanh"},
    body=lambda x: minimum(maximum(x, 0), 6),
    vjp=lambda g, x, y: where((x > 0.0) & (x < 6.0), g, 0.0),
    node="HardtanhBackward0",
    forms="nn inplace",
)
pointwise(
    "silu",
    lambda x: x / (1.0 + exp(-x)),
    rule="floating",
    vjp=lambda g, x, y: g * (sigmoid(x) * (1.0 + x * (1.0 - sigmoid(x)))),
    forms="nn inplace",
)
pointwise(
    "log_sigmoid",
    lambda x: minimum(x, 0.0) - log1p(exp(-absolute(x))),
    rule="floating",
    vjp=lambda g, x, y: (
        g
        * where(
            x < 0.0, 1.0 - exp(-absolute(x)) / (1.0 + exp(-absolute(x))), exp(-absolute(x)) / (1.0 + exp(-absolute(x)))
        )
    ),
    forms="nn",
    node="LogSigmoidBackward0",
)
pointwise(
    "softplus",
    lambda x, beta, threshold: where(x * beta > threshold, x, log1p(exp(minimum(x * beta, threshold))) / beta),
    params=(*INPUT, ("beta", 1.0), ("threshold", 20.0)),
    rule="floating",
    vjp=(lambda g, x, beta, threshold, y: where(x * beta > threshold, g, g * sigmoid(x * beta)), None, None),
    forms="nn",
)
pointwise(
    "leaky_relu",
    lambda x, slope: where(x > 0.0, x, x * slope),
    params=(*INPUT, ("negative_slope", 0.01)),
    rule="floating",
    vjp=(lambda g, x, slope, y: where(x > 0.0, g, g * slope), None),
    forms="nn inplace",
)
pointwise(
    "rrelu_mean",
    lambda x, slope: where(x > 0.0, x, x * slope),
    params=(*INPUT, ("slope",)),
    rule="floating",
    vjp=(lambda g, x, slope, y: where(x > 0.0, g, g * slope), None),
    node="RreluWithNoiseBackward0",
    forms="",
)
pointwise(  # dropout's: the product by 0 keeps NaN, and makes it of infinities, as a product by a mask of numbers does
    "masked_scale",
    lambda x, mask, scale: where(mask, x * scale, x * 0.0),
    params=(*INPUT, ("mask",), ("scale",)),
    promoted=0b101,
    vjp=(lambda g, x, mask, scale, y: where(mask, g * scale, g * 0.0), None, None),
    node="MulBackward0",
    forms="",
)
pointwise(
    "elu",
    lambda x, alpha, scale, input_scale: where(x > 0.0, x * scale, (alpha * scale) * expm1(x * input_scale)),
    params=(*INPUT, ("alpha", 1.0), ("scale", 1.0), ("input_scale", 1.0)),
    rule="floating",
    vjp=(
        lambda g, x, alpha, scale, input_scale, y: where(
            x > 0.0, g * scale, g * (alpha * scale * input_scale) * exp(x * input_scale)
        ),
        None,
        None,
        None,
    ),
    forms="nn inplace",
)
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
pointwise(
    "selu",
    lambda x: where(x > 0.0, x * SELU_SCALE, (SELU_ALPHA * SELU_SCALE) * expm1(x)),
    rule="floating",
    vjp=lambda g, x, y: where(x > 0.0, g * SELU_SCALE, g * ((SELU_ALPHA * SELU_SCALE) * exp(x))),
    forms="function inplace",
    node="EluBackward0",
)
pointwise(
    "celu",
    lambda x, alpha: where(x > 0.0, x, alpha * expm1(x / alpha)),
    params=(*INPUT, ("alpha", 1.0)),
    rule="floating",
    vjp=(lambda g, x, alpha, y: where(x > 0.0, g, g * exp(x / alpha)), None),
    forms="function inplace",
    node="EluBackward0",
)
pointwise("gelu_none", lambda x: 0.5 * x * (1.0 + erf(x * SQRT_HALF)), rule="floating", node="GeluBackward0", forms="")
pointwise(
    "gelu_tanh",
    lambda x: 0.5 * x * (1.0 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x)))),
    rule="floating",
    node="GeluBackward0",
    forms="",
)
pointwise(
    "mish",
    lambda x: x * tanh(maximum(x, 0.0) + log1p(exp(-absolute(x)))),
    rule="floating",
    vjp=lambda g, x, y: g * _mish_slope(x),
    forms="nn inplace",
)


def _mish_slope(x: Any_) -> Any_:
    t = tanh(maximum(x, 0.0) + log1p(exp(-absolute(x))))
    return t + x * sigmoid(x) * (1.0 - t * t)


pointwise(
    "hardtanh",
    lambda x, low, high: minimum(maximum(x, low), high),
    params=(*INPUT, ("min_val", -1.0), ("max_val", 1.0)),
    refuses={"b": "Boolean inputs not supported for hardtanh"},
    vjp=(lambda g, x, low, high, y: where((x > low) & (x < high), g, 0.0), None, None),
    forms="nn inplace",
)
pointwise(
    "hardsigmoid",
    lambda x: minimum(maximum(x + 3.0, 0.0), 6.0) / 6.0,
    rule="floating",
    vjp=lambda g, x, y: where((x > -3.0) & (x < 3.0), g * (1 / 6), 0.0),
    forms="nn inplace",
)
pointwise(
    "hardswish",
    lambda x: x * minimum(maximum(x + 3.0, 0.0), 6.0) / 6.0,
    rule="floating",
    vjp=lambda g, x, y: where(x <= -3.0, 0.0, where(x < 3.0, g * (x / 3.0 + 0.5), g)),
    forms="nn inplace",
)
pointwise(
    "hardshrink",
    lambda x, lambd: where((x >= -lambd) & (x <= lambd), 0.0, x),
    params=(*INPUT, ("lambd", 0.5)),
    rule="floating",
    vjp=(lambda g, x, lambd, y: where((x >= -lambd) & (x <= lambd), 0.0, g), None),
    forms="function method",
)
pointwise(
    "softshrink",
    lambda x, lambd: where(x > lambd, x - lambd, where(x < -lambd, x + lambd, x * 0.0)),
    params=(*INPUT, ("lambd", 0.5)),
    rule="floating",
    vjp=(lambda g, x, lambd, y: where((x >= -lambd) & (x <= lambd), 0.0, g), None),
    forms="nn",
)
pointwise(
    "threshold",
    lambda x, limit, value: where(x <= limit, value, x),
    params=(*INPUT, ("threshold",), ("value",)),
    operands="tnn",
    vjp=(lambda g, x, limit, value, y: where(x <= limit, 0.0, g), None, None),
    forms="function inplace",
)
pointwise(
    "logit_plain",
    lambda x: log(x / (1.0 - x)),
    rule="float",
    vjp=lambda g, x, y: where((x >= 0.0) & (x <= 1.0), g / (x * (1.0 - x)), math.nan),
    node="LogitBackward0",
    forms="",
)
pointwise(
    "logit_bounded",
    lambda x, eps: log(minimum(maximum(x, eps), 1.0 - eps) / (1.0 - minimum(maximum(x, eps), 1.0 - eps))),
    params=(*INPUT, ("eps",)),
    rule="float",
    vjp=(lambda g, x, eps, y: where((x >= eps) & (x <= 1.0 - eps), g / (x * (1.0 - x)), 0.0), None),
    node="LogitBackward0",
    forms="",
)
pointwise(
    "glu_halves",
    lambda a, b: a * (1.0 / (1.0 + exp(-b))),
    params=PAIR,
    rule="floating",
    vjp=(lambda g, a, b, y: g * sigmoid(b), lambda g, a, b, y: g * (a * sigmoid(b) * (1.0 - sigmoid(b)))),
    node="GluBackward0",
    forms="",
)
pointwise(
    "prelu_slopes",
    lambda x, slope: where(x > 0.0, x, slope * x),
    params=(*INPUT, ("weight",)),
    rule="floating",
    vjp=(lambda g, x, slope, y: where(x > 0.0, g, g * slope), lambda g, x, slope, y: where(x > 0.0, 0.0, g * x)),
    node="PreluKernelBackward0",
    forms="",
)
pointwise(
    "lerp",
    lambda a, b, w: where(apply("abs", w) < 0.5, a + w * (b - a), b - (b - a) * (1.0 - w)),
    params=(*INPUT, ("end",), ("weight",)),
    operands="tte",
    rule="floating",
    vjp=(lambda g, a, b, w, y: g * (1.0 - w), lambda g, a, b, w, y: g * w, lambda g, a, b, w, y: g * (b - a)),
)
pointwise(
    "addcmul_scaled",
    lambda x, a, b, value: x + value * (a * b),
    params=(*INPUT, ("tensor1",), ("tensor2",), ("value", 1)),
    rule="not_bool",
    vjp=(lambda g, x, a, b, v, y: g, lambda g, x, a, b, v, y: g * (b * v), lambda g, x, a, b, v, y: g * (a * v), None),
    node="AddcmulBackward0",
    forms="",
)
pointwise(
    "addcdiv_scaled",
    lambda x, a, b, value: x + value * (a / b),
    params=(*INPUT, ("tensor1",), ("tensor2",), ("value", 1)),
    rule="floating",
    vjp=(
        lambda g, x, a, b, v, y: g,
        lambda g, x, a, b, v, y: g * (v / b),
        lambda g, x, a, b, v, y: -g * (v * ((a / b) / b)),
        None,
    ),
    node="AddcdivBackward0",
    forms="",
)
