"""The table of pointwise operators: one line each, forward and derivative side by side.

In a derivative, ``x`` (and ``a, b, ...``) are the operands, ``y`` the result and ``g`` the gradient. Subgradients at
kinks, and what happens at infinities and NaN, are PyTorch's. A rule holds for real numbers and for the holomorphic
continuation; operators of complex numbers that are not holomorphic have a ``complex_vjp``: the cotangent of a real number
is real, and the conjugate Wirtinger derivative of a complex one is dL/d(Re x) + i dL/d(Im x).
"""

from __future__ import annotations

import math

import numpy as np

from .declare import INPUT, PAIR, pointwise
from .expression import (
    absolute,
    conj,
    cos,
    cosh,
    exp,
    floor,
    isnan,
    log,
    logical_and,
    pow_number,
    real_part,
    round_even,
    rsqrt,
    sgn,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    tanh_slope,
    trunc,
    where,
)
from .trace import apply

LN2, LN10, TWO_OVER_SQRT_PI = math.log(2), math.log(10), 2 / math.sqrt(math.pi)

# ---- comparison and logic: nothing to differentiate

for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    pointwise(_name, loop=_name, params=PAIR)
for _name in ("logical_and", "logical_or", "logical_xor"):
    pointwise(_name, loop=_name, params=PAIR, operands="tt")
for _name in ("isnan", "isinf", "isfinite"):
    pointwise(_name, loop=_name, forms="function method")
