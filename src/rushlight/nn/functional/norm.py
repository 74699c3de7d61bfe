"""Normalisation over batches, instances, groups, layers and neighbouring channels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import rushlight
from rushlight import Tensor

__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "local_response_norm",
    "rms_norm",
]


def _verify_batch_size(name: str, size: Sequence[int]) -> None:
    """Raise where training would normalise single numbers; `size` is (N, C, ...)."""
    if size[0] * math.prod(size[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}\nin {name}()")


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) · weight + bias for each channel of `input` (N, C, ...).

    In training mean and (biased) variance are the batch's, and move the running ones, if given, by the share
    `momentum` towards the batch's mean and unbiased variance; else they are the running ones. A single value per
    channel in training raises ValueError.
    """
    if training:
        _verify_batch_size("batch_norm", input.size())
    return rushlight.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) · weight + bias for each channel of each sample of `input` (N, C, ...).

    With `use_input_stats` mean and variance are those of the channel in the sample, and the running ones, if given,
    move towards their average over the samples; else they are the running ones. A single number per channel raises
    ValueError.
    """
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None\nin instance_norm()")
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.size()}\nin instance_norm()"
        )
    if not use_input_stats and running_mean is None:
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false\nin instance_norm()"
        )
    samples, channels = input.shape[:2]

    def repeated(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor.repeat(samples)

    # To batch_norm, the channels of all samples are the channels of one sample.
    mean, var = repeated(running_mean), repeated(running_var)
    view = input.contiguous().view(1, samples * channels, *input.shape[2:])
    result = rushlight.batch_norm(
        view, repeated(weight), repeated(bias), mean, var, use_input_stats, momentum, eps, False
    )
    if use_input_stats and samples:
        for running, moved in ((running_mean, mean), (running_var, var)):
            if running is not None and moved is not None:
                with rushlight.no_grad():
                    running.copy_(moved.view(samples, channels).mean(0))
    return result.view(input.shape)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) · weight + bias over the last dimensions, whose sizes are `normalized_shape`.

    Sizes that do not match raise RuntimeError.
    """
    return rushlight.layer_norm(input, normalized_shape, weight, bias, eps, False)


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """x / sqrt(mean(x²) + eps) · weight over the last dimensions, whose sizes are `normalized_shape`.

    `eps` defaults to the machine epsilon of the dtype. Sizes that do not match raise RuntimeError.
    """
    return rushlight.rms_norm(input, normalized_shape, weight, eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """(x - mean) / sqrt(var + eps) · weight + bias for each of `num_groups` groups of channels of `input` (N, C, ...).

    Channels that `num_groups` does not divide raise RuntimeError, a single number per group ValueError.
    """
    if input.dim() < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.dim()}\nin group_norm()"
        )
    _verify_batch_size("group_norm", [input.size(0) * input.size(1) // num_groups, num_groups, *input.shape[2:]])
    return rushlight.group_norm(input, num_groups, weight, bias, eps, False)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha · mean of x² over `size` neighbouring channels)^beta, for `input` (N, C, ...).

    The neighbours of the first and last channels are completed by zeros. Fewer than three dimensions raise
    ValueError. From "ImageNet classification with deep convolutional neural networks", Krizhevsky et al. 2012.
    """
    if input.dim() < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)\nin local_response_norm()"
        )
    if input.numel() == 0:
        return input
    # Channels become the rows of a plane with everything behind them in the columns.
    squares = input.mul(input).reshape(input.size(0), 1, input.size(1), -1)
    padded = rushlight.constant_pad_nd(squares, (0, 0, size // 2, (size - 1) // 2), 0)
    means = rushlight._C._nn.avg_pool2d(padded, (size, 1), stride=1).reshape(input.shape)
    return input / means.mul(alpha).add(k).pow(beta)
