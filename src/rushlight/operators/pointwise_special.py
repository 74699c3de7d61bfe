"""Pointwise special functions: gamma, the error function's inverse, the normal distribution, Bessel functions."""

from __future__ import annotations

import math
from typing import Any

from .declare import INPUT, PAIR, pointwise
from .trace import apply

Any_ = Any

ROOT_PI, ROOT_2PI, SQRT_HALF = math.sqrt(math.pi), math.sqrt(2 * math.pi), math.sqrt(0.5)


def _call(name: str) -> Any_:
    return lambda *args: apply(name, *args)


where, exp, log, log1p, isnan, sign = map(_call, ("where", "exp", "log", "log1p", "isnan", "sign"))
digamma, polygamma_of, zeta, erfc = map(_call, ("digamma", "polygamma_of", "zeta", "erfc"))
i0, i1, i0e, i1e = map(_call, ("i0", "i1", "i0e", "i1e"))

# ---- gamma and what is derived from it

pointwise(
    "lgamma",
    loop="lgamma",
    rule="float",
    vjp=lambda g, x, y: g * digamma(x),
)
pointwise(
    "digamma",
    loop="digamma",
    rule="float",
    vjp=lambda g, x, y: g * polygamma_of(x, 1.0),
)
pointwise(
    "polygamma_of",
    loop="polygamma_of",
    params=(*INPUT, ("n",)),
    operands="tn",
    rule="float",
    vjp=(lambda g, x, n, y: g * polygamma_of(x, n + 1.0), None),
    node="PolygammaBackward0",
    forms="",
)
pointwise(
    "zeta",
    loop="zeta",
    params=PAIR,
    operands="ee",
    rule="float",
    vjp=(lambda g, s, q, y: g * 0.0, lambda g, s, q, y: g * (-s * zeta(s + 1.0, q))),  # the first: see `underivable`
    node="SpecialZetaBackward0",
    forms="",
)

# ---- the error function and the normal distribution

pointwise(
    "erfinv",
    loop="erfinv",
    rule="float",
    vjp=lambda g, x, y: g * (0.5 * ROOT_PI * exp(y * y)),
)
pointwise(
    "erfcx",
    loop="erfcx",
    rule="float",
    vjp=lambda g, x, y: g * (2.0 * x * y - 2 / ROOT_PI),
    node="SpecialErfcxBackward0",
    forms="",
)
pointwise(
    "ndtr",
    lambda x: 0.5 * erfc(x * -SQRT_HALF),
    rule="float",
    vjp=lambda g, x, y: g * (exp(-0.5 * (x * x)) / ROOT_2PI),
    node="SpecialNdtrBackward0",
    forms="",
)
pointwise(
    "log_ndtr",
    loop="log_ndtr",
    rule="float",
    vjp=lambda g, x, y: g * (math.sqrt(2 / math.pi) / apply("erfcx", x * -SQRT_HALF)),
    node="SpecialLogNdtrBackward0",
    forms="",
)
pointwise(
    "ndtri",
    loop="ndtri",
    rule="float",
    vjp=lambda g, x, y: g * (ROOT_2PI * exp(0.5 * (y * y))),
    node="SpecialNdtriBackward0",
    forms="",
)
pointwise(
    "entr",
    lambda x: where(isnan(x), x, where(x > 0.0, -x * log(x), where(apply("eq", x, 0.0), 0.0, -math.inf))),
    rule="float",
    vjp=lambda g, x, y: g * where(x > 0.0, -(log(x) + 1.0), where(apply("eq", x, 0.0), math.inf, math.nan)),
    node="SpecialEntrBackward0",
    forms="",
)
pointwise(
    "xlog1py",
    refuses="c",
    body=lambda a, b: where(isnan(b), b, where(apply("eq", a, 0.0), 0.0, a * log1p(b))),
    params=PAIR,
    operands="ee",
    rule="float",
    vjp=(
        lambda g, a, b, y: g * where(apply("eq", a, 0.0) & (b <= -1.0), 0.0, log1p(b)),
        lambda g, a, b, y: g * a / (b + 1.0),
    ),
    node="SpecialXlog1PyBackward0",
    forms="",
)

# ---- modified Bessel functions of the first kind


def _i1_slope(x: Any_, y: Any_) -> Any_:
    """I1' = I0 - I1 / x, 1/2 at 0."""
    return where(apply("eq", x, 0.0), 0.5, i0(x) - y / where(apply("eq", x, 0.0), 1.0, x))


def _i1e_slope(x: Any_, y: Any_) -> Any_:
    """(I1(x) exp(-|x|))', 1/2 at 0."""
    safe = where(apply("eq", x, 0.0), 1.0, x)
    return where(apply("eq", x, 0.0), 0.5, i0e(x) - y * (sign(x) + 1.0 / safe))


pointwise("i0", loop="i0", rule="float", vjp=lambda g, x, y: g * i1(x))
pointwise(
    "i1",
    loop="i1",
    rule="float",
    vjp=lambda g, x, y: g * _i1_slope(x, y),
    node="SpecialI1Backward0",
    forms="",
)
pointwise(
    "i0e",
    loop="i0e",
    rule="float",
    vjp=lambda g, x, y: g * (i1e(x) - sign(x) * y),
    node="SpecialI0EBackward0",
    forms="",
)
pointwise(
    "i1e",
    loop="i1e",
    rule="float",
    vjp=lambda g, x, y: g * _i1e_slope(x, y),
    node="SpecialI1EBackward0",
    forms="",
)

# ---- the spherical Bessel function of order 0


def _spherical_j0(x: Any_) -> Any_:
    zero = apply("eq", x, 0.0)
    safe = where(zero, 1.0, x)
    return where(zero, 1.0, where(apply("isinf", x), 0.0, apply("sin", safe) / safe))


def _spherical_j1(x: Any_, y: Any_) -> Any_:
    """(y - cos(x)) / x, and near 0, where that cancels, its series (NIST's Digital Library, 10.53.1)."""
    near = apply("abs", x) < 0.3
    square = x * x
    series: Any_ = 1.0
    for divisor in (180.0, 130.0, 88.0, 54.0, 28.0, 10.0):
        series = 1.0 - square / divisor * series
    return where(near, x / 3.0 * series, (y - apply("cos", x)) / where(near, 1.0, x))


pointwise(
    "spherical_bessel_j0",
    _spherical_j0,
    rule="float",
    vjp=lambda g, x, y: -g * _spherical_j1(x, y),
    node="SpecialSphericalBesselJ0Backward0",
    forms="",
)
