"""Gradients kept within bounds."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import rushlight
from rushlight import Tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

_Tensors = Tensor | Iterable[Tensor]


def _gradients(parameters: _Tensors) -> list[Tensor]:
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    return [p.grad for p in parameters if p.grad is not None]


def get_total_norm(
    tensors: _Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all numbers of `tensors` together, a tensor without dimensions; 0 for none.

    `norm_type` is as for :func:`rushlight.linalg.vector_norm`; with `error_if_nonfinite` a NaN or infinity is a
    ``RuntimeError``. `foreach` is accepted and changes nothing.
    """
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not listed:
        return rushlight.tensor(0.0)
    norm_type = float(norm_type)
    norms = rushlight._foreach_norm(listed, norm_type)
    total: Tensor = norms[0] if len(norms) == 1 else rushlight._foreach_norm([rushlight.stack(norms)], norm_type)[0]
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, "
            "set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: _Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Multiplies the gradients of `parameters` by ``max_norm / (total_norm + 1e-6)`` where that is below 1."""
    gradients = _gradients(parameters)
    if not gradients:
        return
    with rushlight.no_grad():
        # multiplied in any case: to look at the factor first would cost more than the product
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        rushlight._foreach_mul_(gradients, factor)


def clip_grad_norm_(
    parameters: _Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales the gradients of `parameters` in place so that their norm together is at most `max_norm`; the norm before.

    Arguments as for :func:`get_total_norm`; parameters without a gradient do not take part.
    """
    if not isinstance(parameters, Tensor):
        is_iterator = not hasattr(parameters, "__len__")
        parameters = list(parameters)
        if is_iterator and not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    with rushlight.no_grad():
        total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: _Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The old name of :func:`clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: _Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clamps the gradients of `parameters` in place to ``[-clip_value, clip_value]``."""
    bound = float(clip_value)
    with rushlight.no_grad():
        for gradient in _gradients(parameters):
            gradient.clamp_(-bound, bound)
