"""Batch norms in evaluation mode merged into the layers before them."""

from __future__ import annotations

import copy
from typing import TypeVar

import rushlight
from rushlight import Tensor

from ..modules.module import Module
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]

_M = TypeVar("_M", bound=Module)


def _check_evaluation(layer: Module, bn: Module) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: _M, bn: Module, transpose: bool = False) -> _M:
    """A copy of a convolution that computes what `conv` and the batch norm `bn` after it do, both in evaluation mode.

    `transpose` tells that the convolution is a transposed one. Training mode is an ``AssertionError``.
    """
    _check_evaluation(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_eval(linear: _M, bn: Module) -> _M:
    """A copy of `linear` that computes what it and the batch norm `bn` after it do, both in evaluation mode."""
    _check_evaluation(linear, bn)
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, "
            f"got linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        linear.weight, linear.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution merged with a batch norm's weight, bias and running statistics."""
    output_dim = 1 if transpose else 0
    shape = [-1 if d == output_dim else 1 for d in range(conv_w.dim())]
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear layer merged with a batch norm's weight, bias and running statistics."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _fused(
    weight: Tensor,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    eps: float,
    gain: Tensor | None,
    shift: Tensor | None,
    shape: list[int],
) -> tuple[Parameter, Parameter]:
    """``w g / sqrt(var + eps)`` and ``(b - mean) g / sqrt(var + eps) + shift``, ``g`` in `shape` along the outputs."""
    with rushlight.no_grad():
        if bias is None:
            bias = rushlight.zeros_like(mean)
        factor = (var + eps).rsqrt()
        if gain is not None:
            factor = factor * gain
        fused_weight = (weight * factor.reshape(shape)).to(weight.dtype)
        fused_bias = (bias - mean) * factor
        if shift is not None:
            fused_bias = fused_bias + shift
        fused_bias = fused_bias.to(bias.dtype)
    return Parameter(fused_weight, weight.requires_grad), Parameter(fused_bias, bias.requires_grad)
