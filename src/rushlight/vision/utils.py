"""Pictures of many images."""

import math
from collections.abc import Sequence
from typing import Any, BinaryIO

import rushlight
from rushlight import Tensor

__all__ = ["make_grid", "save_image"]


@rushlight.no_grad()
def make_grid(
    tensor: Tensor | list[Tensor],
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[float, float] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Tensor:
    """One image of many: ``nrow`` in a row, ``padding`` pixels of the value ``pad_value`` between and around them.

    ``tensor`` has the shape (N, C, H, W) or is a list of images; one channel becomes three. ``normalize`` moves the
    least number to 0 and the greatest to 1, or those of ``value_range``; ``scale_each`` does so image by image.

    Raises:
        TypeError: it is neither tensor nor list of tensors, or ``value_range`` no pair.
    """
    if not isinstance(tensor, Tensor) and not (isinstance(tensor, list) and all(isinstance(t, Tensor) for t in tensor)):
        raise TypeError(f"tensor or list of tensors expected, got {type(tensor)}")
    if value_range is not None and not isinstance(value_range, tuple):
        raise TypeError("value_range has to be a tuple (min, max) if specified. min and max are numbers")
    images = _batch(rushlight.stack(tensor, dim=0) if isinstance(tensor, list) else tensor)
    if normalize:
        images = images.clone()
        for part in images if scale_each else [images]:
            _scale(part, value_range)
    if images.size(0) == 1:
        return images.squeeze(0)
    count, channels, height, width = images.shape
    columns = min(nrow, count)
    rows = math.ceil(count / columns)
    height, width = height + padding, width + padding
    grid = images.new_full((channels, height * rows + padding, width * columns + padding), pad_value)
    for i, image in enumerate(images):
        y, x = divmod(i, columns)
        grid[:, y * height + padding : (y + 1) * height, x * width + padding : (x + 1) * width].copy_(image)
    return grid


def _batch(images: Tensor) -> Tensor:
    """The images as (N, 3 or more, H, W)."""
    if images.dim() == 2:
        images = images.unsqueeze(0)
    if images.dim() == 3:
        images = images.unsqueeze(0)
    return rushlight.cat((images, images, images), 1) if images.dim() == 4 and images.size(1) == 1 else images


def _scale(part: Tensor, value_range: Sequence[float] | None) -> None:
    low, high = value_range if value_range is not None else (float(part.min()), float(part.max()))
    part.clamp_(min=low, max=high)
    part.sub_(low).div_(max(high - low, 1e-5))


@rushlight.no_grad()
def save_image(tensor: Tensor | list[Tensor], fp: str | BinaryIO, format: str | None = None, **kwargs: Any) -> None:
    """Writes one image of many to a file; numbers from 0 to 1 are colours. The other arguments are ``make_grid``'s."""
    from PIL import Image

    grid = make_grid(tensor, **kwargs)
    pixels = grid.mul(255).add_(0.5).clamp_(0, 255).permute(1, 2, 0).to(rushlight.uint8)
    Image.fromarray(pixels.numpy()).save(fp, format=format)
