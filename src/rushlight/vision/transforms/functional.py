"""Functions of images: PIL images, or tensors of shape (..., channels, height, width)."""

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import Tensor

from . import _functional_pil as on_pil
from . import _functional_tensor as on_tensor
from ._convert import convert_image_dtype, pil_to_tensor, to_pil_image, to_tensor

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = [
    "InterpolationMode",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_hue",
    "adjust_saturation",
    "center_crop",
    "convert_image_dtype",
    "crop",
    "get_dimensions",
    "get_image_num_channels",
    "get_image_size",
    "hflip",
    "normalize",
    "pad",
    "pil_to_tensor",
    "resize",
    "resized_crop",
    "rgb_to_grayscale",
    "to_grayscale",
    "to_pil_image",
    "to_tensor",
    "vflip",
]


class InterpolationMode(Enum):
    """How numbers between pixels are found. Tensors know the first four."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


# Pillow's numbers of its filters.
_PILLOW_FILTERS = {
    0: InterpolationMode.NEAREST,
    1: InterpolationMode.LANCZOS,
    2: InterpolationMode.BILINEAR,
    3: InterpolationMode.BICUBIC,
    4: InterpolationMode.BOX,
    5: InterpolationMode.HAMMING,
}


def interpolation_mode(value: Any) -> InterpolationMode:
    """The mode that ``value`` is, or that has this number in Pillow.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(value, int) and value in _PILLOW_FILTERS:
        return _PILLOW_FILTERS[value]
    if not isinstance(value, InterpolationMode):
        raise TypeError(
            "Argument interpolation should be a InterpolationMode or a corresponding Pillow integer constant"
        )
    return value


def get_dimensions(img: Any) -> list[int]:
    """The numbers of channels, rows and columns."""
    return on_tensor.get_dimensions(img) if isinstance(img, Tensor) else on_pil.get_dimensions(img)


def get_image_size(img: Any) -> list[int]:
    """The numbers of columns and rows."""
    _, height, width = get_dimensions(img)
    return [width, height]


def get_image_num_channels(img: Any) -> int:
    """The number of channels."""
    return get_dimensions(img)[0]


