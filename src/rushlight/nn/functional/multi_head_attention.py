"""Attention of several heads, with its projections: what :class:`rushlight.nn.MultiheadAttention` computes."""

from __future__ import annotations

import math
import warnings

import rushlight
from rushlight import Tensor

__all__ = ["multi_head_attention_forward"]


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Projects, attends with each head, joins the heads and projects again: the output and, if needed, the weights.

    `query` is ``(L, N, E)``, `key` and `value` are ``(S, N, ·)``, or all without ``N``. `key_padding_mask` ``(N, S)``
    and `attn_mask` ``(L, S)`` or ``(N · heads, L, S)`` are true where a key is left out, or numbers to add.
    `is_causal` is a hint that `attn_mask` is the causal one. `bias_k` and `bias_v` are one more key and value,
    `add_zero_attn` a key and a value of zeros; `static_k` and `static_v` ``(N · heads, S, E / heads)`` replace the
    projected ones. The weights are ``(N, L, S)``, averaged over the heads, or ``(N, heads, L, S)``. Shapes that do not
    fit are an ``AssertionError``, a two- or three-dimensional `attn_mask` of another shape a ``RuntimeError``.
    """
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        # one unsqueezed tensor where they are one, so that they are still seen to be
        first, second = query, key
        query = query.unsqueeze(1)
        key = query if second is first else key.unsqueeze(1)
        value = key if value is second else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, embed_dim = query.shape
    key_padding_mask = _canonical_mask(key_padding_mask, "key_padding_mask", attn_mask, "attn_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask.\nin multi_head_attention_forward()"
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        is_causal = False
    _require(
        embed_dim == embed_dim_to_check,
        f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}",
    )
    head_dim = embed_dim // num_heads
    _require(head_dim * num_heads == embed_dim, f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        _require(
            key.shape[:2] == value.shape[:2],
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}",
        )
        q, k, v = _in_projection(query, key, value, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias)
    else:
        _require(key.shape == value.shape, f"key shape {key.shape} does not match value shape {value.shape}")
        _require(in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        attn_mask = _head_mask(attn_mask, batch * num_heads, length, key.shape[0])
    if bias_k is not None and bias_v is not None:
        _require(static_k is None and static_v is None, "bias cannot be added to static key or value.")
        k = rushlight.cat([k, bias_k.repeat(1, batch, 1)])
        v = rushlight.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _one_more_key(attn_mask), _one_more_key(key_padding_mask)
    else:
        _require(bias_k is None and bias_v is None, "bias_k and bias_v must both be given, or neither")
    q = _heads(q, batch * num_heads, head_dim)
    k = (
        _heads(k, batch * num_heads, head_dim)
        if static_k is None
        else _static(static_k, "k", batch * num_heads, head_dim)
    )
    v = (
        _heads(v, batch * num_heads, head_dim)
        if static_v is None
        else _static(static_v, "v", batch * num_heads, head_dim)
    )
    if add_zero_attn:
        k = rushlight.cat([k, k.new_zeros(batch * num_heads, 1, head_dim)], 1)
        v = rushlight.cat([v, v.new_zeros(batch * num_heads, 1, head_dim)], 1)
        attn_mask, key_padding_mask = _one_more_key(attn_mask), _one_more_key(key_padding_mask)
    if key_padding_mask is not None:
        attn_mask = _merged_masks(attn_mask, key_padding_mask, batch, num_heads, k.shape[1])
    dropout_p = dropout_p if training else 0.0
    weights = None
    if need_weights:
        out, weights = _attend_with_weights(q, k, v, attn_mask, dropout_p)
    else:
        out = _attend(q, k, v, attn_mask, dropout_p, is_causal, batch, num_heads)
    out = out.transpose(0, 1).reshape(length, batch, embed_dim)
    out = rushlight._C._nn.linear(out, out_proj_weight, out_proj_bias)
    if weights is not None:
        weights = weights.reshape(batch, num_heads, length, k.shape[1])
        if average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            weights = weights.squeeze(0)
    return (out if batched else out.squeeze(1)), weights


def _require(condition: bool, message: str) -> None:
    """``AssertionError`` with `message` unless `condition`, with ``python -O`` too."""
    if not condition:
        raise AssertionError(f"{message}\nin multi_head_attention_forward()")


def _mha_shape_check(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, num_heads: int
) -> bool:
    """Whether the query is batched; ``AssertionError`` where the others' dimensions do not go with that."""
    if query.dim() == 3:
        kind, other, padding, masks = "batched (3-D)", 3, 2, (2, 3)
    elif query.dim() == 2:
        kind, other, padding, masks = "unbatched (2-D)", 2, 1, (2, 3)
    else:
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
            "\nin multi_head_attention_forward()"
        )
    _require(
        key.dim() == other and value.dim() == other,
        f"For {kind} `query`, expected `key` and `value` to be {other}-D but found {key.dim()}-D and {value.dim()}-D "
        "tensors respectively",
    )
    if key_padding_mask is not None:
        _require(
            key_padding_mask.dim() == padding,
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {padding}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead",
        )
    if attn_mask is not None:
        _require(
            attn_mask.dim() in masks,
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D "
            "tensor instead",
        )
        if query.dim() == 2 and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            _require(
                tuple(attn_mask.shape) == expected,
                f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}",
            )
    return query.dim() == 3


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other: Tensor | None,
    other_name: str,
    dtype: rushlight.dtype,
    check_other: bool = True,
) -> Tensor | None:
    """The mask as numbers to add: ``-inf`` where it was true. ``AssertionError`` for one of integers."""
    if mask is None:
        return None
    _require(
        mask.dtype == rushlight.bool or mask.is_floating_point(),
        f"only bool and floating types of {mask_name} are supported, got {mask.dtype}",
    )
    if check_other and other is not None and other.dtype != mask.dtype:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=3,
        )
    if mask.is_floating_point():
        return mask
    return rushlight.zeros(mask.shape, dtype=dtype).masked_fill(mask, -math.inf)


