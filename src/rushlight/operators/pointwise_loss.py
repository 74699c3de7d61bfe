"""The terms of losses as pointwise operators: f(x, t) or f(x, t, parameter), and what of a gradient reaches x and t.

The losses themselves (core/operators/loss.cpp) reduce the terms; they call the gradients ``<name>_to_input`` and
``<name>_to_target`` by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .declare import INPUT, pointwise
from .expression import absolute, exp, log, log1p, maximum, minimum, sigmoid, square, where
from .trace import apply


def _loss(
    name: str, terms: Callable[..., Any], to_input: Callable[..., Any], to_target: Callable[..., Any], *parameters: str
) -> None:
    operands = (*INPUT, ("target",), *[(p,) for p in parameters])
    pointwise(name, terms, params=operands, rule="real", vjp=(None,) * len(operands), forms="")
    for ending, gradient in (("to_input", to_input), ("to_target", to_target)):
        pointwise(f"{name}_{ending}", gradient, params=(("grad",), *operands), rule="real", forms="")


_loss("mse", lambda x, t: square(x - t), lambda g, x, t: g * (2.0 * (x - t)), lambda g, x, t: g * (2.0 * (t - x)))


def _bounded(d: Any, bound: Any) -> Any:
    return minimum(maximum(d, -bound), bound)


_loss(
    "smooth_l1",
    lambda x, t, beta: where(absolute(x - t) < beta, 0.5 * square(x - t) / beta, absolute(x - t) - 0.5 * beta),
    lambda g, x, t, beta: g * (_bounded(x - t, beta) / beta),
    lambda g, x, t, beta: g * (_bounded(t - x, beta) / beta),
    "beta",
)
_loss(
    "huber",
    lambda x, t, delta: where(absolute(x - t) <= delta, 0.5 * square(x - t), delta * (absolute(x - t) - 0.5 * delta)),
    lambda g, x, t, delta: g * _bounded(x - t, delta),
    lambda g, x, t, delta: g * _bounded(t - x, delta),
    "delta",
)

# binary cross entropy: logarithms at least -100, so that certainty of what is wrong costs something finite (the gradient
# of the target is not bounded, in PyTorch neither)

pointwise("within_unit", lambda x: (x >= 0.0) & (x <= 1.0), forms="")
_loss(
    "binary_cross_entropy_terms",
    lambda x, t: (t - 1.0) * maximum(log1p(-x), -100.0) - t * maximum(log(x), -100.0),
    lambda g, x, t: g * (x - t) / maximum(x * (1.0 - x), 1e-12),
    lambda g, x, t: g * (log1p(-x) - log(x)),
)


def _softplus_of_minus(x: Any) -> Any:
    return log1p(exp(-absolute(x))) + maximum(-x, 0.0)


_loss(
    "binary_cross_entropy_logits",
    lambda x, t: (1.0 - t) * x + _softplus_of_minus(x),
    lambda g, x, t: g * (sigmoid(x) - t),
    lambda g, x, t: -g * x,
)
_loss(
    "binary_cross_entropy_logits_weighted",
    lambda x, t, p: (1.0 - t) * x + (1.0 + (p - 1.0) * t) * _softplus_of_minus(x),
    lambda g, x, t, p: g * ((1.0 - t) - (1.0 + (p - 1.0) * t) * (1.0 - sigmoid(x))),
    lambda g, x, t, p: g * ((p - 1.0) * _softplus_of_minus(x) - x),
    "pos_weight",
)

# the Kullback-Leibler divergence, differentiable as it stands

pointwise(
    "kl_terms",
    lambda x, t: apply("xlogy", t, t) - t * x,
    params=(*INPUT, ("target",)),
    rule="real",
    node="SubBackward0",
    forms="",
)
pointwise(
    "kl_terms_of_logs",
    lambda x, t: exp(t) * (t - x),
    params=(*INPUT, ("target",)),
    rule="real",
    node="MulBackward0",
    forms="",
)
