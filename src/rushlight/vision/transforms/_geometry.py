"""Transforms of sizes and places: resizing, crops, flips, padding."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import nn

from . import functional
from .functional import InterpolationMode

__all__ = [
    "CenterCrop",
    "Pad",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
    "Resize",
]


def _pair(size: Any, message: str) -> tuple[int, int]:
    """``(height, width)`` from one number, a sequence of one, or of two."""
    if isinstance(size, int):
        return size, size
    if len(size) == 1:
        return size[0], size[0]
    if len(size) != 2:
        raise ValueError(message)
    return size[0], size[1]


def _random_place(most: int) -> int:
    """A uniform random number from 0 to ``most``."""
    return int(rushlight.randint(0, most + 1, size=(1,)).item())


class Resize(nn.Module):
    """Resizes to ``(height, width)``, or so that the shorter edge has the size given and the longer one follows.

    See :func:`functional.resize`.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if not isinstance(size, (int, Sequence)):
            raise TypeError(f"Size should be int or sequence. Got {type(size)}")
        if isinstance(size, Sequence) and len(size) not in (1, 2):
            raise ValueError("If size is a sequence, it should have 1 or 2 values")
        self.size = size
        self.max_size = max_size
        self.interpolation = functional.interpolation_mode(interpolation)
        self.antialias = antialias

    def forward(self, img: Any) -> Any:
        """Resizes an image."""
        return functional.resize(img, self.size, self.interpolation, self.max_size, self.antialias)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(size={self.size}, interpolation={self.interpolation.value}, "
            f"max_size={self.max_size}, antialias={self.antialias})"
        )


class CenterCrop(nn.Module):
    """Cuts out the middle, of size ``(height, width)``; an image that is too small is padded with zeros."""

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = _pair(size, "Please provide only two dimensions (h, w) for size.")

    def forward(self, img: Any) -> Any:
        """Crops an image."""
        return functional.center_crop(img, self.size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size})"


class Pad(nn.Module):
    """Adds pixels around the image; see :func:`functional.pad`."""

    def __init__(self, padding: int | Sequence[int], fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        if not isinstance(padding, (int, tuple, list)):
            raise TypeError("Got inappropriate padding arg")
        if not isinstance(fill, (int, float, str, tuple, list)):
            raise TypeError("Got inappropriate fill arg")
        if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
            raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
        if not isinstance(padding, int) and len(padding) not in (1, 2, 4):
            raise ValueError(
                f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(padding)} element tuple"
            )
        self.padding = padding
        self.fill = fill
        self.padding_mode = padding_mode

    def forward(self, img: Any) -> Any:
        """Pads an image."""
        return functional.pad(img, self.padding, self.fill, self.padding_mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(padding={self.padding}, fill={self.fill}, padding_mode={self.padding_mode})"


class RandomCrop(nn.Module):
    """Cuts out a rectangle of size ``(height, width)`` at a random place, after padding.

    ``pad_if_needed`` pads images that are too small. The other arguments are those of :class:`Pad`.

    Raises:
        ValueError: in use, the image is smaller than the crop.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        self.size = _pair(size, "Please provide only two dimensions (h, w) for size.")
        self.padding = padding
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self.padding_mode = padding_mode

    @staticmethod
    def get_params(img: Any, output_size: tuple[int, int]) -> tuple[int, int, int, int]:
        """A random rectangle of that size in the image: top, left, height, width."""
        _, height, width = functional.get_dimensions(img)
        crop_height, crop_width = output_size
        if height < crop_height or width < crop_width:
            raise ValueError(
                f"Required crop size {(crop_height, crop_width)} is larger than input image size {(height, width)}"
            )
        if (height, width) == (crop_height, crop_width):
            return 0, 0, height, width
        top = _random_place(height - crop_height)
        left = _random_place(width - crop_width)
        return top, left, crop_height, crop_width

    def forward(self, img: Any) -> Any:
        """Crops an image."""
        if self.padding is not None:
            img = functional.pad(img, self.padding, self.fill, self.padding_mode)
        if self.pad_if_needed:
            for axis in (1, 0):
                lack = self.size[axis] - functional.get_dimensions(img)[axis + 1]
                if lack > 0:
                    img = functional.pad(img, [lack, 0] if axis else [0, lack], self.fill, self.padding_mode)
        return functional.crop(img, *self.get_params(img, self.size))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={self.size}, padding={self.padding})"


class _RandomFlip(nn.Module):
    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class RandomHorizontalFlip(_RandomFlip):
    """Turns left and right with probability ``p``."""

    def forward(self, img: Any) -> Any:
        """Turns an image, perhaps."""
        return functional.hflip(img) if rushlight.rand(1) < self.p else img


class RandomVerticalFlip(_RandomFlip):
    """Turns the image upside down with probability ``p``."""

    def forward(self, img: Any) -> Any:
        """Turns an image, perhaps."""
        return functional.vflip(img) if rushlight.rand(1) < self.p else img


class RandomResizedCrop(nn.Module):
    """Cuts out a random rectangle and resizes it to ``(height, width)``.

    Its area is a part of the image's between the numbers ``scale``, its aspect between the numbers ``ratio``. After ten
    rectangles that do not fit it is the greatest in the middle.

    Szegedy et al., "Going deeper with convolutions" (2015), section 6.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: InterpolationMode = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size = _pair(size, "Please provide only two dimensions (h, w) for size.")
        for name, value in (("Scale", scale), ("Ratio", ratio)):
            if not isinstance(value, Sequence):
                raise TypeError(f"{name} should be a sequence")
            if value[0] > value[1]:
                warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=2)
        self.interpolation = functional.interpolation_mode(interpolation)
        self.antialias = antialias
        self.scale = scale
        self.ratio = ratio

    @staticmethod
    def get_params(img: Any, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int, int, int]:
        """A random rectangle in the image: top, left, height, width."""
        _, height, width = functional.get_dimensions(img)
        low, high = rushlight.log(rushlight.tensor(ratio)).tolist()
        for _ in range(10):
            area = height * width * rushlight.empty(1).uniform_(scale[0], scale[1]).item()
            aspect = rushlight.exp(rushlight.empty(1).uniform_(low, high)).item()
            w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if 0 < w <= width and 0 < h <= height:
                top = _random_place(height - h)
                left = _random_place(width - w)
                return top, left, h, w
        w, h = width, height
        if width / height < min(ratio):
            h = round(width / min(ratio))
        elif width / height > max(ratio):
            w = round(height * max(ratio))
        return (height - h) // 2, (width - w) // 2, h, w

    def forward(self, img: Any) -> Any:
        """Crops and resizes an image."""
        place = self.get_params(img, self.scale, self.ratio)
        return functional.resized_crop(img, *place, self.size, self.interpolation, self.antialias)

    def __repr__(self) -> str:
        scale, ratio = (tuple(round(v, 4) for v in value) for value in (self.scale, self.ratio))
        return (
            f"{type(self).__name__}(size={self.size}, scale={scale}, ratio={ratio}, "
            f"interpolation={self.interpolation.value}, antialias={self.antialias})"
        )
