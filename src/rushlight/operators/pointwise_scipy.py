"""Pointwise functions with SciPy's loops, declared when ``torch.special`` is first asked for one.

Bessel functions and Airy's have no derivative in PyTorch, and none here; the incomplete gamma functions have one in
their second argument.
"""

from __future__ import annotations

import math
from typing import Any

from scipy import special

from .declare import PAIR, pointwise
from .trace import apply
from .underivable import underivable

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "igamma",
    "igammac",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
]


def _bessel(name: str, loop: Any) -> Any:
    return pointwise(name, loop=loop, rule="float", forms="")


bessel_j0 = _bessel("bessel_j0", special.j0)
bessel_j1 = _bessel("bessel_j1", special.j1)
bessel_y0 = _bessel("bessel_y0", special.y0)
bessel_y1 = _bessel("bessel_y1", special.y1)
modified_bessel_k0 = _bessel("modified_bessel_k0", special.k0)
modified_bessel_k1 = _bessel("modified_bessel_k1", special.k1)
scaled_modified_bessel_k0 = _bessel("scaled_modified_bessel_k0", special.k0e)
scaled_modified_bessel_k1 = _bessel("scaled_modified_bessel_k1", special.k1e)

pointwise("bessel_jv", loop=special.jv, params=PAIR, operands="ee", rule="float", forms="")
pointwise("bessel_kv", loop=special.kv, params=PAIR, operands="ee", rule="float", forms="")

# Ai(0) and Ai'(0): NIST's Digital Library of Mathematical Functions, 9.2.3 and 9.2.4
_AT_ZERO, _SLOPE_AT_ZERO = 3 ** (-2 / 3) / math.gamma(2 / 3), -(3 ** (-1 / 3)) / math.gamma(1 / 3)


def _airy(x: Any) -> Any:
    """By Bessel functions of order 1/3 (DLMF 9.6.2, 9.6.6); by the tangent where x is so small that they overflow."""
    size = apply("abs", x)
    near = size < 1e-6
    safe = apply("where", near, 1.0, size)
    root = apply("sqrt", safe)
    angle = (2 / 3) * safe * root
    right = apply("sqrt", safe / 3.0) / math.pi * apply("bessel_kv", 1 / 3, angle)
    left = root / 3.0 * (apply("bessel_jv", 1 / 3, angle) + apply("bessel_jv", -1 / 3, angle))
    return apply("where", near, _AT_ZERO + _SLOPE_AT_ZERO * x, apply("where", x > 0.0, right, left))


airy_ai = pointwise("airy_ai", _airy, rule="float", vjp=(None,), forms="")


def _gamma_density(g: Any, a: Any, x: Any, y: Any) -> Any:
    """The derivative of the lower one in x: x^(a - 1) exp(-x) / gamma(a)."""
    return g * apply("exp", (a - 1.0) * apply("log", x) - x - apply("lgamma", a))


def _unasked(g: Any, a: Any, x: Any, y: Any) -> Any:
    """In place of the missing derivative in the first operand, at which `underivable` raises."""
    return g * 0.0


_lower = pointwise(
    "igamma",
    loop=special.gammainc,
    params=PAIR,
    operands="tt",
    rule="float",
    vjp=(_unasked, _gamma_density),
    forms="",
)
_upper = pointwise(
    "igammac",
    loop=special.gammaincc,
    params=PAIR,
    operands="tt",
    rule="float",
    vjp=(_unasked, lambda g, a, x, y: -_gamma_density(g, a, x, y)),
    forms="",
)


def igamma(input: Any, other: Any, *, out: Any = None) -> Any:
    """Return the lower incomplete gamma function P(``input``, ``other``), regularized, pointwise.

    The derivative in ``other`` is x^(a - 1) exp(-x) / gamma(a); that in ``input`` raises NotImplementedError in backward.
    """
    return _lower(underivable(input, "igamma: input"), other, out=out)


def igammac(input: Any, other: Any, *, out: Any = None) -> Any:
    """Return the upper incomplete gamma function Q(``input``, ``other``) = 1 - P, regularized, pointwise.

    The derivative in ``other`` is -x^(a - 1) exp(-x) / gamma(a); that in ``input`` raises NotImplementedError in
    backward.
    """
    return _upper(underivable(input, "igammac: input"), other, out=out)
