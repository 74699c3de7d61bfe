"""Handwritten digits, and datasets in the same format."""

import os
from typing import Any, ClassVar

import numpy as np

import rushlight
from rushlight import Tensor

from .vision import Transform, VisionDataset

__all__ = ["KMNIST", "MNIST", "FashionMNIST"]


class MNIST(VisionDataset):
    """The digits of MNIST: 28 x 28 grey images, 60,000 for training and 10,000 for tests.

    The files ``train-images-idx3-ubyte`` and so on, plain or ending in ``.gz``, lie in ``root/MNIST/raw``;
    ``download`` fetches them. ``data`` holds all images and ``targets`` all classes.

    Raises:
        RuntimeError: a file is not there, or is not what it should be.

    LeCun et al., "Gradient-based learning applied to document recognition" (1998).
    """

    mirror: ClassVar[str] = "https://ossci-datasets.s3.amazonaws.com/mnist/"
    classes: ClassVar[list[str]] = [
        "0 - zero",
        "1 - one",
        "2 - two",
        "3 - three",
        "4 - four",
        "5 - five",
        "6 - six",
        "7 - seven",
        "8 - eight",
        "9 - nine",
    ]

    def __init__(
        self,
        root: str | os.PathLike[str],
        train: bool = True,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        part = "train" if train else "t10k"
        images, labels = f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"
        if download:
            for name in (images, labels):
                self._download(name)
        self.data = self._read(images, 3)
        self.targets = self._read(labels, 1).to(rushlight.int64)
        if len(self.data) != len(self.targets):
            raise RuntimeError(f"{images} has {len(self.data)} images, but {labels} has {len(self.targets)} labels")

    @property
    def raw_folder(self) -> str:
        """The directory of the files."""
        return os.path.join(self.root or ".", type(self).__name__, "raw")

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of each class."""
        return {name: i for i, name in enumerate(self.classes)}

    def _path(self, name: str) -> str | None:
        """The file of that name, plain or compressed, if it is there."""
        paths = (os.path.join(self.raw_folder, name + end) for end in ("", ".gz"))
        return next((path for path in paths if os.path.exists(path)), None)

    def _download(self, name: str) -> None:
        from rushlight.hub import download_url_to_file

        if self._path(name) is None:
            os.makedirs(self.raw_folder, exist_ok=True)
            download_url_to_file(f"{self.mirror}{name}.gz", os.path.join(self.raw_folder, name + ".gz"))

    def _read(self, name: str, dimensions: int) -> Tensor:
        path = self._path(name)
        if path is None:
            raise RuntimeError(
                f"Dataset not found: there is no {name} in {self.raw_folder}. You can use download=True to download it"
            )
        if path.endswith(".gz"):
            import gzip

            with gzip.open(path) as file:
                content = file.read()
        else:
            with open(path, "rb") as file:
                content = file.read()
        return _idx_tensor(content, path, dimensions)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        from PIL import Image

        return self._transformed(Image.fromarray(self.data[index].numpy()), int(self.targets[index]))

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        """More lines of the printed form."""
        return f"Split: {'Train' if self.train else 'Test'}"


def _idx_tensor(content: bytes, path: str, dimensions: int) -> Tensor:
    """The array of bytes in a file of the IDX format: a magic number, big-endian sizes, the numbers."""
    header = 4 + 4 * dimensions
    if len(content) < header or content[:4] != bytes((0, 0, 8, dimensions)):
        raise RuntimeError(f"{path} is no IDX file of bytes with {dimensions} dimensions")
    shape = np.frombuffer(content, ">u4", dimensions, 4).tolist()
    numbers = np.frombuffer(content, np.uint8, offset=header)
    if numbers.size != np.prod(shape):
        raise RuntimeError(f"{path} has {numbers.size} numbers, but its header says {tuple(shape)}")
    return rushlight.from_numpy(numbers.reshape(shape).copy())


class FashionMNIST(MNIST):
    """Pictures of clothes, in the format of :class:`MNIST`.

    Xiao, Rasul and Vollgraf, "Fashion-MNIST: a novel image dataset for benchmarking machine learning algorithms"
    (2017).
    """

    mirror: ClassVar[str] = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
    classes: ClassVar[list[str]] = [
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ]


class KMNIST(MNIST):
    """Cursive Japanese characters, in the format of :class:`MNIST`.

    Clanuwat et al., "Deep learning for classical Japanese literature" (2018).
    """

    mirror: ClassVar[str] = "http://codh.rois.ac.jp/kmnist/dataset/kmnist/"
    classes: ClassVar[list[str]] = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]
