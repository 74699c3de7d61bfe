"""Gradients of convolutions with respect to their input and their weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rushlight
from rushlight import Tensor

from . import functional as F

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _gradient(
    convolve: Callable[..., Tensor], wanted: int, input: Any, weight: Any, grad_output: Tensor, rest: Any
) -> Tensor:
    """The gradient of argument `wanted` of a convolution, which is given by its size; its numbers do not matter."""
    operands = [input, weight]
    operands[wanted] = grad_output.new_zeros(operands[wanted]).requires_grad_()
    with rushlight.enable_grad():
        output = convolve(*operands, None, *rest)
    if output.shape != grad_output.shape:
        raise RuntimeError(
            f"Expected a gradient of the shape {list(output.shape)} that the convolution's output has, but got "
            f"{list(grad_output.shape)}"
        )
    result: Tensor = rushlight.autograd.grad(output, operands[wanted], grad_output)[0]
    return result


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of the input, of shape `input_size` (N, C, L), of `functional.conv1d` for its output's."""
    return _gradient(F.conv1d, 0, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of the weight, of shape `weight_size`, of `functional.conv1d` for its output's."""
    return _gradient(F.conv1d, 1, input, weight_size, grad_output, (stride, padding, dilation, groups))


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of the input, of shape `input_size` (N, C, H, W), of `functional.conv2d` for its output's."""
    return _gradient(F.conv2d, 0, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of the weight, of shape `weight_size`, of `functional.conv2d` for its output's."""
    return _gradient(F.conv2d, 1, input, weight_size, grad_output, (stride, padding, dilation, groups))


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of the input, of shape `input_size` (N, C, D, H, W), of `functional.conv3d` for its output's."""
    return _gradient(F.conv3d, 0, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of the weight, of shape `weight_size`, of `functional.conv3d` for its output's."""
    return _gradient(F.conv3d, 1, input, weight_size, grad_output, (stride, padding, dilation, groups))
