"""Distances and similarities of vectors."""

from __future__ import annotations

import rushlight
from rushlight import Tensor

__all__ = ["cdist", "cosine_similarity", "normalize", "pairwise_distance", "pdist"]


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """``‖x1 - x2 + eps‖ₚ`` over the last dimension of the two, which broadcast."""
    result: Tensor = rushlight.linalg.vector_norm(x1 - x2 + eps, p, -1, keepdim)
    return result


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """``x1 · x2 / (max(‖x1‖, eps) max(‖x2‖, eps))`` along `dim` of the two, which broadcast to a common shape.

    Integers are a ``RuntimeError``. In the derivative the norms count as if they had not been clamped.
    """
    dtype = rushlight.promote_types(x1.dtype, x2.dtype)
    if not dtype.is_floating_point:
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {dtype}\nin cosine_similarity()"
        )
    x1, x2 = rushlight.broadcast_tensors(x1.to(dtype), x2.to(dtype))
    return (x1 / _clamped_norm(x1, dim, eps) * (x2 / _clamped_norm(x2, dim, eps))).sum(dim)


def _clamped_norm(x: Tensor, dim: int, eps: float) -> Tensor:
    # cloned: the derivative of the norm needs the norm itself, from before the clamp
    norm = rushlight.linalg.vector_norm(x, 2, dim, True).clone()
    with rushlight.no_grad():
        norm.clamp_(min=eps)
    result: Tensor = norm
    return result


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
    return _norm(difference, p)


def _norm(difference: Tensor, p: float) -> Tensor:
    """``‖difference‖ₚ`` over the last dimension, with the derivative 0 where the distance is 0."""
    if not difference.shape[-1]:
        return difference.sum(-1)
    if p == 0:  # the number of differing elements, with a derivative, which is 0
        return difference.sign().abs().sum(-1)
    result: Tensor = rushlight.linalg.vector_norm(difference, p, -1)
    return result


def _check_pdist(input: Tensor, p: float) -> None:
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    if not input.is_floating_point():
        raise RuntimeError(f"pdist only supports floating-point dtypes, got: {input.dtype}")
    if p < 0:
        raise RuntimeError(f"pdist only supports non-negative p values, got: {p}")


_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)
#: from so many rows on a product of matrices pays
_MANY_ROWS = 25


def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """The distances ``‖x1ᵢ - x2ⱼ‖ₚ`` of all rows of ``(*, P, M)`` from all rows of ``(*, R, M)``: ``(*, P, R)``.

    The leading dimensions broadcast. Euclidean distances of more than 25 rows come from ``‖a‖² + ‖b‖² - 2 a·b``, a
    product of matrices, unless `compute_mode` says otherwise; that is faster and less exact for points close together.
    Vectors, differing widths, integers and a negative `p` are a ``RuntimeError``, an unknown mode a ``ValueError``.
    """
    if compute_mode not in (*_MODES, None):
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode\nin cdist()")
    for name, x in (("X1", x1), ("X2", x2)):
        if x.dim() < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.dim()}D")
        if not x.is_floating_point():
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype}")
    if x1.dtype != x2.dtype:
        raise RuntimeError(f"expected scalar type {x1.dtype} but found {x2.dtype}\nin cdist()")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}\nin cdist()"
        )
    if p < 0:
        raise RuntimeError(f"cdist only supports non-negative p values, got {p}")
    many = x1.shape[-2] > _MANY_ROWS or x2.shape[-2] > _MANY_ROWS
    if p == 2 and (compute_mode == _MODES[1] or (many and compute_mode != _MODES[2])):
        return _euclidean(x1, x2)
    return _norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


def _euclidean(x1: Tensor, x2: Tensor) -> Tensor:
    squares = (x1 * x1).sum(-1, keepdim=True) + (x2 * x2).sum(-1).unsqueeze(-2) - 2 * (x1 @ x2.mT)
    apart = squares > 0
    # the root of 1 where two rows coincide: the root of 0 has no derivative, the distance's is 0
    return rushlight.where(apart, rushlight.where(apart, squares, 1.0).sqrt(), 0.0)
