"""What the functions of images do with tensors of shape (..., channels, height, width)."""

from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import Tensor
from rushlight.nn import functional

__all__ = [
    "adjust_brightness",
    "adjust_contrast",
    "adjust_hue",
    "adjust_saturation",
    "get_dimensions",
    "pad",
    "resize",
    "rgb_to_grayscale",
]


def get_dimensions(img: Tensor) -> list[int]:
    """The numbers of channels, rows and columns; a tensor of two dimensions has one channel."""
    if img.ndim < 2:
        raise TypeError("Tensor is not a torch image.")
    return [img.shape[-3] if img.ndim > 2 else 1, *img.shape[-2:]]


def _greatest(img: Tensor) -> float:
    return 1.0 if img.is_floating_point() else float(rushlight.iinfo(img.dtype).max)


def _check_channels(img: Tensor, permitted: Sequence[int]) -> None:
    channels = get_dimensions(img)[0]
    if channels not in permitted:
        raise TypeError(f"Input image tensor permitted channel values are {list(permitted)}, but found {channels}")


def resize(img: Tensor, size: list[int], mode: str, antialias: bool) -> Tensor:
    """Resizes to ``[height, width]``; integers are computed in float32 and rounded."""
    if mode not in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        raise ValueError("This interpolation mode is unsupported with Tensor input")
    smooth = mode in ("bilinear", "bicubic")
    batch = img.reshape(-1, *img.shape[-3:]) if img.ndim > 2 else img[None, None]
    if img.dtype not in (rushlight.float32, rushlight.float64):
        batch = batch.to(rushlight.float32)
    if smooth:
        batch = functional.interpolate(batch, size=size, mode=mode, align_corners=False, antialias=antialias)
    else:
        batch = functional.interpolate(batch, size=size, mode=mode)
    if mode == "bicubic" and img.dtype == rushlight.uint8:
        batch = batch.clamp(0, 255)
    if batch.dtype != img.dtype:
        batch = (batch if img.is_floating_point() else batch.round()).to(img.dtype)
    return batch.reshape(*img.shape[:-2], *size)


def pad(img: Tensor, edges: tuple[int, int, int, int], fill: Any, mode: str) -> Tensor:
    """Adds pixels at (left, top, right, bottom); negative numbers cut them off."""
    left, top, right, bottom = edges
    if mode == "symmetric":
        rows = _mirrored(img.shape[-2], top, bottom)
        columns = _mirrored(img.shape[-1], left, right)
        return img[..., rows, :][..., columns]
    sides = [left, right, top, bottom]
    if mode == "constant":
        value = float(fill[0] if isinstance(fill, (tuple, list)) else fill or 0)
        return functional.pad(img, sides, value=value)
    batch = img.reshape(-1, *img.shape[-3:]) if img.ndim > 2 else img[None, None]
    if not img.is_floating_point():
        batch = batch.to(rushlight.float32)
    batch = functional.pad(batch, sides, mode="replicate" if mode == "edge" else mode).to(img.dtype)
    return batch.reshape(*img.shape[:-2], *batch.shape[-2:])


def _mirrored(size: int, before: int, after: int) -> Tensor:
    """The indices of a dimension that is mirrored at its ends, its first and last number repeated."""
    period = rushlight.arange(-before, size + after).remainder(2 * size)
    return rushlight.where(period < size, period, 2 * size - 1 - period)


def rgb_to_grayscale(img: Tensor, num_output_channels: int = 1) -> Tensor:
    """The brightness of each pixel, in one channel or three equal ones."""
    if img.ndim < 3:
        raise TypeError(f"Input image tensor should have at least 3 dimensions, but found {img.ndim}")
    _check_channels(img, (1, 3))
    grey = img
    if img.shape[-3] == 3:
        r, g, b = img.unbind(dim=-3)
        grey = (0.2989 * r + 0.587 * g + 0.114 * b).to(img.dtype).unsqueeze(-3)
    return grey.expand(*img.shape[:-3], num_output_channels, *img.shape[-2:]).clone()


def _blend(img: Tensor, other: Tensor, factor: float) -> Tensor:
    return (factor * img + (1.0 - factor) * other).clamp(0, _greatest(img)).to(img.dtype)


def _check_factor(name: str, factor: float) -> None:
    if factor < 0:
        raise ValueError(f"{name} ({factor}) is not non-negative.")


def adjust_brightness(img: Tensor, factor: float) -> Tensor:
    """Multiplies the colours."""
    _check_factor("brightness_factor", factor)
    _check_channels(img, (1, 3))
    return _blend(img, rushlight.zeros_like(img), factor)


def adjust_contrast(img: Tensor, factor: float) -> Tensor:
    """Moves the colours from the mean brightness."""
    _check_factor("contrast_factor", factor)
    _check_channels(img, (1, 3))
    grey = rgb_to_grayscale(img) if img.shape[-3] == 3 else img
    if not img.is_floating_point():
        grey = grey.to(rushlight.float32)
    return _blend(img, grey.mean(dim=(-3, -2, -1), keepdim=True), factor)


def adjust_saturation(img: Tensor, factor: float) -> Tensor:
    """Moves the colours from their brightness."""
    _check_factor("saturation_factor", factor)
    _check_channels(img, (1, 3))
    return img if img.shape[-3] == 1 else _blend(img, rgb_to_grayscale(img), factor)


def adjust_hue(img: Tensor, factor: float) -> Tensor:
    """Turns the circle of hues by a part of a turn."""
    _check_channels(img, (1, 3))
    if img.shape[-3] == 1:
        return img
    colours = img if img.is_floating_point() else img.to(rushlight.float32) / _greatest(img)
    hue, saturation, value = _hue_saturation_value(colours)
    colours = _colours((hue + factor) % 1.0, saturation, value)
    if img.is_floating_point():
        return colours
    return (colours * (_greatest(img) + 1.0 - 1e-3)).to(img.dtype)


def _hue_saturation_value(img: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue in turns, saturation and value of colours from 0 to 1."""
    r, g, b = img.unbind(dim=-3)
    high, low = img.amax(dim=-3), img.amin(dim=-3)
    grey = high == low
    spread = high - low
    saturation = spread / rushlight.where(grey, rushlight.ones_like(high), high)
    divisor = rushlight.where(grey, rushlight.ones_like(high), spread)
    from_red, from_green, from_blue = (high - r) / divisor, (high - g) / divisor, (high - b) / divisor
    sector = rushlight.where(
        high == r,
        from_blue - from_green,
        rushlight.where(high == g, 2.0 + from_red - from_blue, 4.0 + from_green - from_red),
    )
    return (sector / 6.0 + 1.0) % 1.0, saturation, high


def _colours(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """The colours of hue, saturation and value: each channel falls off with the distance of its own hue."""
    channels = []
    for offset in (5.0, 3.0, 1.0):
        k = (offset + hue * 6.0) % 6.0
        depth = rushlight.minimum(k, 4.0 - k).clamp(0.0, 1.0)
        channels.append(value - value * saturation * depth)
    return rushlight.stack(channels, dim=-3)
