"""Convolution of sequences with time first; the others are operators of the core."""

from __future__ import annotations

import rushlight
from rushlight import Tensor

__all__ = ["conv_tbc"]


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """1-d convolution of `input` (time, batch, in) with `weight` (width, in, out) and `bias` (out).

    Channels that do not match raise RuntimeError.
    """
    if input.dim() != 3 or weight.dim() != 3 or bias.dim() != 1:
        raise RuntimeError(
            "conv_tbc: expected input, weight and bias of 3, 3 and 1 dimensions, but got "
            f"{input.dim()}, {weight.dim()} and {bias.dim()}"
        )
    if input.size(2) != weight.size(1):
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor\nin conv_tbc()")
    if weight.size(2) != bias.size(0):
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).\nin conv_tbc()")
    return rushlight.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)