def normalize(tensor: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> Tensor:
    """``(tensor - mean) / std``, channel by channel.

    Raises:
        TypeError: it is no tensor of floating point numbers.
        ValueError: it has fewer than three dimensions, or a standard deviation is zero.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(tensor)}")
    if not tensor.is_floating_point():
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.ndim < 3:
        raise ValueError(
            f"Expected tensor to be a tensor image of size (..., C, H, W). Got tensor.size() = {tensor.size()}"
        )
    means = rushlight.as_tensor(mean, dtype=tensor.dtype)
    stds = rushlight.as_tensor(std, dtype=tensor.dtype)
    if (stds == 0).any():
        raise ValueError(f"std evaluated to zero after conversion to {tensor.dtype}, leading to division by zero.")
    if means.ndim == 1:
        means = means.view(-1, 1, 1)
    if stds.ndim == 1:
        stds = stds.view(-1, 1, 1)
    return (tensor if inplace else tensor.clone()).sub_(means).div_(stds)


def resize(
    img: Any,
    size: int | Sequence[int],
    interpolation: InterpolationMode = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """Resizes to ``(height, width)``, or so that the shorter edge has the size given and the longer one follows.

    ``max_size`` bounds the longer edge. ``antialias`` is for tensors; PIL always does.

    Raises:
        TypeError: ``interpolation`` is no mode.
        ValueError: the size has other than one or two numbers, or ``max_size`` does not go with it.
    """
    mode = interpolation_mode(interpolation)
    target = [size] if isinstance(size, int) else list(size)
    if len(target) not in (1, 2):
        raise ValueError(f"Size must be an int or a 1 or 2 element tuple/list, not a {len(target)} element tuple/list")
    if max_size is not None and len(target) != 1:
        raise ValueError(
            "max_size should only be passed if size specifies the length of the smaller edge, "
            "i.e. size should be an int or a sequence of length 1 in torchscript mode."
        )
    _, height, width = get_dimensions(img)
    if len(target) == 1:
        target = _by_shorter_edge(height, width, target[0], max_size)
    if [height, width] == target:
        return img
    if isinstance(img, Tensor):
        return on_tensor.resize(img, target, mode.value, bool(antialias))
    return on_pil.resize(img, target, mode.value)


def _by_shorter_edge(height: int, width: int, shorter: int, max_size: int | None) -> list[int]:
    short, long = sorted((height, width))
    new_short, new_long = shorter, int(shorter * long / short)
    if max_size is not None:
        if max_size <= shorter:
            raise ValueError(
                f"max_size = {max_size} must be strictly greater than the requested size for the smaller edge size = "
                f"{shorter}"
            )
        if new_long > max_size:
            new_short, new_long = int(max_size * new_short / new_long), max_size
    return [new_long, new_short] if width <= height else [new_short, new_long]


def pad(img: Any, padding: int | Sequence[int], fill: Any = 0, padding_mode: str = "constant") -> Any:
    """Adds pixels around the image: as many on all sides, (horizontally, vertically), or (left, top, right, bottom).

    ``padding_mode`` is ``"constant"`` (of the value ``fill``), ``"edge"``, ``"reflect"`` or ``"symmetric"``.

    Raises:
        TypeError: an argument is of the wrong type.
        ValueError: ``padding`` has other than one, two or four numbers, or the mode is unknown.
    """
    if not isinstance(padding, (int, tuple, list)):
        raise TypeError("Got inappropriate padding arg")
    if not isinstance(padding_mode, str):
        raise TypeError("Got inappropriate padding_mode arg")
    edges = [padding] if isinstance(padding, int) else list(padding)
    if len(edges) not in (1, 2, 4):
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(edges)} element tuple")
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
    left, top, right, bottom = edges * (4 // len(edges))
    if isinstance(img, Tensor):
        return on_tensor.pad(img, (left, top, right, bottom), fill, padding_mode)
    return on_pil.pad(img, (left, top, right, bottom), fill, padding_mode)


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """Cuts out a rectangle; what it has outside of the image is filled with zeros."""
    if not isinstance(img, Tensor):
        return on_pil.crop(img, top, left, height, width)
    _, h, w = on_tensor.get_dimensions(img)
    bottom, right = top + height, left + width
    part = img[..., max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    if left >= 0 and top >= 0 and right <= w and bottom <= h:
        return part
    outside = (
        max(min(right, 0) - left, 0),
        max(min(bottom, 0) - top, 0),
        max(right - max(w, left), 0),
        max(bottom - max(h, top), 0),
    )
    return on_tensor.pad(part, outside, 0, "constant")


def center_crop(img: Any, output_size: int | Sequence[int]) -> Any:
    """Cuts out the middle, of size ``(height, width)``; an image that is too small is padded with zeros."""
    sizes = [output_size] if isinstance(output_size, int) else list(output_size)
    crop_height, crop_width = sizes[0], sizes[-1]
    _, height, width = get_dimensions(img)
    lack_y, lack_x = max(crop_height - height, 0), max(crop_width - width, 0)
    if lack_x or lack_y:
        img = pad(img, [lack_x // 2, lack_y // 2, (lack_x + 1) // 2, (lack_y + 1) // 2])
        height, width = height + lack_y, width + lack_x
    top, left = round((height - crop_height) / 2.0), round((width - crop_width) / 2.0)
    return crop(img, top, left, crop_height, crop_width)


def resized_crop(
    img: Any,
    top: int,
    left: int,
    height: int,
    width: int,
    size: int | Sequence[int],
    interpolation: InterpolationMode = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
) -> Any:
    """Cuts out a rectangle and resizes it."""
    return resize(crop(img, top, left, height, width), size, interpolation, antialias=antialias)


def hflip(img: Any) -> Any:
    """Turns left and right."""
    return img.flip(-1) if isinstance(img, Tensor) else on_pil.hflip(img)


def vflip(img: Any) -> Any:
    """Turns the image upside down."""
    return img.flip(-2) if isinstance(img, Tensor) else on_pil.vflip(img)


def rgb_to_grayscale(img: Any, num_output_channels: int = 1) -> Any:
    """The brightness of each pixel, ``0.2989 R + 0.587 G + 0.114 B``, in one channel or three equal ones."""
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    if isinstance(img, Tensor):
        return on_tensor.rgb_to_grayscale(img, num_output_channels)
    return on_pil.to_grayscale(img, num_output_channels)


def to_grayscale(img: "Image", num_output_channels: int = 1) -> "Image":
    """The brightness of each pixel of a PIL image, in one channel or three equal ones.

    Raises:
        TypeError: it is no PIL image.
    """
    if isinstance(img, Tensor):
        raise TypeError("Input should be PIL Image")
    result: Image = rgb_to_grayscale(img, num_output_channels)
    return result


def adjust_brightness(img: Any, brightness_factor: float) -> Any:
    """Multiplies the colours: 0 is black, 1 the image."""
    return (on_tensor if isinstance(img, Tensor) else on_pil).adjust_brightness(img, brightness_factor)


def adjust_contrast(img: Any, contrast_factor: float) -> Any:
    """Moves the colours from the mean brightness: 0 is a grey image, 1 the image."""
    return (on_tensor if isinstance(img, Tensor) else on_pil).adjust_contrast(img, contrast_factor)


def adjust_saturation(img: Any, saturation_factor: float) -> Any:
    """Moves the colours from their brightness: 0 is black and white, 1 the image."""
    return (on_tensor if isinstance(img, Tensor) else on_pil).adjust_saturation(img, saturation_factor)


def adjust_hue(img: Any, hue_factor: float) -> Any:
    """Turns the circle of hues by ``hue_factor`` of a turn, from -0.5 to 0.5.

    Raises:
        ValueError: the factor is greater.
    """
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    return (on_tensor if isinstance(img, Tensor) else on_pil).adjust_hue(img, hue_factor)