def _in_projection_packed(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The three projections by one weight ``(3E, E)``, in as few products as there are different inputs."""
    linear = rushlight._C._nn.linear
    assert weight is not None
    embed_dim = query.shape[-1]
    if key is value:
        if query is key:
            q, k, v = linear(query, weight, bias).chunk(3, -1)
            return q, k, v
        sizes = [embed_dim, 2 * embed_dim]
        w_q, w_kv = weight.split(sizes)
        b_q, b_kv = (None, None) if bias is None else bias.split(sizes)
        k, v = linear(key, w_kv, b_kv).chunk(2, -1)
        return linear(query, w_q, b_q), k, v
    w_q, w_k, w_v = weight.chunk(3)
    return _in_projection(query, key, value, w_q, w_k, w_v, bias)


def _in_projection(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    w_q: Tensor | None,
    w_k: Tensor | None,
    w_v: Tensor | None,
    bias: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The three projections by their own weights; those of key and value may take other widths."""
    linear = rushlight._C._nn.linear
    projected = []
    biases = (None, None, None) if bias is None else bias.chunk(3)
    for name, x, weight, b in zip(("query", "key", "value"), (query, key, value), (w_q, w_k, w_v), biases, strict=True):
        _require(weight is not None, f"use_separate_proj_weight is True but {name[0]}_proj_weight is None")
        assert weight is not None
        expected = (query.shape[-1], x.shape[-1])
        _require(
            tuple(weight.shape) == expected,
            f"expecting {name} weights shape of {expected}, but got {weight.shape}",
        )
        projected.append(linear(x, weight, b))
    return projected[0], projected[1], projected[2]


def _head_mask(mask: Tensor, heads: int, length: int, keys: int) -> Tensor:
    """`mask` with three dimensions; ``RuntimeError`` unless it fits ``heads`` attentions of ``(length, keys)``."""
    expected = (length, keys) if mask.dim() == 2 else (heads, length, keys)
    if tuple(mask.shape) != expected:
        raise RuntimeError(
            f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {expected}."
            "\nin multi_head_attention_forward()"
        )
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _one_more_key(mask: Tensor | None) -> Tensor | None:
    """`mask` with a last key that takes part."""
    return None if mask is None else rushlight.cat([mask, mask.new_zeros(*mask.shape[:-1], 1)], -1)


def _heads(x: Tensor, heads: int, head_dim: int) -> Tensor:
    """``(T, N, E)`` as ``(N · heads, T, E / heads)``."""
    return x.reshape(x.shape[0], heads, head_dim).transpose(0, 1)


def _static(given: Tensor, name: str, heads: int, head_dim: int) -> Tensor:
    _require(given.shape[0] == heads, f"expecting static_{name}.size(0) of {heads}, but got {given.shape[0]}")
    _require(given.shape[2] == head_dim, f"expecting static_{name}.size(2) of {head_dim}, but got {given.shape[2]}")
    return given


def _merged_masks(mask: Tensor | None, padding: Tensor, batch: int, heads: int, keys: int) -> Tensor:
    """The sum of the attention's mask and of the padding's ``(N, S)``, for all heads."""
    _require(padding.shape[0] == batch, f"Expected key_padded_mask.shape[0] to be {batch}, but got {padding.shape[0]}")
    _require(padding.shape[1] == keys, f"Expected key_padded_mask.shape[1] to be {keys}, but got {padding.shape[1]}")
    padding = padding.reshape(batch, 1, 1, keys).expand(batch, heads, 1, keys).reshape(batch * heads, 1, keys)
    return padding if mask is None else mask + padding


def _attend_with_weights(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float
) -> tuple[Tensor, Tensor]:
    scores = (q * math.sqrt(1.0 / q.shape[-1])) @ k.transpose(1, 2)
    weights = (scores if mask is None else scores + mask).softmax(-1)
    if dropout_p > 0.0:
        weights = rushlight.dropout(weights, dropout_p, True)
    return weights @ v, weights


def _attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float, is_causal: bool, batch: int, heads: int
) -> Tensor:
    if mask is not None:
        # one for all, or one for each of a batch's heads
        mask = mask.unsqueeze(0) if mask.shape[0] == 1 and mask.dim() == 3 else mask.unflatten(0, (batch, heads))
    q, k, v = (x.unflatten(0, (batch, heads)) for x in (q, k, v))
    return rushlight._C._nn.scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal).flatten(0, 1)
