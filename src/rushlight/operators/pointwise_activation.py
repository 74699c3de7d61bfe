"""Activations as pointwise operators, and the terms that the core builds others of (see `pointwise` for the notation)."""

from __future__ import annotations

import math

from .declare import INPUT, PAIR, pointwise
from .expression import (
    Symbol,
    absolute,
    conj,
    erf,
    exp,
    expm1,
    log,
    log1p,
    maximum,
    minimum,
    sigmoid,
    sigmoid_slope,
    tanh,
    where,
)
from .pointwise_choice import NO_COMPLEX_CLAMP

SQRT_HALF, NORMAL_DENSITY = math.sqrt(0.5), 1 / math.sqrt(2 * math.pi)

pointwise(
    "sigmoid_slope",  # g y (1 - y) in one step
    loop="sigmoid_slope",
    params=(("grad_output",), ("output",)),
    vjp=(lambda g, a, y, r: sigmoid_slope(g, y), lambda g, a, y, r: g * a * (1.0 - 2.0 * y)),
    node="SigmoidBackwardBackward0",
    forms="",
)
pointwise(
    "sigmoid",
    loop="sigmoid",
    rule="float",
    vjp=lambda g, x, y: sigmoid_slope(g, y),
    complex_vjp=lambda g, x, y: g * conj(y * (1.0 - y)),
)
pointwise(
    "relu",
    loop="relu",
    refuses={"b": "Boolean inputs not supported for relu", "c": NO_COMPLEX_CLAMP},
    vjp=lambda g, x, y: where(y <= 0.0, 0.0, g),
)
pointwise(
    "relu6",
    refuses={"b": "Boolean inputs not supported for hardtanh", "c": NO_COMPLEX_CLAMP},
    body=lambda x: minimum(maximum(x, 0), 6),
    vjp=lambda g, x, y: where((x > 0.0) & (x < 6.0), g, 0.0),
    node="HardtanhBackward0",
    forms="nn inplace",
)
pointwise(
    "silu",
    lambda x: x * sigmoid(x),
    loop="silu",
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
    loop="leaky_relu",
    params=(*INPUT, ("negative_slope", 0.01)),
    rule="floating",
    vjp=(lambda g, x, slope, y: where(x > 0.0, g, g * slope), None),
    forms="nn inplace",
)
pointwise(
    "rrelu_mean",
    lambda x, slope: where(x > 0.0, x, x * slope),
    loop="leaky_relu",
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
pointwise(
    "gelu_none",
    lambda x: 0.5 * x * (1.0 + erf(x * SQRT_HALF)),
    loop="gelu",
    rule="real",
    vjp=lambda g, x, y: g * (0.5 * (1.0 + erf(x * SQRT_HALF)) + x * (exp(-0.5 * (x * x)) * NORMAL_DENSITY)),
    node="GeluBackward0",
    forms="",
)
pointwise(
    "gelu_tanh",
    lambda x: 0.5 * x * (1.0 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x)))),
    rule="real",
    node="GeluBackward0",
    forms="",
)
pointwise(
    "mish",
    lambda x: x * tanh(maximum(x, 0.0) + log1p(exp(-absolute(x)))),
    loop="mish",
    rule="floating",
    vjp=lambda g, x, y: g * _mish_slope(x),
    forms="nn inplace",
)


def _mish_slope(x: Symbol) -> Symbol:
    t = tanh(maximum(x, 0.0) + log1p(exp(-absolute(x))))
    return t + x * sigmoid(x) * (1.0 - t * t)


pointwise(
    "hardtanh",
    lambda x, low, high: minimum(maximum(x, low), high),
    params=(*INPUT, ("min_val", -1.0), ("max_val", 1.0)),
    refuses={"b": "Boolean inputs not supported for hardtanh", "c": NO_COMPLEX_CLAMP},
    vjp=(lambda g, x, low, high, y: where((x > low) & (x < high), g, 0.0), None, None),
    forms="nn inplace",
)
pointwise(
    "hardsigmoid",
    lambda x: minimum(maximum(x + 3.0, 0.0), 6.0) / 6.0,
    loop="hardsigmoid",
    rule="floating",
    vjp=lambda g, x, y: where((x > -3.0) & (x < 3.0), g * (1 / 6), 0.0),
    forms="nn inplace",
)
pointwise(
    "hardswish",
    lambda x: x * minimum(maximum(x + 3.0, 0.0), 6.0) / 6.0,
    loop="hardswish",
    rule="floating",
    vjp=lambda g, x, y: where(x <= -3.0, 0.0, where(x < 3.0, g * (x / 3.0 + 0.5), g)),
    forms="nn inplace",
)
pointwise(
    "hardshrink",
    lambda x, lambd: where((x >= -lambd) & (x <= lambd), 0.0, x),
    loop="hardshrink",
    params=(*INPUT, ("lambd", 0.5)),
    rule="floating",
    vjp=(lambda g, x, lambd, y: where((x >= -lambd) & (x <= lambd), 0.0, g), None),
    forms="function method",
)
pointwise(
    "softshrink",
    lambda x, lambd: where(x > lambd, x - lambd, where(x < -lambd, x + lambd, x * 0.0)),
    loop="softshrink",
    params=(*INPUT, ("lambd", 0.5)),
    rule="floating",
    vjp=(lambda g, x, lambd, y: where((x >= -lambd) & (x <= lambd), 0.0, g), None),
    forms="nn",
)
pointwise(
    "threshold",
    lambda x, limit, value: where(x <= limit, value, x),
    refuses="b",
    params=(*INPUT, ("threshold",), ("value",)),
    operands="tnn",
    vjp=(lambda g, x, limit, value, y: where(x <= limit, 0.0, g), None, None),
    forms="function inplace",
)
pointwise(
    "logit_plain",
    lambda x: log(x / (1.0 - x)),
    rule="float",
    refuses="c",
    vjp=lambda g, x, y: where((x >= 0.0) & (x <= 1.0), g / (x * (1.0 - x)), math.nan),
    node="LogitBackward0",
    forms="",
)
pointwise(
    "logit_bounded",
    lambda x, eps: log(minimum(maximum(x, eps), 1.0 - eps) / (1.0 - minimum(maximum(x, eps), 1.0 - eps))),
    params=(*INPUT, ("eps",)),
    rule="float",
    refuses="c",
    vjp=(lambda g, x, eps, y: where((x >= eps) & (x <= 1.0 - eps), g / (x * (1.0 - x)), 0.0), None),
    node="LogitBackward0",
    forms="",
)
pointwise(
    "glu_halves",
    lambda a, b: a * (1.0 / (1.0 + exp(-b))),
    params=PAIR,
    rule="real",
    vjp=(lambda g, a, b, y: g * sigmoid(b), lambda g, a, b, y: g * (a * sigmoid(b) * (1.0 - sigmoid(b)))),
    node="GluBackward0",
    forms="",
)
pointwise(
    "prelu_slopes",
    lambda x, slope: where(x > 0.0, x, slope * x),
    loop="leaky_relu",
    params=(*INPUT, ("weight",)),
    rule="floating",
    vjp=(lambda g, x, slope, y: where(x > 0.0, g, g * slope), lambda g, x, slope, y: where(x > 0.0, 0.0, g * x)),
    node="PreluKernelBackward0",
    forms="",
)
