"""Transforms of images as objects, to be put together."""

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import Tensor, nn

from . import functional
from ._color import ColorJitter, Grayscale, RandomGrayscale
from ._geometry import (
    CenterCrop,
    Pad,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
)
from .functional import InterpolationMode

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "ConvertImageDtype",
    "Grayscale",
    "InterpolationMode",
    "Lambda",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandomApply",
    "RandomChoice",
    "RandomCrop",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomOrder",
    "RandomResizedCrop",
    "RandomVerticalFlip",
    "Resize",
    "ToPILImage",
    "ToTensor",
]


def _lines(transforms: Sequence[Any]) -> str:
    return "".join(f"\n    {t}" for t in transforms) + "\n"


class Compose:
    """Applies transforms one after the other."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        """Transforms an image."""
        for t in self.transforms:
            img = t(img)
        return img

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_lines(self.transforms)})"


class ToTensor:
    """Pixels of a PIL image or an array (height, width, channels) as a tensor (channels, height, width).

    Pixels of 8 bits are scaled to [0, 1]; see :func:`functional.to_tensor`.
    """

    def __call__(self, pic: Any) -> Tensor:
        """Converts an image."""
        return functional.to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PILToTensor:
    """Pixels of a PIL image as a tensor (channels, height, width), unscaled."""

    def __call__(self, pic: "Image") -> Tensor:
        """Converts an image."""
        return functional.pil_to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ToPILImage:
    """A tensor (channels, height, width) or an array (height, width, channels) as a PIL image.

    See :func:`functional.to_pil_image`.
    """

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, pic: Any) -> "Image":
        """Converts an image."""
        return functional.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.mode is None else f'mode={self.mode}'})"


class ConvertImageDtype(nn.Module):
    """Converts a tensor to a dtype and scales it; see :func:`functional.convert_image_dtype`."""

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, image: Tensor) -> Tensor:
        """Converts an image."""
        return functional.convert_image_dtype(image, self.dtype)


class Normalize(nn.Module):
    """``(image - mean) / std``, channel by channel; see :func:`functional.normalize`."""

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__()
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def forward(self, tensor: Tensor) -> Tensor:
        """Normalises an image."""
        return functional.normalize(tensor, self.mean, self.std, self.inplace)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mean={self.mean}, std={self.std})"


class Lambda:
    """Applies a function.

    Raises:
        TypeError: it is no function.
    """

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        """Transforms an image."""
        return self.lambd(img)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class RandomApply(nn.Module):
    """Applies all of the transforms with probability ``p``, none otherwise."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]], p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms
        self.p = p

    def forward(self, img: Any) -> Any:
        """Transforms an image, perhaps."""
        if self.p < rushlight.rand(1):
            return img
        for t in self.transforms:
            img = t(img)
        return img

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n    p={self.p}{_lines(self.transforms)})"


class RandomOrder:
    """Applies the transforms in random order, by Python's random numbers."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        """Transforms an image."""
        order = list(range(len(self.transforms)))
        random.shuffle(order)
        for i in order:
            img = self.transforms[i](img)
        return img

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_lines(self.transforms)})"


class RandomChoice:
    """Applies one of the transforms, chosen with the weights ``p``, by Python's random numbers."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]], p: Sequence[float] | None = None) -> None:
        if p is not None and not isinstance(p, Sequence):
            raise TypeError("Argument p should be a sequence")
        self.transforms = transforms
        self.p = p

    def __call__(self, img: Any) -> Any:
        """Transforms an image."""
        return random.choices(self.transforms, weights=self.p)[0](img)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_lines(self.transforms)})(p={self.p})"
