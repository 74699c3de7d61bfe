"""Distances and similarities of vectors as modules."""

from __future__ import annotations

from rushlight import Tensor

from .. import functional as F
from .module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """``‖x1 - x2 + eps‖ₚ`` over the last dimension of two tensors that broadcast."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def _operands_fit(self, shapes: list[tuple[int, ...]]) -> str:
        return "two inputs of one shape" if shapes[0] != shapes[1] else ""

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between two tensors along `dim`; `eps` is the least norm that counts."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def _operands_fit(self, shapes: list[tuple[int, ...]]) -> str:
        return "two inputs of one shape" if shapes[0] != shapes[1] else ""

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
