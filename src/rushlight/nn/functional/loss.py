"""Losses of regression and classification. Margins and embeddings: ``margin_loss``; sequences: ``ctc``."""

from __future__ import annotations

import math
import warnings

import rushlight
from rushlight import Tensor

from ...operators.operation import every_sample
from .. import _reduction

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
]


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    """`loss` itself, its mean or its sum; ``ValueError`` for an unknown word."""
    if reduction == "none":
        return loss
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    raise ValueError(f"{reduction} is not a valid value for reduction")


def _broadcast(name: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The pair at a common shape, with a warning where that differs from one of theirs."""
    if input.shape == target.shape:
        return input, target
    warnings.warn(
        f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will "
        "likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        stacklevel=3,
    )
    try:
        broadcast: tuple[Tensor, Tensor] = tuple(rushlight.broadcast_tensors(input, target))
    except RuntimeError as error:
        raise RuntimeError(f"{error}\nin {name}()") from None
    return broadcast


def _check_weighted(input: Tensor, weight: Tensor, reduction: str) -> None:
    """`weight` must have the shape of `input`, and the reduction a known name."""
    if weight.shape != input.shape:
        raise ValueError(
            f"Weights and input must have the same size. Expected {tuple(input.shape)}, got {tuple(weight.shape)}."
        )
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


def _weighted_average(loss: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """`loss` times `weight`, reduced; the mean is over the weights, not over the elements."""
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else _reduced(loss, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Mean absolute difference, ``|input - target|``.

    `target` has the shape of `input` (another one broadcasts, with a warning); `weight` multiplies each element and
    must have the shape of `input` (``ValueError`` else), its mean being taken over the weights.
    The derivative is the sign of the difference, 0 where they agree.
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    input, target = _broadcast("l1_loss", input, target)
    if weight is None:
        return rushlight._C._nn.l1_loss(input, target, _reduction.get_enum(reduction))
    _check_weighted(input, weight, reduction)
    return _weighted_average(rushlight._C._nn.l1_loss(input, target, 0), weight, reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Mean squared difference, ``(input - target)²``; arguments as for :func:`l1_loss`."""
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    input, target = _broadcast("mse_loss", input, target)
    if weight is None:
        return rushlight._C._nn.mse_loss(input, target, _reduction.get_enum(reduction))
    _check_weighted(input, weight, reduction)
    return _weighted_average(rushlight._C._nn.mse_loss(input, target, 0), weight, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """``d²/2β`` where ``d = |input - target| < β``, else ``d - β/2``; with ``β = 0`` it is :func:`l1_loss`.

    `target` as in :func:`l1_loss`. A negative `beta` is a ``RuntimeError``.
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta. Got {beta}.")
    input, target = _broadcast("smooth_l1_loss", input, target)
    if beta == 0.0:
        return rushlight._C._nn.l1_loss(input, target, _reduction.get_enum(reduction))
    return rushlight._C._nn.smooth_l1_loss(input, target, _reduction.get_enum(reduction), beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """``d²/2`` where ``d = |input - target| < δ``, else ``δ (d - δ/2)``.

    `target` as in :func:`l1_loss`; `weight` likewise, but its mean is over the elements. ``δ ≤ 0`` is a
    ``RuntimeError``.
    """
    if delta <= 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta. Got {delta}.")
    input, target = _broadcast("huber_loss", input, target)
    if weight is None:
        return rushlight._C._nn.huber_loss(input, target, _reduction.get_enum(reduction), delta)
    _check_weighted(input, weight, reduction)
    return _reduced(rushlight._C._nn.huber_loss(input, target, 0, delta) * weight, reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Kullback-Leibler divergence ``Σ target (log target - input)``, where `input` holds log-probabilities.

    `target` broadcasts with `input`; with `log_target` it holds logarithms too. ``reduction="batchmean"`` divides the
    sum by the first dimension, which is the divergence's definition; ``"mean"`` divides by the elements, and warns.
    Integers and complex numbers are a ``RuntimeError``.
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    elif reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=2,
        )
    for operand in (input, target):
        if not operand.is_floating_point():
            kind = "Complex" if operand.is_complex() else "Integral"
            raise RuntimeError(f"kl_div: {kind} inputs not supported. Got {operand.dtype}.")
    if reduction == "batchmean":
        total = rushlight.kl_div(input, target, 2, log_target=log_target)
        return total / input.shape[0] if input.dim() else total
    return rushlight.kl_div(input, target, _reduction.get_enum(reduction), log_target=log_target)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-weight[target] · input[target]``, where `input` holds log-probabilities of shape ``(C,)`` or ``(N, C, *d)``.

    `target` (int64) has the shape of `input` without its class dimension, each in ``[0, C)`` or `ignore_index`, whose
    elements count for nothing; `weight` is ``(C,)``. The mean is over the weights of the targets that count.
    A class out of range is an ``IndexError``, differing batch sizes a ``ValueError``.
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    return rushlight._C._nn.nll_loss_nd(input, target, weight, _reduction.get_enum(reduction), ignore_index)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross entropy between the classes in `target` and the unnormalised log-probabilities in `input`.

    `input` is ``(C,)`` or ``(N, C, *d)``. `target` either holds class indices, as in :func:`nll_loss`, or has the
    shape of `input` and holds probabilities (floating point; `ignore_index` does not apply). `label_smoothing` ε in
    ``[0, 1]`` mixes the target with the uniform distribution: ``(1 - ε) target + ε / C``. `weight` is ``(C,)``. With
    ``reduction="mean"`` indices are averaged over the weights of the targets that count, probabilities over the batch.
    Its derivative is ``softmax(input) - target``, weighted.
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    if target.shape != input.shape:
        mode = _reduction.get_enum(reduction)
        return rushlight._C._nn.cross_entropy_loss(input, target, weight, mode, ignore_index, label_smoothing)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}\nin cross_entropy()")
    return _probability_cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)


def _class_weight(input: Tensor, weight: Tensor, class_dim: int) -> Tensor:
    """`weight` shaped to broadcast along the class dimension of `input`; ``RuntimeError`` unless one for each class."""
    classes = input.shape[class_dim]
    if weight.dim() != 1 or weight.numel() != classes:
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes "
            f"but got weight tensor of shape: {list(weight.shape)}"
        )
    return weight.reshape([-1 if d == class_dim else 1 for d in range(input.dim())])


def _probability_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, label_smoothing: float
) -> Tensor:
    if not target.is_floating_point():
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype}\nin cross_entropy()"
        )
    if ignore_index >= 0:
        raise RuntimeError(
            f"ignore_index is not supported for floating point target. Got {ignore_index}.\nin cross_entropy()"
        )
    class_dim = 0 if input.dim() == 1 else 1
    classes = input.shape[class_dim]
    if label_smoothing > 0.0:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    loss = rushlight.log_softmax(input, class_dim) * target
    if weight is not None:
        loss = loss * _class_weight(input, weight, class_dim)
    if reduction == "mean":
        return -loss.sum() / (input.numel() // classes if classes else 0)
    return _reduced(-loss.sum(class_dim), reduction)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-weight (target log input + (1 - target) log(1 - input))``, each logarithm at least -100.

    `input` holds probabilities (outside ``[0, 1]``: ``RuntimeError``), `target` has its shape (``ValueError`` else),
    `weight` broadcasts to it.
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    mode = _reduction.get_enum(reduction)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. Please ensure they have the same size.\nin binary_cross_entropy()"
        )
    if weight is not None:
        weight = weight.expand(rushlight.broadcast_shapes(target.shape, weight.shape))
    return rushlight._C._nn.binary_cross_entropy(input, target, weight, mode)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """:func:`binary_cross_entropy` of ``sigmoid(input)``, computed stably from the logits.

    `target` has the shape of `input` (``ValueError`` else); `weight` and `pos_weight`, which multiplies the term of the
    positive class, broadcast to it.
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    mode = _reduction.get_enum(reduction)
    if target.shape != input.shape:
        raise ValueError(
            f"Target size ({target.size()}) must be the same as input size ({input.size()})"
            "\nin binary_cross_entropy_with_logits()"
        )
    if not (input.is_floating_point() or input.is_complex()):
        raise NotImplementedError(f'"binary_cross_entropy_with_logits" not implemented for {input.dtype}')
    return rushlight.binary_cross_entropy_with_logits(input, target, weight, pos_weight, mode)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``exp(input) - target · input`` for a rate given by its logarithm, else ``input - target log(input + eps)``.

    `target` broadcasts with `input`. With `full` Stirling's ``t log t - t + log(2πt)/2`` is added where ``t > 1``.
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return _reduced(loss, reduction)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """``(log v + (input - target)² / v) / 2`` with ``v = max(var, eps)``; with `full`, plus ``log(2π) / 2``.

    `target` broadcasts with `input`. `var` is a number, or a tensor of the shape of `input`, of that shape without its
    last dimension, or of one with 1 where `input` has more. A negative one is a ``ValueError``, another shape too. The
    derivative by `var` is as if it had not been clamped.
    """
    if isinstance(var, float):
        if var < 0:
            raise ValueError(f"var has negative entry/entries: {var}\nin gaussian_nll_loss()")
        variance: Tensor = rushlight.full_like(input, var)
    elif bool(every_sample(var < 0).any()):
        raise ValueError("var has negative entry/entries\nin gaussian_nll_loss()")
    else:
        variance = (var if var.shape == input.shape else _fitted_variance(input, var)).clone()
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid for reduction\nin gaussian_nll_loss()")
    with rushlight.no_grad():
        variance.clamp_(min=eps)
    loss = 0.5 * (variance.log() + (input - target) ** 2 / variance)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, reduction)


def _fitted_variance(input: Tensor, var: Tensor) -> Tensor:
    """`var` in a shape that broadcasts to that of `input` dimension by dimension."""
    if input.shape[:-1] == var.shape:
        return var.unsqueeze(-1)
    if input.dim() == var.dim() and all(v in (n, 1) for n, v in zip(input.shape, var.shape, strict=True)):
        return var
    raise ValueError(
        f"var is of incorrect size. Got {tuple(var.shape)} for an input of {tuple(input.shape)}."
        "\nin gaussian_nll_loss()"
    )
