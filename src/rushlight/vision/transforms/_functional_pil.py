"""What the functions of images do with PIL images."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = [
    "adjust_brightness",
    "adjust_contrast",
    "adjust_hue",
    "adjust_saturation",
    "crop",
    "get_dimensions",
    "hflip",
    "pad",
    "resize",
    "to_grayscale",
    "vflip",
]

_FILTERS = {
    "nearest": "NEAREST",
    "nearest-exact": "NEAREST",
    "bilinear": "BILINEAR",
    "bicubic": "BICUBIC",
    "box": "BOX",
    "hamming": "HAMMING",
    "lanczos": "LANCZOS",
}


def checked(img: Any) -> "Image":
    """The image itself.

    Raises:
        TypeError: it is no PIL image.
    """
    from PIL import Image

    if not isinstance(img, Image.Image):
        raise TypeError(f"img should be PIL Image or Tensor. Got {type(img)}")
    return img


def get_dimensions(img: Any) -> list[int]:
    """The numbers of channels, rows and columns."""
    image = checked(img)
    return [len(image.getbands()), image.height, image.width]


def resize(img: "Image", size: list[int], mode: str) -> "Image":
    """Resizes to ``[height, width]``."""
    from PIL import Image

    return img.resize((size[1], size[0]), Image.Resampling[_FILTERS[mode]])


def crop(img: Any, top: int, left: int, height: int, width: int) -> "Image":
    """Cuts out a rectangle."""
    return checked(img).crop((left, top, left + width, top + height))


def hflip(img: Any) -> "Image":
    """Turns left and right."""
    from PIL import Image

    return checked(img).transpose(Image.Transpose.FLIP_LEFT_RIGHT)


def vflip(img: Any) -> "Image":
    """Turns the image upside down."""
    from PIL import Image

    return checked(img).transpose(Image.Transpose.FLIP_TOP_BOTTOM)


def pad(img: Any, edges: tuple[int, int, int, int], fill: Any, mode: str) -> "Image":
    """Adds pixels at (left, top, right, bottom); negative numbers cut them off."""
    from PIL import Image, ImageOps

    image = checked(img)
    if mode == "constant":
        padded = ImageOps.expand(image, border=edges, fill=_fill(fill, len(image.getbands())))
        if image.mode == "P":
            padded.putpalette(image.getpalette() or [])
        return padded
    left, top, right, bottom = edges
    image = image.crop((max(-left, 0), max(-top, 0), image.width - max(-right, 0), image.height - max(-bottom, 0)))
    around = [(max(top, 0), max(bottom, 0)), (max(left, 0), max(right, 0))]
    pixels = np.asarray(image)
    padded = Image.fromarray(np.pad(pixels, around + [(0, 0)] * (pixels.ndim - 2), mode=mode))  # type: ignore[call-overload]
    if image.mode == "P":
        padded.putpalette(image.getpalette() or [])
    return padded


def _fill(fill: Any, bands: int) -> Any:
    """The colour ``fill`` for that many bands: a number, or a sequence of as many or one."""
    if fill is None:
        fill = 0
    if isinstance(fill, (int, float)):
        return (fill,) * bands if bands > 1 else fill
    if len(fill) not in (1, bands):
        raise ValueError(
            f"The number of elements in 'fill' does not match the number of channels of the image ({len(fill)} != "
            f"{bands})"
        )
    return tuple(fill) * bands if len(fill) != bands else tuple(fill) if bands > 1 else fill[0]


def to_grayscale(img: Any, num_output_channels: int) -> "Image":
    """The brightness of each pixel, in one channel or three equal ones."""
    from PIL import Image

    grey = checked(img).convert("L")
    return grey if num_output_channels == 1 else Image.merge("RGB", (grey, grey, grey))


def adjust_brightness(img: Any, factor: float) -> "Image":
    """Multiplies the colours."""
    from PIL import ImageEnhance

    return ImageEnhance.Brightness(checked(img)).enhance(factor)


def adjust_contrast(img: Any, factor: float) -> "Image":
    """Moves the colours from the mean brightness."""
    from PIL import ImageEnhance

    return ImageEnhance.Contrast(checked(img)).enhance(factor)


def adjust_saturation(img: Any, factor: float) -> "Image":
    """Moves the colours from their brightness."""
    from PIL import ImageEnhance

    return ImageEnhance.Color(checked(img)).enhance(factor)


def adjust_hue(img: Any, factor: float) -> "Image":
    """Turns the circle of hues by a part of a turn."""
    from PIL import Image

    image = checked(img)
    if image.mode in ("L", "1", "I", "F"):
        return image
    hue, saturation, value = image.convert("HSV").split()
    turned = np.asarray(hue, dtype=np.uint8) + np.int32(factor * 255).astype(np.uint8)  # wraps around
    return Image.merge("HSV", (Image.fromarray(turned), saturation, value)).convert(image.mode)
