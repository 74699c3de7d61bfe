"""Losses that compare scores or distances by a margin."""

from __future__ import annotations

from collections.abc import Callable

import rushlight
from rushlight import Tensor

from ...operators.operation import every_sample
from .. import _reduction
from .distance import pairwise_distance
from .loss import _reduced

__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``log(1 + exp(-target · input))`` for targets of 1 and -1, which must broadcast to the shape of `input`."""
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    loss = (-target * input).exp().log1p()
    if loss.shape != input.shape:
        raise RuntimeError(
            f"output with shape {list(input.shape)} doesn't match the broadcast shape {list(loss.shape)}"
            "\nin soft_margin_loss()"
        )
    if not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(
            f"result type {loss.dtype} can't be cast to the desired output type {input.dtype}\nin soft_margin_loss()"
        )
    return _reduced(loss.to(input.dtype), reduction)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`input` where `target` is 1, ``max(0, margin - input)`` where it is -1, the sum of both for other targets."""
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    near = rushlight.where(target != -1, input, 0)
    far = rushlight.where(target != 1, (margin - input).clamp_min(0), 0)
    return _reduced(near + far, reduction)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, -target (input1 - input2) + margin)``; the three broadcast, with as many dimensions each."""
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return _reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``Σⱼ max(0, margin - x[y] + x[j])ᵖ weight[y] / C`` over the classes ``j ≠ y``, with `p` 1 or 2.

    `input` is ``(C,)`` or ``(N, C)``, `target` (int64) ``()`` or ``(N,)`` in ``[0, C)``, `weight` ``(C,)``.
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    _reduction.get_enum(reduction)
    if p not in (1, 2):
        raise ValueError(f"only p == 1 and p == 2 supported. Got {p}.\nin multi_margin_loss()")
    rows, labels = _multi_margin_rows(input, target)
    classes = rows.shape[1]
    if weight is not None and weight.dim() != 1:
        raise ValueError(f"weight must be one-dimensional. Got {weight.dim()} dimensions.\nin multi_margin_loss()")
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(
            f"inconsistent weight size, expected {classes} but got {list(weight.shape)}\nin multi_margin_loss()"
        )
    # relu, not clamp: at the margin itself the derivative is 0
    excess = rushlight.relu(margin - rows.gather(1, labels) + rows)
    if p == 2:
        excess = excess * excess
    if weight is not None:
        excess = excess * weight.index_select(0, labels.reshape(-1)).unsqueeze(1)
    excess = excess.masked_fill(rushlight.arange(classes) == labels, 0)
    return _reduced((excess.sum(1) / classes).reshape(target.shape), reduction)


def _multi_margin_rows(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """`input` as ``(N, C)`` and `target` as a column ``(N, 1)``, both checked."""
    _check_vector_or_matrix("multi_margin_loss", input)
    rows = input if input.dim() == 2 else input.reshape(1, -1)
    if target.dim() > 1 or target.numel() != rows.shape[0]:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples "
            f"(batch size). Expected target size [{rows.shape[0]}], but got {list(target.shape)}. "
            f"Input has shape {list(input.shape)}."
        )
    if target.dtype != rushlight.int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype}\nin multi_margin_loss()")
    if target.numel() and not bool(every_sample((target >= 0) & (target < rows.shape[1])).all()):
        raise RuntimeError(f"target out of range: expected classes in [0, {rows.shape[1]})\nin multi_margin_loss()")
    return rows, target.reshape(-1, 1)


def _check_vector_or_matrix(name: str, input: Tensor) -> None:
    if input.dim() > 2 or (input.dim() and input.shape[-1] == 0):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
            f"\nin {name}()"
        )
    if not input.is_floating_point():
        raise NotImplementedError(f'"{name}" not implemented for {input.dtype}')


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``Σ max(0, 1 - (x[y] - x[j])) / C`` over a sample's labels ``y`` and all classes ``j`` that are none of them.

    `input` is ``(C,)`` or ``(N, C)``; `target` (int64) has its shape and lists labels, ended by the first -1.
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    _reduction.get_enum(reduction)
    _check_vector_or_matrix("multilabel_margin_loss", input)
    if target.shape != input.shape:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
            "\nin multilabel_margin_loss()"
        )
    if target.dtype != rushlight.int64:
        raise RuntimeError(
            f"argument #2 'target' must hold int64 labels, found {target.dtype}\nin multilabel_margin_loss()"
        )
    rows = input if input.dim() == 2 else input.reshape(1, -1)
    labels = target.reshape(rows.shape)
    count, classes = rows.shape
    if labels.numel() and not bool(every_sample((labels >= -1) & (labels < classes)).all()):
        raise RuntimeError(
            f"argument #2 'target' is out of range: expected labels in [-1, {classes})\nin multilabel_margin_loss()"
        )
    listed = (labels >= 0).to(rushlight.int64).cumprod(1)
    labels = labels.clamp(min=0)
    other = rushlight.zeros(count, classes, dtype=rushlight.int64).scatter_add(1, labels, listed) == 0
    excess = rushlight.relu(1 - rows.gather(1, labels).unsqueeze(2) + rows.unsqueeze(1))
    excess = excess.masked_fill(~((listed != 0).unsqueeze(2) & other.unsqueeze(1)), 0)
    return _reduced((excess.sum((1, 2)) / classes).reshape(input.shape[:-1]), reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-(t log sigmoid(x) + (1 - t) log sigmoid(-x))``, times `weight`, averaged over the classes (last)."""
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid for reduction\nin multilabel_soft_margin_loss()")
    log_sigmoid = rushlight._C._nn.log_sigmoid
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return _reduced(loss.sum(-1) / input.size(-1), reduction)


