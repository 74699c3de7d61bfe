"""The transforms that images need before a model sees them."""

from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import Tensor, nn

from . import functional

__all__ = ["ImageClassification"]


class ImageClassification(nn.Module):
    """Resizes, cuts out the middle, scales to [0, 1] and normalises; PIL images and tensors, one or a batch."""

    def __init__(
        self,
        *,
        crop_size: int,
        resize_size: int = 256,
        mean: Sequence[float] = (0.485, 0.456, 0.406),
        std: Sequence[float] = (0.229, 0.224, 0.225),
        interpolation: functional.InterpolationMode = functional.InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.crop_size = [crop_size]
        self.resize_size = [resize_size]
        self.mean = list(mean)
        self.std = list(std)
        self.interpolation = interpolation
        self.antialias = antialias

    def forward(self, img: Any) -> Tensor:
        """Prepares an image."""
        img = functional.resize(img, self.resize_size, self.interpolation, antialias=self.antialias)
        img = functional.center_crop(img, self.crop_size)
        if not isinstance(img, Tensor):
            img = functional.pil_to_tensor(img)
        img = functional.convert_image_dtype(img, rushlight.float32)
        return functional.normalize(img, self.mean, self.std)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(\n    crop_size={self.crop_size}\n    resize_size={self.resize_size}\n"
            f"    mean={self.mean}\n    std={self.std}\n    interpolation={self.interpolation}\n)"
        )
