"""Samples of a categorical distribution that can be differentiated."""

from __future__ import annotations

import warnings

import rushlight
from rushlight import Tensor

__all__ = ["gumbel_softmax"]


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """``softmax((logits + g) / tau)`` along `dim` with ``g`` from the Gumbel distribution (Jang et al. 2017).

    With `hard` the result is one-hot, with the derivative of the soft one. `eps` is not used.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    gumbels = -rushlight.empty_like(logits).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.argmax(dim, keepdim=True)
    one_hot = rushlight.zeros_like(soft).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
