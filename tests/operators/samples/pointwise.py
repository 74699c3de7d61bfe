"""Samples of the declared operators: made from their parameters, with domains, held to NumPy's functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import special

import rushlight
from rushlight.operators.registry import Operator

from .compare import widened
from .sample import FLOATS, Family, Maker, Sample

# where the operands may lie; others from -2 to 2
DOMAIN: dict[str, tuple[tuple[float, float], ...]] = {
    "acos": ((-0.9, 0.9),),
    "acosh": ((1.1, 3),),
    "asin": ((-0.9, 0.9),),
    "atanh": ((-0.9, 0.9),),
    "log": ((0.1, 3),),
    "log10": ((0.1, 3),),
    "log1p": ((-0.8, 3),),
    "log2": ((0.1, 3),),
    "lgamma": ((0.2, 3),),
    "digamma": ((0.2, 3),),
    "rsqrt": ((0.2, 3),),
    "sqrt": ((0.1, 3),),
    "erfinv": ((-0.9, 0.9),),
    "tan": ((-1.2, 1.2),),
    "relu6": ((-2, 8),),
    "hardswish": ((-4, 4),),
    "hardsigmoid": ((-4, 4),),
    "pow": ((0.2, 2), (-2, 2)),
    "xlogy": ((-2, 2), (0.1, 3)),
    "hypot": ((0.2, 2), (-2, 2)),
    "bitwise_left_shift": ((0, 4), (0, 3)),
    "bitwise_right_shift": ((0, 90), (0, 3)),
    "lerp": ((-2, 2), (-2, 2), (-1, 2)),
}
# whose second operand must not be 0 for whole numbers
DIVISIONS = ("div", "remainder", "fmod", "floor_divide", "true_divide")
# whose exponent must not be negative for whole numbers
POWERS = ("pow",)

# operands that PyTorch takes as numbers only: the calls to try
NUMBERS: dict[str, tuple[dict[str, Any], ...]] = {
    "softplus": ({}, {"beta": 2.0, "threshold": 1.0}),
    "leaky_relu": ({}, {"negative_slope": 0.25}),
    "elu": ({}, {"alpha": 1.5}, {"alpha": 0.5, "scale": 2.0, "input_scale": 1.5}),
    "celu": ({}, {"alpha": 1.5}),
    "hardtanh": ({"min_val": 0, "max_val": 1}, {"min_val": 0.5, "max_val": 1.5}),
    "hardshrink": ({}, {"lambd": 1.0}),
    "softshrink": ({}, {"lambd": 1.0}),
    "threshold": ({"threshold": 0.5, "value": 20},),
}


def _heaviside(x: Any, v: Any) -> Any:
    return np.where(x == 0, v, np.where(x > 0, 1, 0))  # 0 for NaN, unlike NumPy


def _div(a: Any, b: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode == "floor":
        return np.floor_divide(a, b)
    quotient = np.true_divide(a, b)
    return np.trunc(quotient).astype(np.result_type(a, b)) if rounding_mode else quotient


def _sign(x: Any) -> Any:
    return x if x.dtype == bool else np.where(np.isnan(x), 0, np.sign(x))


def _softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    return np.where(x * beta > threshold, x, np.log1p(np.exp(np.minimum(x * beta, threshold))) / beta)


def _elu(x: Any, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    return np.where(x > 0, x * scale, alpha * scale * np.expm1(np.minimum(x, 0) * input_scale))


def _expit(x: Any) -> Any:
    return 1 / (1 + np.exp(-x)) if x.dtype.kind == "c" else special.expit(x)


def _silu(x: Any) -> Any:
    return x * _expit(x)


def _angle(x: Any) -> Any:
    return np.angle(x) if x.dtype.kind == "c" else np.where(np.isnan(x), x, np.where(x < 0, np.pi, 0.0))


def _sgn(x: Any) -> Any:
    return np.where(x == 0, 0, x / np.abs(x)) if x.dtype.kind == "c" else _sign(x)


def _log_sigmoid(x: Any) -> Any:
    return -np.logaddexp(0, -x)


def _logaddexp(a: Any, b: Any) -> Any:
    return np.log(np.exp(a) + np.exp(b)) if a.dtype.kind == "c" else np.logaddexp(a, b)


def _mish(x: Any) -> Any:
    return x * np.tanh(np.logaddexp(0, x))


def _selu(x: Any) -> Any:
    return 1.0507009873554804934193349852946 * _elu(x, 1.6732632423543772848170429916717)


def _relu6(x: Any) -> Any:
    return np.clip(x, 0, 6)


# NumPy's function where it is not called the same, or where there is none
REFERENCE: dict[str, Callable[..., Any]] = {
    "add": lambda a, b, alpha=1: a + (b if alpha == 1 else b * alpha),
    "acos": np.arccos,
    "acosh": np.arccosh,
    "angle": _angle,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
    "celu": lambda x, alpha=1.0: _elu(x, alpha, 1.0, 1 / alpha),
    "digamma": special.digamma,
    "div": _div,
    "elu": _elu,
    "eq": np.equal,
    "erf": special.erf,
    "erfc": special.erfc,
    "erfinv": special.erfinv,
    "frac": lambda x: x - np.trunc(x),
    "ge": np.greater_equal,
    "gt": np.greater,
    "hardshrink": lambda x, lambd=0.5: np.where(np.abs(x) <= lambd, 0, x),
    "hardsigmoid": lambda x: _relu6(x + 3) / 6,
    "hardswish": lambda x: x * _relu6(x + 3) / 6,
    "hardtanh": lambda x, min_val=-1.0, max_val=1.0: np.clip(x, min_val, max_val),
    "heaviside": _heaviside,
    "i0": special.i0,
    "isneginf": lambda x: x == -np.inf,
    "isposinf": lambda x: x == np.inf,
    "le": np.less_equal,
    "leaky_relu": lambda x, negative_slope=0.01: np.where(x > 0, x, x * negative_slope),
    "lerp": lambda a, b, w: a + w * (b - a),
    "lgamma": lambda x: np.where(np.isneginf(x), np.inf, special.gammaln(x)),
    "log_sigmoid": _log_sigmoid,
    "logaddexp": _logaddexp,
    "lt": np.less,
    "mish": _mish,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "positive": lambda x: x,
    "reciprocal": lambda x: 1 / x,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": _relu6,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rsub": lambda a, b, alpha=1: np.subtract(b, a if alpha == 1 else a * alpha),
    "selu": _selu,
    "sgn": _sgn,
    "sign": _sign,
    "sigmoid": _expit,
    "silu": _silu,
    "softplus": _softplus,
    "softshrink": lambda x, lambd=0.5: np.where(np.abs(x) <= lambd, 0, x - np.copysign(lambd, x)),
    "sub": lambda a, b, alpha=1: np.subtract(a, b if alpha == 1 else b * alpha),
    "threshold": lambda x, threshold, value: np.where(x <= threshold, value, x),
    "xlogy": special.xlogy,
}
# rounded differently near their zeros or poles than the float64 reference that is rounded once
TOLERANCE: dict[str, dict[str, tuple[float, float]]] = {
    "lgamma": {"float32": (1e-4, 1e-5)},
    "digamma": {"float32": (1e-4, 1e-5)},
}


def family(op: Operator) -> Family:
    """The samples of a declared operator."""
    tensors = [p.name for p in op.overloads[0].parameters if p.type in ("Tensor", "Operand")]
    numbers = [p.name for p in op.overloads[0].parameters if p.type == "Operand"]
    taken = NUMBERS.get(op.name)
    domain = DOMAIN.get(op.name, ())
    if domain:
        domain = domain + ((-2, 2),) * (len(tensors) - len(domain))

    def make(m: Maker) -> Iterator[Sample]:
        for s in _samples(m, op, len(tensors), numbers, domain or ((-2, 2),) * len(tensors), taken or ({},)):
            s.derivatives = s.derivatives and _smooth(op, s)
            yield s

    def large(m: Maker) -> Iterator[Sample]:
        ranges = domain or ((-2, 2),) * len(tensors)
        if _whole(m) and op.name in DIVISIONS:
            ranges = (ranges[0], (1, 3))
        yield Sample(tuple([m(300, 401, low=a, high=b) for a, b in ranges]), (taken or ({},))[0])
        yield Sample(tuple([m(401, 300, low=a, high=b).t() for a, b in ranges]), (taken or ({},))[0])

    reference = REFERENCE.get(op.name) or getattr(np, op.name, None)
    tolerance = TOLERANCE.get(op.name, {})
    if op.name == "nextafter":  # depends on the type; NumPy has no bfloat16
        dtypes = [d for d in FLOATS if d != "bfloat16"]
        return Family((op.name,), make, reference, large, dtypes, own_precision=True)
    return Family((op.name,), make, reference, large, tolerance=tolerance)


def _whole(m: Maker) -> bool:
    return not m.is_floating and not m.is_complex


_ONE = (((),), ((3,),), ((2, 3),), ((0,),), ((2, 0, 3),))
_TWO = (((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 3)), ((2,), ()), ((0, 3), (3,)), ((), ()))
_THREE = (((2, 3), (2, 3), (2, 3)), ((2, 1), (3,), ()), ((), (2, 1), (3,)), ((2, 3), (0, 2, 3), (1, 3)))


def _smooth(op: Operator, s: Sample) -> bool:
    """Is the quotient away from whole numbers, where division with rounding jumps?"""
    if op.name not in DIVISIONS or (op.name == "div" and "rounding_mode" not in s.kwargs):
        return True
    a, b = [widened(x) if isinstance(x, rushlight.Tensor) else x for x in s.args]
    with np.errstate(all="ignore"):
        quotient = np.asarray(a / b)
    return bool(np.all(np.abs(quotient - np.round(quotient)) > 1e-3))


def _samples(m: Maker, op: Operator, count: int, numbers: list[str], domain: Any, calls: Any) -> Iterator[Sample]:
    whole = _whole(m)
    if whole and op.name in DIVISIONS:
        domain = (domain[0], (1, 3))
    if whole and op.name in POWERS:
        domain = (domain[0], (0, 3))
    for shapes in {1: _ONE, 2: _TWO, 3: _THREE}[count]:
        for call in calls:
            yield Sample(tuple([m(*s, low=a, high=b) for s, (a, b) in zip(shapes, domain)]), call)
    first = [m(3, 1, low=a, high=b).expand(3, 4) for a, b in domain]
    yield Sample(tuple(first), calls[0])
    if count == 2 and numbers:
        yield Sample((m(2, 3, low=domain[0][0], high=domain[0][1]), 2), calls[0])
        if m.is_floating and not op.name.startswith("bitwise"):
            yield Sample((m(3, low=domain[0][0], high=domain[0][1]), 0.75), calls[0])
    if len(numbers) == count == 2:
        yield Sample((2, m(2, 3, low=domain[1][0], high=domain[1][1])), calls[0])
    if m.is_floating and not op.name.startswith("bitwise"):
        values = m.special()
        if count == 1:
            yield Sample((values,), calls[0], derivatives=False)
        elif count == 2:
            yield Sample((values.unsqueeze(1), values), calls[0], derivatives=False)
    if op.name in ("add", "sub", "rsub"):
        yield Sample((m(2, 3), m(3)), {"alpha": 2})
    if op.name == "div" and not m.is_complex:
        for mode in ("floor", "trunc"):
            yield Sample((m(2, 3), m(3, low=1, high=2)), {"rounding_mode": mode})
