"""Initial values of parameters: every function fills a tensor in place, outside of any graph, and returns it.

For the same seed the random numbers are PyTorch's: each function makes the same draws in the same order.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight._offer import offer

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

_GAINS = {
    "linear": 1,
    "conv1d": 1,
    "conv2d": 1,
    "conv3d": 1,
    "conv_transpose1d": 1,
    "conv_transpose2d": 1,
    "conv_transpose3d": 1,
    "sigmoid": 1,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights before `nonlinearity` are scaled to keep the variance of activations.

    `param` is the negative slope of "leaky_relu" (0.01 by default), whose gain is sqrt(2 / (1 + slope²)). An unknown
    name or a slope that is no number raises ValueError.
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill `tensor` with numbers drawn uniformly from [a, b)."""
    with rushlight.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill `tensor` with numbers drawn from the normal distribution of `mean` and `std`."""
    with rushlight.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Fill `tensor` with numbers drawn from the normal distribution of `mean` and `std` cut off outside [a, b].

    Draws that fall outside are made again. Where [a, b] has at most 0.3 of the probability, the draws are uniform in
    it and kept with the density's ratio to its peak there (rejection sampling, von Neumann 1951).
    """
    low, high = (a - mean) / std, (b - mean) / std
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            stacklevel=2,
        )
    probability = (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2))) / 2
    with rushlight.no_grad():
        if probability > 0.3:
            return _redraw_outside(tensor, mean, std, a, b, generator)
        return _thin_uniform(tensor, mean, std, a, b, generator)


def _redraw_outside(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> Tensor:
    tensor.normal_(mean, std, generator=generator)
    while True:
        outside = (tensor < a) | (tensor > b)
        if not outside.any():
            return tensor
        again = rushlight.empty_like(tensor).normal_(mean, std, generator=generator)
        tensor.copy_(rushlight.where(outside, again, tensor))


def _thin_uniform(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> Tensor:
    peak = (min(max(mean, a), b) - mean) / std
    open_places = rushlight.ones_like(tensor, dtype=rushlight.bool)
    while True:
        drawn = rushlight.empty_like(tensor).uniform_(a, b, generator=generator)
        level = rushlight.empty_like(tensor).uniform_(generator=generator)
        kept = level <= ((peak**2 - ((drawn - mean) / std) ** 2) / 2).exp()
        tensor.copy_(rushlight.where(open_places & kept, drawn, tensor))
        open_places &= ~kept
        if not open_places.any():
            return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill `tensor` with `val`."""
    with rushlight.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill `tensor` with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill `tensor` with zeros."""
    with rushlight.no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Make the matrix `tensor` the identity: ones on the diagonal, zeros elsewhere.

    Other than two dimensions raise ValueError.
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with rushlight.no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Make the weight `tensor` of a convolution pass its input channels on, as many as it can in each group.

    Shapes other than those of 1-d to 3-d convolutions, and a first size that `groups` does not divide, raise
    ValueError.
    """
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    out_channels, in_channels, *kernel = tensor.size()
    if out_channels % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = out_channels // groups
    centre = tuple(size // 2 for size in kernel)
    with rushlight.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, in_channels)):
                tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """The number of inputs of one output unit, and of outputs of one input unit, of the weight `tensor`."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    out_features, in_features, *kernel = tensor.shape
    field = math.prod(kernel)
    return in_features * field, out_features * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """Fan in or fan out of `tensor`, as `mode` says; ValueError for another mode."""
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill the weight `tensor` uniformly from [-a, a) with a = gain · sqrt(6 / (fan_in + fan_out)).

    Fewer than two dimensions raise ValueError. From "Understanding the difficulty of training deep feedforward neural
    networks", Glorot and Bengio 2010.
    """
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill the weight `tensor` normally with mean 0 and std = gain · sqrt(2 / (fan_in + fan_out)).

    Fewer than two dimensions raise ValueError. From "Understanding the difficulty of training deep feedforward neural
    networks", Glorot and Bengio 2010.
    """
    std = gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    return normal_(tensor, 0.0, std, generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """The standard deviation that keeps the variance through `nonlinearity`, None for a tensor without numbers."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill the weight `tensor` uniformly from [-b, b) with b = gain · sqrt(3 / fan).

    `a` is the negative slope of "leaky_relu", `mode` chooses "fan_in" or "fan_out". Fewer than two dimensions, another
    mode or nonlinearity raise ValueError. From "Delving deep into rectifiers", He et al. 2015.
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill the weight `tensor` normally with mean 0 and std = gain / sqrt(fan).

    `a` is the negative slope of "leaky_relu", `mode` chooses "fan_in" or "fan_out". Fewer than two dimensions, another
    mode or nonlinearity raise ValueError. From "Delving deep into rectifiers", He et al. 2015.
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Make `tensor`, seen as a matrix of its first dimension by the rest, (semi-)orthogonal, times `gain`.

    The orthogonal factor of a random normal matrix, with the signs that make it uniformly distributed (Mezzadri 2007).
    Fewer than two dimensions raise ValueError.
    """
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    with rushlight.no_grad():
        drawn = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
        q, r = rushlight.linalg.qr(drawn.t() if rows < columns else drawn)
        q = q * r.diagonal().sign()
        tensor.view_as(drawn).copy_(q.t() if rows < columns else q)
        return tensor.mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill the matrix `tensor` normally with mean 0 and `std`, and the share `sparsity` of each column with zeros.

    Other than two dimensions raise ValueError. From "Deep learning via Hessian-free optimization", Martens 2010.
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with rushlight.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            # As in PyTorch, the places of the zeros do not come from `generator`.
            tensor[rushlight.randperm(rows)[:zeros], column] = 0
    return tensor


def _deprecated(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The old name, without an underscore, of an in-place `function`."""
    new = function.__name__
    old = new.removesuffix("_")

    @functools.wraps(function)
    def alias(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    alias.__name__ = alias.__qualname__ = old
    alias.__doc__ = f"The deprecated name of `{new}`."
    return alias


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)


offer(__name__, (__name__,))
