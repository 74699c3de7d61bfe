"""The base of datasets of images."""

import os
from collections.abc import Callable
from typing import Any

from rushlight.utils.data import Dataset

__all__ = ["StandardTransform", "VisionDataset"]

Transform = Callable[[Any], Any]


class StandardTransform:
    """Transforms an image and its target, each by a function of its own."""

    def __init__(self, transform: Transform | None = None, target_transform: Transform | None = None) -> None:
        self.transform = transform
        self.target_transform = target_transform

    def __call__(self, input: Any, target: Any) -> tuple[Any, Any]:
        """Transforms the pair."""
        if self.transform is not None:
            input = self.transform(input)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return input, target

    def __repr__(self) -> str:
        body = [type(self).__name__]
        for head, transform in (("Transform: ", self.transform), ("Target transform: ", self.target_transform)):
            if transform is not None:
                lines = repr(transform).splitlines()
                body += [head + lines[0], *(" " * len(head) + line for line in lines[1:])]
        return "\n".join(body)


class VisionDataset(Dataset[tuple[Any, Any]]):
    """Base of datasets of pairs of image and target.

    ``transform`` and ``target_transform`` change one of the two each, ``transforms`` both; they exclude each other.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        transforms: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
    ) -> None:
        self.root = os.path.expanduser(root) if isinstance(root, str) else root
        separate = transform is not None or target_transform is not None
        if transforms is not None and separate:
            raise ValueError("Only transforms or transform/target_transform can be passed as argument")
        self.transform = transform
        self.target_transform = target_transform
        self.transforms = StandardTransform(transform, target_transform) if separate else transforms

    def _transformed(self, image: Any, target: Any) -> tuple[Any, Any]:
        return (image, target) if self.transforms is None else self.transforms(image, target)

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} does not define __len__")

    def __repr__(self) -> str:
        body = [f"Number of datapoints: {len(self)}"]
        if self.root is not None:
            body.append(f"Root location: {self.root}")
        body += self.extra_repr().splitlines()
        if self.transforms is not None:
            body += repr(self.transforms).splitlines()
        return "\n".join([f"Dataset {type(self).__name__}", *("    " + line for line in body)])

    def extra_repr(self) -> str:
        """More lines of the printed form."""
        return ""
