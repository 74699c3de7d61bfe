"""Random images, for trying programs out."""

from typing import Any

import rushlight

from ..transforms.functional import to_pil_image
from .vision import Transform, VisionDataset

__all__ = ["FakeData"]


class FakeData(VisionDataset):
    """``size`` random PIL images of ``image_size`` with random classes, the same ones for each index.

    Raises:
        IndexError: in use, the index is too great.
    """

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        random_offset: int = 0,
    ) -> None:
        super().__init__(transform=transform, target_transform=target_transform)
        self.size = size
        self.num_classes = num_classes
        self.image_size = image_size
        self.random_offset = random_offset

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if index >= len(self):
            raise IndexError(f"{type(self).__name__} index out of range")
        state = rushlight.get_rng_state()
        rushlight.manual_seed(index + self.random_offset)
        image = rushlight.randn(*self.image_size)
        target = rushlight.randint(0, self.num_classes, size=(1,), dtype=rushlight.long)[0]
        rushlight.set_rng_state(state)
        picture, label = self._transformed(to_pil_image(image), target)
        return picture, label.item() if isinstance(label, rushlight.Tensor) else label

    def __len__(self) -> int:
        return self.size
