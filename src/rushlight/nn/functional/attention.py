"""Scaled dot product attention."""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt

import rushlight
from rushlight import Tensor

__all__ = ["scaled_dot_product_attention"]


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``softmax(scale query keyᵀ + mask) value``: ``(..., L, E)``, ``(..., S, E)``, ``(..., S, V)`` to ``(..., L, V)``.

    `scale` is ``1/sqrt(E)`` by default. `attn_mask` broadcasts to ``(..., L, S)``: true where a position takes part,
    or numbers to add; `is_causal` lets position ``i`` see the keys up to ``i``, and excludes a mask. A row that sees
    no key is 0. `dropout_p` drops weights (always, not only in training). With `enable_gqa` the heads, dimension -3,
    of `key` and `value` are each used by several of `query`, whose number they divide. Fewer than two dimensions,
    differing dtypes, and a mask of integers are a ``RuntimeError``.
    """
    _check_operands(query, key, value, attn_mask, is_causal)
    if enable_gqa:
        key, value = _repeated_heads(query, key, value)
    if scale is None:
        scale = 1.0 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    scores = (query * scale) @ key.transpose(-2, -1)
    blind = None
    if is_causal:
        scores = scores.masked_fill(rushlight.from_numpy(_future(*scores.shape[-2:])), -math.inf)
    elif attn_mask is not None:
        shape = scores.shape
        scores, blind = _masked(scores, attn_mask)
        if scores.shape != shape:
            raise RuntimeError(
                f"output with shape {list(shape)} doesn't match the broadcast shape {list(scores.shape)} "
                f"of an attn_mask of {list(attn_mask.shape)}"
            )
    weights = scores.softmax(-1)
    if dropout_p > 0.0:
        weights = rushlight.dropout(weights, dropout_p, True)
    attended = weights @ value
    return attended if blind is None else attended.masked_fill(blind, 0.0)


def _check_operands(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool) -> None:
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"scaled_dot_product_attention(): argument '{name}' must be Tensor, not {type(tensor).__name__}"
            )
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got "
            f"query.dtype: {query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."
        )
    if query.dim() < 2 or key.dim() < 2 or value.dim() < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got "
            f"query.dim: {query.dim()} key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )
    if attn_mask is None:
        return
    if is_causal:
        raise RuntimeError("scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if attn_mask.dtype not in (rushlight.bool, rushlight.float32, query.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {attn_mask.dtype} and  query.dtype: {query.dtype} instead."
        )
    if attn_mask.dim() < 2:
        raise IndexError(
            f"Dimension out of range (expected an attn_mask with 2 or more dimensions, but got {attn_mask.dim()})"
        )


def _repeated_heads(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """`key` and `value` with each head as often as `query` has heads that share it."""
    heads = query.size(-3)
    repeated = []
    for shared in (key, value):
        if not shared.size(-3) or heads % shared.size(-3):
            raise RuntimeError(
                "Number of heads in key and value must divide the number of heads in query, "
                f"got {key.size(-3)} and {value.size(-3)} for {heads}"
            )
        times = heads // shared.size(-3)
        repeated.append(shared if times == 1 else shared.repeat_interleave(times, -3))
    return repeated[0], repeated[1]


@functools.lru_cache(maxsize=4)
def _future(length: int, keys: int) -> npt.NDArray[np.bool_]:
    """True above the diagonal: the keys that come after each position."""
    return np.triu(np.ones((length, keys), np.bool_), 1)


def _masked(scores: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The scores under a mask, and which rows see no key; these keep their scores, for a finite derivative."""
    if mask.dtype == rushlight.bool:
        blind = ~mask.any(-1, keepdim=True)
        return scores.masked_fill(~(mask | blind), -math.inf), blind
    blind = (mask == -math.inf).all(-1, keepdim=True)
    return scores + mask.masked_fill(blind, 0.0).to(scores.dtype), blind
