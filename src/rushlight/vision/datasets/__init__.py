"""Datasets of images."""

from rushlight._missing import lazy_module

from .fakedata import FakeData
from .folder import DatasetFolder, ImageFolder
from .mnist import KMNIST, MNIST, FashionMNIST
from .vision import VisionDataset

__all__ = ["KMNIST", "MNIST", "DatasetFolder", "FakeData", "FashionMNIST", "ImageFolder", "VisionDataset"]

__getattr__, __dir__ = lazy_module(__name__)
