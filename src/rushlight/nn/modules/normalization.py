"""Normalisation over layers, groups and neighbouring channels."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import Tensor

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """x / (k + alpha · mean of x² over `size` neighbouring channels)^beta, for an input (N, C, ...).

    See `functional.local_response_norm`.
    """

    size: int
    alpha: float
    beta: float
    k: float

    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """x / (k + alpha / size · sum of x² over neighbouring channels)^beta, for an input (N, C, H, W).

    The window is the odd number of channels up to `size`, around each channel and cut at the ends. As in PyTorch, the
    square of the first channel stays in the sum of every window behind it; the derivative is that of this formula.
    Other than four dimensions raise ValueError.
    """

    size: int
    alpha: float
    beta: float
    k: float

    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        reach = (self.size + 1) // 2
        channels = input.size(1)
        distance = rushlight.arange(channels) - rushlight.arange(channels).unsqueeze(1)
        # Row c of the matrix has ones at the channels whose squares are in the sum of channel c.
        window = distance.abs() < reach
        window[reach:, :1] = True
        sums = rushlight.einsum("ij,njhw->nihw", window.to(input.dtype), input.square())
        return input / (self.k + self.alpha / self.size * sums).pow(self.beta)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


def _shape(normalized_shape: Any) -> tuple[int, ...]:
    """One size or several as a tuple."""
    try:
        return (operator.index(normalized_shape),)
    except TypeError:
        return tuple(normalized_shape)


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) · weight + bias over the last dimensions of the input.

    `normalized_shape` has their sizes; `weight` and `bias` of that shape start as one and zero, and are None without
    `elementwise_affine` (`bias` also without `bias`). From "Layer normalization", Ba et al. 2016.
    """

    normalized_shape: tuple[int, ...]
    eps: float
    elementwise_affine: bool

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, present in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            tensor = rushlight.empty(self.normalized_shape, device=device, dtype=dtype) if present else None
            self.register_parameter(name, None if tensor is None else Parameter(tensor))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the affine map to the identity."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return rushlight.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def _input_shapes(self) -> tuple[tuple[Any, ...], ...]:
        return ((..., *self.normalized_shape),)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """(x - mean) / sqrt(var + eps) · weight + bias for each of `num_groups` groups of channels of an input (N, C, ...).

    `weight` and `bias` (num_channels) start as one and zero, and are None without `affine` (`bias` also without
    `bias`). Channels that `num_groups` does not divide raise ValueError. From "Group normalization", Wu and He 2018.
    """

    num_groups: int
    num_channels: int
    eps: float
    affine: bool

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, present in (("weight", affine), ("bias", affine and bias)):
            tensor = rushlight.empty(num_channels, device=device, dtype=dtype) if present else None
            self.register_parameter(name, None if tensor is None else Parameter(tensor))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the affine map to the identity."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def _input_shapes(self) -> tuple[tuple[Any, ...], ...]:
        return (("N", self.num_channels, ...),)

    def extra_repr(self) -> str:
        shown = f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"
        return f"{shown}, bias={self.bias is not None}"


class RMSNorm(Module):
    """x / sqrt(mean(x²) + eps) · weight over the last dimensions of the input.

    `normalized_shape` has their sizes; `weight` of that shape starts as one and is None without `elementwise_affine`.
    `eps` defaults to the machine epsilon of the input's dtype. From "Root mean square layer normalization", Zhang and
    Sennrich 2019.
    """

    normalized_shape: tuple[int, ...]
    eps: float | None
    elementwise_affine: bool

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(rushlight.empty(self.normalized_shape, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the scale to one."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return rushlight.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def _input_shapes(self) -> tuple[tuple[Any, ...], ...]:
        return ((..., *self.normalized_shape),)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