pointwise(
    "signbit",
    loop="signbit",
    refuses={"c": "signbit is not implemented for complex tensors."},
    forms="function method",
)
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
NO_BOOL_OPERAND = (
    "Subtraction, the `-` operator, with a bool tensor is not supported. "
    "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
)
SUBTRACTION = {"b": NO_BOOL_MINUS, "any bool": NO_BOOL_OPERAND}
NO_COMPLEX_SIGN = "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
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
    refuses=SUBTRACTION,
    operands="ee",
    vjp=(lambda g, a, b, y: g, lambda g, a, b, y: -g),
)
pointwise("neg", loop="neg", refuses={"b": NO_BOOL_NEGATIVE}, vjp=lambda g, x, y: -g)
pointwise("mul", loop="mul", params=PAIR, operands="ee", derivative=(lambda a, b, y: b, lambda a, b, y: a))
pointwise(
    "rsub",
    lambda a, b: apply("sub", b, a),
    params=PAIR,
    refuses=SUBTRACTION,
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
pointwise(
    "abs",
    loop="abs",
    rule="not_bool",
    vjp=lambda g, x, y: g * sign(x),
    complex_vjp=lambda g, x, y: real_part(g) * sgn(x),
)
pointwise("sign", loop="sign", refuses={"c": NO_COMPLEX_SIGN}, vjp=lambda g, x, y: g * 0.0)
pointwise(
    "sgn",
    loop="sgn",
    vjp=lambda g, x, y: g * 0.0,
    complex_vjp=lambda g, x, y: where(apply("eq", x, 0.0), 0.0, (g - real_part(g * conj(y)) * y) / absolute(x)),
)
pointwise("conj_physical", loop="conj", vjp=lambda g, x, y: g, complex_vjp=lambda g, x, y: conj(g))
pointwise("real_part", loop="real_part", vjp=lambda g, x, y: g, complex_vjp=lambda g, x, y: real_part(g), forms="")
pointwise(
    "angle",
    loop="angle",
    rule="float",
    vjp=lambda g, x, y: g * 0.0,
    complex_vjp=lambda g, x, y: where(apply("eq", x, 0.0), 0.0, real_part(g) * (1j / conj(x))),
    forms="function method",
)
pointwise(
    "positive",
    loop="positive",
    refuses={"b": "The `+` operator, on a bool tensor is not supported."},
    vjp=lambda g, x, y: g,
    forms="function method",
)
for _name in ("floor", "ceil", "trunc"):
    pointwise(
        _name,
        loop=_name,
        rule="not_bool",
        refuses={"c": f"{_name} is not supported for complex inputs"},
        vjp=lambda g, x, y: g * 0.0,
    )
pointwise(
    "round",
    loop="round",
    rule="not_bool",
    vjp=lambda g, x, y: g * 0.0,
    forms="",
)
pointwise("round_whole", loop="round", vjp=lambda g, x, y: g * 0.0, node="RoundBackward1", forms="")
pointwise(
    "round_finer",
    lambda x, power: round_even(x * power) / power,
    params=(*INPUT, ("power",)),
    vjp=(lambda g, x, p, y: g * 0.0, None),
    node="RoundBackward1",
    forms="",
)
pointwise(
    "round_coarser",
    lambda x, power: round_even(x / power) * power,
    params=(*INPUT, ("power",)),
    vjp=(lambda g, x, p, y: g * 0.0, None),
    node="RoundBackward1",
    forms="",
)
pointwise("frac", lambda x: x - trunc(x), rule="floating", vjp=lambda g, x, y: g)
pointwise("sqrt", loop="sqrt", rule="float", vjp=lambda g, x, y: g / (2 * y))
pointwise("rsqrt", loop="rsqrt", rule="float", vjp=lambda g, x, y: -0.5 * g * (y * y * y))

pointwise(
    "lerp",
    lambda a, b, w: where(apply("abs", w) < 0.5, a + w * (b - a), b - (b - a) * (1.0 - w)),
    loop="lerp",
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

# ---- scaled and rounding forms

pointwise(
    "add_scaled",
    lambda a, b, alpha: a + b * alpha,
    params=(*PAIR, ("alpha",)),
    operands="een",
    vjp=(lambda g, a, b, alpha, y: g, lambda g, a, b, alpha, y: g * alpha, None),
    node="AddBackward0",
    forms="",
)
pointwise(
    "sub_scaled",
    lambda a, b, alpha: a - b * alpha,
    params=(*PAIR, ("alpha",)),
    operands="een",
    refuses=SUBTRACTION,
    vjp=(lambda g, a, b, alpha, y: g, lambda g, a, b, alpha, y: -g * alpha, None),
    node="SubBackward0",
    forms="",
)
pointwise(
    "rsub_scaled",
    lambda a, b, alpha: b - a * alpha,
    params=(*PAIR, ("alpha",)),
    operands="een",
    refuses=SUBTRACTION,
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
pointwise("not_negative", loop="not_negative", forms="")
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
    vjp=(
        None,
        lambda g, x, e, y: g * where(logical_and(apply("eq", x, 0.0), apply("not_negative", e)), 0.0, y * log(x)),
    ),
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
        lambda g, x, e, y: g * where(logical_and(apply("eq", x, 0.0), apply("not_negative", e)), 0.0, y * log(x)),
    ),
    node="PowBackward1",
)

# ---- exponentials and logarithms

pointwise("exp", loop=np.exp, rule="float", derivative=lambda x, y: y)
pointwise("exp2", loop=np.exp2, rule="float", derivative=lambda x, y: y * LN2)
pointwise("expm1", loop=np.expm1, rule="float", derivative=lambda x, y: y + 1)
pointwise("log", loop=np.log, rule="float", vjp=lambda g, x, y: g / x)
pointwise("log2", loop=np.log2, rule="float", vjp=lambda g, x, y: g / (x * LN2))
pointwise("log10", loop=np.log10, rule="float", vjp=lambda g, x, y: g / (x * LN10))
pointwise("log1p", loop=np.log1p, rule="float", vjp=lambda g, x, y: g / (x + 1), node="Log1PBackward0")
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
    refuses="c",
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
pointwise(
    "tanh_slope",  # g (1 - y y) in one step
    loop="tanh_slope",
    params=(("grad_output",), ("output",)),
    vjp=(lambda g, a, y, r: tanh_slope(g, y), lambda g, a, y, r: -2 * g * a * y),
    node="TanhBackwardBackward0",
    forms="",
)
pointwise(
    "tanh",
    loop=np.tanh,
    rule="float",
    vjp=lambda g, x, y: tanh_slope(g, y),
    complex_vjp=lambda g, x, y: g * conj(1 - y * y),
)
pointwise("asinh", loop=np.arcsinh, rule="float", vjp=lambda g, x, y: g * rsqrt(x * x + 1))
pointwise(
    "acosh",
    loop=np.arccosh,
    rule="float",
    vjp=lambda g, x, y: g * rsqrt(x * x - 1),
    complex_vjp=lambda g, x, y: g * conj(rsqrt(x - 1) * rsqrt(x + 1)),  # with the branch cuts of acosh
)
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
pointwise(
    "deg2rad",
    lambda x: x * (math.pi / 180),
    rule="float",
    refuses={"c": "deg2rad is not supported for complex tensors."},
    node="Deg2RadBackward0",
)
pointwise(
    "rad2deg",
    lambda x: x * (180 / math.pi),
    rule="float",
    refuses={"c": "rad2deg is not supported for complex tensors."},
    node="Rad2DegBackward0",
)
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
pointwise(
    "nextafter",
    loop="nextafter",
    params=PAIR,
    operands="tt",
    rule="floating",
    vjp=(lambda g, a, b, y: where(apply("eq", a, b), 0.0, g), lambda g, a, b, y: g * 0.0),
)
pointwise(
    "heaviside",
    refuses={"c": "heaviside is not yet implemented for complex tensors."},
    body=lambda x, v: where(apply("eq", x, 0), v, x > 0),
    params=(("input",), ("values",)),
    operands="tt",
    vjp=(None, None),
)

# ---- error function and gamma

pointwise("erf", loop="erf", rule="float", vjp=lambda g, x, y: g * (TWO_OVER_SQRT_PI * exp(-(x * x))))
pointwise("erfc", loop="erfc", rule="float", vjp=lambda g, x, y: g * (-TWO_OVER_SQRT_PI * exp(-(x * x))))
