"""Distances and similarities of vectors."""

from __future__ import annotations

import rushlight
from rushlight import Tensor

__all__ = ["cosine_similarity", "normalize", "pairwise_distance", "pdist"]


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """``‖x1 - x2 + eps‖ₚ`` over the last dimension of the two, which broadcast."""
    return rushlight.linalg.vector_norm(x1 - x2 + eps, p, -1, keepdim)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """``x1 · x2 / (max(‖x1‖, eps) max(‖x2‖, eps))`` along `dim` of the two, which broadcast to a common shape.

    Integers are a ``RuntimeError``. In the derivative the norms count as if they had not been clamped.
    """
    dtype = rushlight.promote_types(x1.dtype, x2.dtype)
    if not dtype.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {dtype}")
    x1, x2 = rushlight.broadcast_tensors(x1.to(dtype), x2.to(dtype))
    return (x1 / _clamped_norm(x1, dim, eps) * (x2 / _clamped_norm(x2, dim, eps))).sum(dim)


def _clamped_norm(x: Tensor, dim: int, eps: float) -> Tensor:
    # cloned: the derivative of the norm needs the norm itself, from before the clamp
    norm = rushlight.linalg.vector_norm(x, 2, dim, True).clone()
    with rushlight.no_grad():
        norm.clamp_(min=eps)
    return norm


def normalize(
    input: Tensor, p: float = 2.0, dim: int | tuple[int, ...] = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """``input / max(‖input‖ₚ, eps)``, the norm taken along `dim`."""
    denominator = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / denominator if out is None else rushlight.div(input, denominator, out=out)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The distances ``‖xᵢ - xⱼ‖ₚ`` of all pairs ``i < j`` of the rows of an ``(N, M)`` tensor, row by row.

    Another number of dimensions, a negative `p` and integers are a ``RuntimeError``.
    """
    _check_pdist(input, p)
    first, second = rushlight.triu_indices(input.shape[0], input.shape[0], 1)
    difference = input.index_select(0, first) - input.index_select(0, second)
    if not difference.numel():
        return difference.sum(1)
    if p == 0:  # the number of differing elements, with a derivative, which is 0
        return difference.sign().abs().sum(1)
    return rushlight.linalg.vector_norm(difference, p, 1)


def _check_pdist(input: Tensor, p: float) -> None:
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    if not input.is_floating_point():
        raise RuntimeError(f"pdist only supports floating-point dtypes, got: {input.dtype}")
    if p < 0:
        raise RuntimeError(f"pdist only supports non-negative p values, got: {p}")