_COSINE_EPSILON = 1e-12


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``1 - cos(input1, input2)`` where `target` is 1, ``max(0, cos(input1, input2) - margin)`` where it is -1.

    Inputs are ``(D,)`` with a target of shape ``()``, or ``(N, D)`` with ``(N,)``; others are a ``RuntimeError``.
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    dim = target.dim()
    if dim > 1:
        raise RuntimeError(
            f"0D or 1D target tensor expected, multi-target not supported. Got {dim} dimensions."
            "\nin cosine_embedding_loss()"
        )
    if input1.dim() != dim + 1 or input2.dim() != dim + 1:
        raise RuntimeError(
            f"{dim}D target tensor expects {dim + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}.\nin cosine_embedding_loss()"
        )
    square1 = (input1 * input1).sum(dim) + _COSINE_EPSILON
    square2 = (input2 * input2).sum(dim) + _COSINE_EPSILON
    cosine = (input1 * input2).sum(dim) / (square1 * square2).sqrt()
    alike = rushlight.where(target == 1, 1 - cosine, 0)
    unlike = rushlight.where(target == -1, (cosine - margin).clamp_min(0), 0)
    return _reduced(alike + unlike, reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` with :func:`pairwise_distance` of norm `p`.

    With `swap` the negative's distance is the lesser of those to the anchor and to the positive (Balntas et al. 2016,
    *Learning shallow convolutional feature descriptors with triplet losses*).
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    return _triplet(anchor, positive, negative, distance, margin, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """:func:`triplet_margin_loss` with any distance of two tensors (by default :func:`pairwise_distance`)."""
    return _triplet(anchor, positive, negative, distance_function or pairwise_distance, margin, swap, reduction)


def _triplet(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    _reduction.get_enum(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}\nin triplet_margin_loss()")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
            "\nin triplet_margin_loss()"
        )
    near = distance(anchor, positive)
    far = distance(anchor, negative)
    if swap:
        far = rushlight.min(far, distance(positive, negative))
    return _reduced((near - far + margin).clamp_min(0), reduction)
