"""Images in a directory per class."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .vision import Transform, VisionDataset

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["IMG_EXTENSIONS", "DatasetFolder", "ImageFolder", "default_loader", "find_classes", "make_dataset"]

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")

Path = str | os.PathLike[str]


def has_file_allowed_extension(filename: str, extensions: str | tuple[str, ...]) -> bool:
    """Whether the file's name ends like that, in any case."""
    return filename.lower().endswith(extensions if isinstance(extensions, str) else tuple(extensions))


def is_image_file(filename: str) -> bool:
    """Whether the file's name ends like an image's."""
    return has_file_allowed_extension(filename, IMG_EXTENSIONS)


def find_classes(directory: Path) -> tuple[list[str], dict[str, int]]:
    """The names of the directories in a directory, sorted, and the number of each.

    Raises:
        FileNotFoundError: there are none.
    """
    classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
    if not classes:
        raise FileNotFoundError(f"Couldn't find any class folder in {directory}.")
    return classes, {name: i for i, name in enumerate(classes)}


def make_dataset(
    directory: Path,
    class_to_idx: dict[str, int] | None = None,
    extensions: str | tuple[str, ...] | None = None,
    is_valid_file: Callable[[str], bool] | None = None,
    allow_empty: bool = False,
) -> list[tuple[str, int]]:
    """Pairs of path and class of all files below a directory of classes.

    Either ``extensions`` or ``is_valid_file`` says which files are taken.

    Raises:
        ValueError: both or neither of them are given, or there are no classes.
        FileNotFoundError: a class has no such file, unless ``allow_empty``.
    """
    directory = os.path.expanduser(directory)
    if class_to_idx is None:
        _, class_to_idx = find_classes(directory)
    elif not class_to_idx:
        raise ValueError("'class_to_index' must have at least one entry to collect any samples.")
    if (extensions is None) == (is_valid_file is None):
        raise ValueError("Both extensions and is_valid_file cannot be None or not None at the same time")
    valid = is_valid_file or (lambda path: has_file_allowed_extension(path, extensions or ()))
    samples: list[tuple[str, int]] = []
    empty: list[str] = []
    for name in sorted(class_to_idx):
        folder = os.path.join(directory, name)
        before = len(samples)
        if os.path.isdir(folder):
            for root, _, files in sorted(os.walk(folder, followlinks=True)):
                paths = (os.path.join(root, file) for file in sorted(files))
                samples += [(path, class_to_idx[name]) for path in paths if valid(path)]
        if len(samples) == before:
            empty.append(name)
    if empty and not allow_empty:
        message = f"Found no valid file for the classes {', '.join(sorted(empty))}. "
        if extensions is not None:
            kinds = extensions if isinstance(extensions, str) else ", ".join(extensions)
            message += f"Supported extensions are: {kinds}"
        raise FileNotFoundError(message)
    return samples


def default_loader(path: str) -> "Image":
    """The image in a file, as RGB."""
    from PIL import Image

    with open(path, "rb") as file:
        return Image.open(file).convert("RGB")


class DatasetFolder(VisionDataset):
    """Files in one directory per class; ``loader`` reads a file.

    ``classes`` are the directories' names, ``class_to_idx`` their numbers, ``samples`` the pairs of path and number,
    ``targets`` the numbers alone. See :func:`make_dataset` for the other arguments and for errors.
    """

    def __init__(
        self,
        root: Path,
        loader: Callable[[str], Any],
        extensions: tuple[str, ...] | None = None,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.classes, self.class_to_idx = self.find_classes(self.root or root)
        self.samples = make_dataset(self.root or root, self.class_to_idx, extensions, is_valid_file, allow_empty)
        self.loader = loader
        self.extensions = extensions
        self.targets = [target for _, target in self.samples]

    def find_classes(self, directory: Path) -> tuple[list[str], dict[str, int]]:
        """The classes below a directory; for subclasses to replace."""
        return find_classes(directory)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        return self._transformed(self.loader(path), target)

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Images in one directory per class: ``root/dog/xxx.png``, ``root/cat/123.png``.

    ``imgs`` is another name of ``samples``; see :class:`DatasetFolder`.
    """

    def __init__(
        self,
        root: Path,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        loader: Callable[[str], Any] = default_loader,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(
            root,
            loader,
            IMG_EXTENSIONS if is_valid_file is None else None,
            transform=transform,
            target_transform=target_transform,
            is_valid_file=is_valid_file,
            allow_empty=allow_empty,
        )
        self.imgs: Sequence[tuple[str, int]] = self.samples
