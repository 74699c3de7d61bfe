"""Transforms of colours."""

import numbers
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import Tensor, nn

from . import functional

__all__ = ["ColorJitter", "Grayscale", "RandomGrayscale"]


class Grayscale(nn.Module):
    """The brightness of each pixel, in one channel or three equal ones."""

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img: Any) -> Any:
        """Takes the colours from an image."""
        return functional.rgb_to_grayscale(img, self.num_output_channels)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_output_channels={self.num_output_channels})"


class RandomGrayscale(nn.Module):
    """Takes the colours from an image with probability ``p``; it keeps its number of channels."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        """Takes the colours from an image, perhaps."""
        channels = functional.get_dimensions(img)[0]
        return functional.rgb_to_grayscale(img, channels) if rushlight.rand(1) < self.p else img

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


Range = float | Sequence[float]


class ColorJitter(nn.Module):
    """Changes brightness, contrast, saturation and hue at random, in random order.

    The first three factors are uniform in ``[max(0, 1 - v), 1 + v]``, that of the hue in ``[-v, v]``, or each in the
    interval given; see the functions ``adjust_...``.

    Raises:
        TypeError: an argument is neither a number nor a pair.
        ValueError: a number is negative, or an interval exceeds what is possible.
    """

    def __init__(self, brightness: Range = 0, contrast: Range = 0, saturation: Range = 0, hue: Range = 0) -> None:
        super().__init__()
        self.brightness = self._interval(brightness, "brightness")
        self.contrast = self._interval(contrast, "contrast")
        self.saturation = self._interval(saturation, "saturation")
        self.hue = self._interval(hue, "hue", centre=0, bound=(-0.5, 0.5), clip=False)

    @staticmethod
    def _interval(
        value: Any,
        name: str,
        centre: float = 1,
        bound: tuple[float, float] = (0, float("inf")),
        clip: bool = True,
    ) -> tuple[float, float] | None:
        """The interval of a factor; None if it has no effect."""
        if isinstance(value, numbers.Number):
            if value < 0:  # type: ignore[operator]
                raise ValueError(f"If {name} is a single number, it must be non negative.")
            low, high = centre - float(value), centre + float(value)  # type: ignore[arg-type]
            if clip:
                low = max(low, 0.0)
        elif isinstance(value, (tuple, list)) and len(value) == 2:
            low, high = float(value[0]), float(value[1])
        else:
            raise TypeError(f"{name} should be a single number or a list/tuple with length 2.")
        if not bound[0] <= low <= high <= bound[1]:
            raise ValueError(f"{name} values should be between {bound}, but got {[low, high]}.")
        return None if low == high == centre else (low, high)

    @staticmethod
    def get_params(
        brightness: Sequence[float] | None,
        contrast: Sequence[float] | None,
        saturation: Sequence[float] | None,
        hue: Sequence[float] | None,
    ) -> tuple[Tensor, float | None, float | None, float | None, float | None]:
        """A random order of the four changes, and their factors."""

        def factor(interval: Sequence[float] | None) -> float | None:
            return None if interval is None else float(rushlight.empty(1).uniform_(interval[0], interval[1]).item())

        order = rushlight.randperm(4)
        return order, factor(brightness), factor(contrast), factor(saturation), factor(hue)

    def forward(self, img: Any) -> Any:
        """Changes an image."""
        order, *factors = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        changes = (
            functional.adjust_brightness,
            functional.adjust_contrast,
            functional.adjust_saturation,
            functional.adjust_hue,
        )
        for i in order.tolist():
            if factors[i] is not None:
                img = changes[i](img, factors[i])
        return img

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(brightness={self.brightness}, contrast={self.contrast}, "
            f"saturation={self.saturation}, hue={self.hue})"
        )
