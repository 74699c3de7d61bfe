"""Activation functions."""

from __future__ import annotations

import warnings
from typing import Any

import rushlight
from rushlight import Tensor

__all__ = [
    "celu",
    "elu",
    "glu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "rrelu",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
]


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`input` where it is greater than `threshold`, and `value` elsewhere."""
    if inplace:
        return rushlight.threshold_(input, threshold, value)
    return rushlight.threshold(input, threshold, value)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0); its derivative is 0 at 0."""
    return rushlight.relu_(input) if inplace else rushlight.relu(input)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a · sigmoid(b), where a and b are the halves of `input` along `dim`, whose size must be even (RuntimeError)."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return rushlight._C._nn.glu(input, dim)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` clamped to [min_val, max_val]; its derivative is 0 at the bounds."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    operators = rushlight._C._nn
    return (operators.hardtanh_ if inplace else operators.hardtanh)(input, min_val, max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    return rushlight._C._nn.relu6_(input) if inplace else rushlight._C._nn.relu6(input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, and alpha · (exp(x) - 1) elsewhere."""
    return rushlight._C._nn.elu_(input, alpha) if inplace else rushlight._C._nn.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """scale · elu(x, alpha), with the two constants of "Self-normalizing neural networks", Klambauer et al. 2017."""
    return rushlight.selu_(input) if inplace else rushlight.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(x, 0) + min(0, alpha · (exp(x / alpha) - 1))."""
    return rushlight.celu_(input, alpha) if inplace else rushlight.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where x > 0, and negative_slope · x elsewhere."""
    operators = rushlight._C._nn
    return (operators.leaky_relu_ if inplace else operators.leaky_relu)(input, negative_slope)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """x where x > 0, and slope · x elsewhere: a slope drawn from [lower, upper) in training, else their mean.

    Bounds that are infinite or out of order raise RuntimeError.
    """
    return (rushlight.rrelu_ if inplace else rushlight.rrelu)(input, lower, upper, training)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def _implicit_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dimension that a softmax without `dim` runs along: 0 for 0, 1 and 3 dimensions, else 1."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(-x) / sum(exp(-x)) along `dim`, computed in `dtype` if given."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`, computed in `dtype` if given."""
    if dim is None:
        dim = _implicit_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """x - log(sum(exp(x))) along `dim`, computed in `dtype` if given."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent of `input`."""
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x / 6 + 1/2, 0), 1)."""
    return rushlight._C._nn.hardsigmoid_(input) if inplace else rushlight._C._nn.hardsigmoid(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x · sigmoid(x)."""
    return rushlight._C._nn.silu_(input) if inplace else rushlight._C._nn.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · tanh(softplus(x))."""
    return rushlight._C._nn.mish_(input) if inplace else rushlight._C._nn.mish(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · min(max(x + 3, 0), 6) / 6."""
    return rushlight._C._nn.hardswish_(input) if inplace else rushlight._C._nn.hardswish(input)
