"""PyTorch's operators that take words by their numbers: losses a reduction, 0 none, 1 mean, 2 sum.

``torch.ctc_loss`` and the others are what ``nn.functional`` calls by the words. They are here for programs that use
them directly.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight import Tensor

from . import ctc, grid, loss, margin_loss

__all__ = [
    "cosine_embedding_loss",
    "ctc_loss",
    "grid_sampler",
    "grid_sampler_2d",
    "grid_sampler_3d",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "poisson_nll_loss",
    "triplet_margin_loss",
]

_WORDS = ("none", "mean", "sum")


def _word(reduction: int) -> str:
    if reduction not in (0, 1, 2):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _WORDS[reduction]


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Tensor:
    """:func:`rushlight.nn.functional.ctc_loss`."""
    return ctc.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _word(reduction), zero_infinity)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """:func:`rushlight.nn.functional.cosine_embedding_loss`."""
    return margin_loss.cosine_embedding_loss(input1, input2, target, margin, reduction=_word(reduction))


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1) -> Tensor:
    """:func:`rushlight.nn.functional.hinge_embedding_loss`."""
    return margin_loss.hinge_embedding_loss(input, target, margin, reduction=_word(reduction))


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """:func:`rushlight.nn.functional.margin_ranking_loss`."""
    return margin_loss.margin_ranking_loss(input1, input2, target, margin, reduction=_word(reduction))


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Tensor:
    """:func:`rushlight.nn.functional.triplet_margin_loss`."""
    return margin_loss.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=_word(reduction))


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """:func:`rushlight.nn.functional.poisson_nll_loss`."""
    return loss.poisson_nll_loss(input, target, log_input, full, None, eps, None, _word(reduction))


_INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def grid_sampler(
    input: Tensor, grid_: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """``grid_sample`` with ``interpolation_mode`` 0 bilinear, 1 nearest, 2 bicubic, and ``padding_mode`` 0 zeros, 1
    border, 2 reflection."""
    if interpolation_mode not in (0, 1, 2) or padding_mode not in (0, 1, 2):
        raise ValueError(
            f"grid_sampler(): expected modes from 0 to 2, but got interpolation_mode={interpolation_mode} and "
            f"padding_mode={padding_mode}"
        )
    mode, padding = _INTERPOLATIONS[interpolation_mode], _PADDINGS[padding_mode]
    return grid.grid_sample(input, grid_, mode, padding, align_corners)


grid_sampler_2d = grid_sampler
grid_sampler_3d = grid_sampler
