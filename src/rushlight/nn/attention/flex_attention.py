"""Attention whose scores are changed by a function of their places.

PyTorch compiles the function for each pair of places. Here it gets all scores ``(B, H, L, S)`` at once, and the places
as index tensors that broadcast with them, which gives the same for every function written in tensor operations.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import rushlight
from rushlight import Tensor

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

#: (batch, head, query, key) to whether the query sees the key
_MaskFunction = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
#: (score, batch, head, query, key) to the score that counts
_ScoreFunction = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


class AuxRequest(NamedTuple):
    """What :func:`flex_attention` is to return beside the output."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for by :class:`AuxRequest`, each ``(B, H, L)`` or None."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


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


def _places(batch: int, heads: int, queries: int, keys: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Index tensors that broadcast to ``(batch, heads, queries, keys)``."""
    return (
        rushlight.arange(batch).reshape(-1, 1, 1, 1),
        rushlight.arange(heads).reshape(-1, 1, 1),
        rushlight.arange(queries).reshape(-1, 1),
        rushlight.arange(keys),
    )


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask function of all true."""
    return rushlight.ones((), dtype=rushlight.bool)


def and_masks(*mask_mods: _MaskFunction) -> _MaskFunction:
    """The mask function that is true where all of `mask_mods` are."""
    _check_callable(mask_mods)

    def both(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        result = rushlight.ones((), dtype=rushlight.bool)
        for mask in mask_mods:
            result = result & mask(b, h, q, kv)
        return result

    return both


def or_masks(*mask_mods: _MaskFunction) -> _MaskFunction:
    """The mask function that is true where one of `mask_mods` is."""
    _check_callable(mask_mods)

    def either(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        result = rushlight.zeros((), dtype=rushlight.bool)
        for mask in mask_mods:
            result = result | mask(b, h, q, kv)
        return result

    return either


def _check_callable(mask_mods: tuple[Any, ...]) -> None:
    if not all(callable(mask) for mask in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")


def create_mask(
    mod_fn: _MaskFunction | _ScoreFunction,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """The mask ``(B, H, Q_LEN, KV_LEN)`` of a mask function, or of a score function where it leaves scores finite."""
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    places = _places(*shape)
    if len(inspect.signature(mod_fn).parameters) == 5:
        return (mod_fn(rushlight.zeros(shape), *places) != -math.inf).expand(shape)  # type: ignore[call-arg]
    return mod_fn(*places).expand(shape)  # type: ignore[call-arg]


class BlockMask:
    """A mask function with the sizes that it is for, and which blocks of it are not empty."""

    def __init__(self, mask_mod: _MaskFunction, shape: tuple[int, int, int, int], block_size: tuple[int, int]) -> None:
        self.mask_mod = mask_mod
        self.shape = shape
        self.BLOCK_SIZE = block_size
        self.seq_lengths = shape[2:]

    def _mask(self) -> Tensor:
        return create_mask(self.mask_mod, *self.shape)

    def to_dense(self) -> Tensor:
        """1 for each block of ``BLOCK_SIZE`` in which a query sees a key, else 0: ``(B, H, rows, columns)``."""
        (rows, columns), (_, _, queries, keys) = self.BLOCK_SIZE, self.shape
        missing = -queries % rows, -keys % columns
        mask = rushlight.constant_pad_nd(self._mask().to(rushlight.int32), [0, missing[1], 0, missing[0]])
        blocks = mask.unflatten(3, (-1, columns)).unflatten(2, (-1, rows))
        return blocks.amax((3, 5))

    def sparsity(self) -> float:
        """The percentage of empty blocks."""
        dense = self.to_dense()
        return 100.0 * (1 - dense.sum().item() / dense.numel())

    def numel(self) -> int:
        """How many pairs of a query and a key there are."""
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, BLOCK_SIZE={self.BLOCK_SIZE})"


def create_block_mask(
    mask_mod: _MaskFunction,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = 128,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """The mask function `mask_mod` for these sizes, `B` and `H` of None being 1; the last four change nothing."""
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    return BlockMask(mask_mod, (B or 1, H or 1, Q_LEN, KV_LEN), size)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: _ScoreFunction | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention with changed scores: ``(B, H, L, E)``, ``(B, H, S, E)`` and ``(B, H, S, V)`` to ``(B, H, L, V)``.

    `score_mod` changes the scores; keys that `block_mask` hides count for nothing; a query that sees none gives 0. With
    `return_lse` the result is a pair with the logarithm of the sums of exponentials ``(B, H, L)``, with `return_aux`
    with an :class:`AuxOutput`. Other dimensions are a ``NotImplementedError``, sizes that do not fit a ``ValueError``.
    """
    _check(query, key, value, block_mask, enable_gqa)
    if enable_gqa:
        key, value = _repeated_heads(query, key, value)
    if scale is None:
        scale = 1.0 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    scores = (query * scale) @ key.transpose(-2, -1)
    batch, heads, queries, keys = scores.shape
    places = _places(batch, heads, queries, keys)
    if score_mod is not None:
        scores = score_mod(scores, *places).to(query.dtype)
    seen = scores != -math.inf
    if block_mask is not None:
        seen = seen & block_mask.mask_mod(*places)
    blind = ~seen.any(-1, keepdim=True)
    # rows that see nothing keep finite scores, for a finite derivative, and are blanked in the end
    scores = scores.masked_fill(~(seen | blind), -math.inf).masked_fill(blind, 0.0)
    output = (scores.softmax(-1) @ value).masked_fill(blind, 0.0)
    if not return_lse and return_aux is None:
        return output
    lse = scores.logsumexp(-1).masked_fill(blind.squeeze(-1), -math.inf)
    if return_aux is None:
        return output, lse
    greatest = scores.amax(-1).masked_fill(blind.squeeze(-1), -math.inf) if return_aux.max_scores else None
    return output, AuxOutput(lse if return_aux.lse else None, greatest)


def _check(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError(
            f"query, key, and value must be 4D tensors, got {query.dim()}D, {key.dim()}D and {value.dim()}D"
        )
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension "
            f"but got E={query.shape[-1]} and E={key.shape[-1]}."
        )
    if not enable_gqa and query.shape[1] != key.shape[1]:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={query.shape[1]} and Hkv={key.shape[1]}. Try setting enable_gqa=True for GQA."
        )
    if query.shape[0] != key.shape[0] and block_mask is None:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, but got "
            f"block_mask=None, Bq={query.shape[0]}, and Bkv={key.shape[0]}."
        )
    if block_mask is not None and block_mask.seq_lengths != (query.shape[-2], key.shape[-2]):
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} "
            f"but got q_len={query.shape[-2]} and kv_len={key.shape[-2]}."
        )
