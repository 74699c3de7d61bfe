"""Cross entropy of a linear layer's outputs, at will without ever holding all of them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import Tensor

from ...operators.operation import Operation
from .. import _reduction
from .loss import cross_entropy

if TYPE_CHECKING:
    from ..modules.linear_cross_entropy_options import LinearCrossEntropyOptions

__all__ = ["linear_cross_entropy"]


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """:func:`cross_entropy` of ``input @ linear_weightᵀ + linear_bias``.

    `input` is ``(in,)`` or ``(N, in)``, `linear_weight` ``(C, *d, in)`` (with dimensions ``d`` the input must have
    ``N``), `linear_bias` ``(C, *d)``, `target` as for :func:`cross_entropy` of ``(N, C, *d)``; other shapes are a
    ``RuntimeError``, and so is an `ignore_index` with class probabilities. `options` asks for the logits to be made
    for a few rows at a time and again in the backward pass; where that is not possible (probabilities, label
    smoothing, dimensions ``d``) it is ignored, with a warning.
    """
    _check_shapes(input, linear_weight, linear_bias)
    if ignore_index is None:
        ignore_index = -100
    elif target.is_floating_point():
        raise RuntimeError(
            f"ignore_index cannot be specified when target contains probabilities, got {ignore_index}"
            "\nin linear_cross_entropy()"
        )
    outer = tuple(linear_weight.shape[1:-1])
    if options is not None:
        if label_smoothing == 0.0 and target.dtype == rushlight.int64 and not outer:
            return _chunked(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, options)
        warnings.warn(
            "linear_cross_entropy: options ignored; working on a few rows at a time needs label_smoothing == 0, "
            "target.dtype == int64 and out_features == (). "
            f"Got label_smoothing={label_smoothing}, target.dtype={target.dtype}, out_features={outer}.",
            stacklevel=2,
        )
    logits = input @ linear_weight.reshape(-1, linear_weight.shape[-1]).t()
    if linear_bias is not None:
        logits = logits + linear_bias.reshape(-1)
    if outer:
        logits = logits.reshape(input.shape[0], linear_weight.shape[0], *outer)
    return cross_entropy(
        logits, target, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing
    )


def _check_shapes(input: Tensor, linear_weight: Tensor, linear_bias: Tensor | None) -> None:
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}\nin linear_cross_entropy()")
    if linear_weight.dim() < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}"
            "\nin linear_cross_entropy()"
        )
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {input.shape[-1]} and {linear_weight.shape[-1]}, respectively\nin linear_cross_entropy()"
        )
    if linear_weight.dim() > 2 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {linear_weight.shape[-1]}), got unbatched input with shape {tuple(input.shape)}"
            "\nin linear_cross_entropy()"
        )
    if linear_bias is not None and linear_bias.shape != linear_weight.shape[:-1]:
        raise RuntimeError(
            f"expected linear_bias shape {tuple(linear_weight.shape[:-1])}, got {tuple(linear_bias.shape)}"
            "\nin linear_cross_entropy()"
        )


def _chunked(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    options: LinearCrossEntropyOptions,
) -> Tensor:
    mode = _reduction.get_enum(reduction)
    rows, labels = (input, target) if input.dim() == 2 else (input.unsqueeze(0), target.reshape(1))
    if labels.dim() != 1:
        raise RuntimeError(
            f"0D or 1D target tensor expected, multi-target not supported. Got {labels.dim()} dimensions."
            "\nin linear_cross_entropy()"
        )
    if labels.shape[0] != rows.shape[0]:
        raise ValueError(
            f"Expected input batch_size ({rows.shape[0]}) to match target batch_size ({labels.shape[0]})."
            "\nin linear_cross_entropy()"
        )
    size = _rows_at_a_time(rows.shape[0], linear_weight.shape[0], linear_weight.shape[1], options)
    loss: Tensor = _RowwiseLoss.apply(rows, linear_weight, linear_bias, labels, weight, ignore_index, size)
    if mode == 2:
        return loss.sum()
    if mode == 1:
        counted = labels != ignore_index
        if weight is None:
            return loss.sum() / counted.sum()
        return loss.sum() / (weight.index_select(0, labels.masked_fill(~counted, 0)) * counted).sum()
    return loss if input.dim() == 2 else loss.squeeze(0)


def _rows_at_a_time(rows: int, classes: int, features: int, options: LinearCrossEntropyOptions) -> int:
    """How many rows' logits to hold: as told, or so that they take about `ratio` times the memory of all inputs."""
    if options.batch_chunk_size is not None:
        return options.batch_chunk_size
    method = options.chunking_method
    ratio = int(method.partition(":")[2] or 2) if method else 2
    return max(1, rows * ratio * features // max(classes, 1))


class _RowwiseLoss(Operation):
    """The loss of each row. The backward pass makes the logits again, in operations that can be differentiated."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        linear_weight: Tensor,
        linear_bias: Tensor | None,
        labels: Tensor,
        weight: Tensor | None,
        ignore_index: int,
        size: int,
    ) -> Tensor:
        ctx.save_for_backward(rows, linear_weight, linear_bias, labels, weight)
        ctx.ignore_index, ctx.size = ignore_index, size
        nll = rushlight._C._nn.cross_entropy_loss
        losses = [
            nll(_logits(part, linear_weight, linear_bias), wanted, weight, 0, ignore_index, 0.0)
            for part, wanted in zip(rows.split(size), labels.split(size), strict=True)
        ]
        return rushlight.cat(losses)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, linear_weight, linear_bias, labels, weight = ctx.saved_tensors
        ignored = labels == ctx.ignore_index
        labels = labels.masked_fill(ignored, 0).unsqueeze(1)
        scale = grad.masked_fill(ignored, 0.0).unsqueeze(1)
        if weight is not None:
            scale = scale * weight[labels]
        rows_grad, weight_grad, bias_grad = [], None, None
        for part, wanted, factor in zip(
            rows.split(ctx.size), labels.split(ctx.size), scale.split(ctx.size), strict=True
        ):
            # the derivative of each row's loss by its logits: softmax, less 1 at the label
            softmax = rushlight.softmax(_logits(part, linear_weight, linear_bias), 1)
            change = (softmax.scatter_add(1, wanted, softmax.new_full(wanted.shape, -1.0))) * factor
            rows_grad.append(change @ linear_weight)
            weight_part = change.t() @ part
            weight_grad = weight_part if weight_grad is None else weight_grad + weight_part
            if linear_bias is not None:
                bias_part = change.sum(0)
                bias_grad = bias_part if bias_grad is None else bias_grad + bias_part
        return rushlight.cat(rows_grad), weight_grad, bias_grad, None, None, None, None


def _logits(rows: Tensor, linear_weight: Tensor, linear_bias: Tensor | None) -> Tensor:
    logits = rows @ linear_weight.t()
    return logits if linear_bias is None else logits + linear_bias
