"""Elements moved between channels and space."""

from __future__ import annotations

from rushlight import Tensor

__all__ = ["channel_shuffle", "native_channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """``(..., C r², H, W)`` to ``(..., C, H r, W r)``: each group of ``r²`` channels becomes a square of elements.

    Fewer than three dimensions, a factor that is not positive or does not divide are a ``RuntimeError``.
    """
    r = _checked_factor(input, upscale_factor, "pixel_shuffle", "upscale_factor")
    *batch, channels, height, width = input.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    squares = input.reshape(*batch, channels // (r * r), r, r, height, width)
    n = len(batch)
    moved = squares.permute(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return moved.reshape(*batch, channels // (r * r), height * r, width * r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """The reverse of :func:`pixel_shuffle`: ``(..., C, H r, W r)`` to ``(..., C r², H, W)``."""
    r = _checked_factor(input, downscale_factor, "pixel_unshuffle", "downscale_factor")
    *batch, channels, height, width = input.shape
    for name, size, dim in (("height", height, -2), ("width", width, -1)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, "
                f"but input.size({dim})={size} is not divisible by {r}"
            )
    squares = input.reshape(*batch, channels, height // r, r, width // r, r)
    n = len(batch)
    moved = squares.permute(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return moved.reshape(*batch, channels * r * r, height // r, width // r)


def _checked_factor(input: Tensor, factor: int, function: str, name: str) -> int:
    if not isinstance(factor, int):
        raise TypeError(f"{function}(): argument '{name}' (position 2) must be int, not {type(factor).__name__}")
    if input.dim() < 3:
        raise RuntimeError(
            f"{function} expects input to have at least 3 dimensions, but got input with {input.dim()} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{function} expects a positive {name}, but got {factor}")
    return factor


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of ``(N, C, *)`` dealt out anew: one from each of `groups` groups in turn.

    See Zhang et al. 2018, *ShuffleNet*.
    Fewer than three dimensions, and groups that do not divide the channels, are a ``RuntimeError``.
    """
    if input.dim() <= 2:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    channels = input.shape[1]
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    return input.unflatten(1, (groups, channels // groups)).transpose(1, 2).flatten(1, 2)


native_channel_shuffle = channel_shuffle
