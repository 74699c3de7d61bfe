"""Models, transforms and datasets of images: torchvision's names, as far as training on images needs them.

``import torchvision`` is this package in programs that ``rushlight run`` runs.
"""

from rushlight._missing import lazy_module

__version__ = "0.28.0"  # the torchvision that belongs to the PyTorch whose meaning rushlight has

__getattr__, __dir__ = lazy_module(__name__, submodules=("datasets", "models", "transforms", "utils"))


def get_image_backend() -> str:
    """The name of the package that loads images: ``"PIL"``."""
    return "PIL"


def set_image_backend(backend: str) -> None:
    """Chooses the package that loads images; there is only ``"PIL"``."""
    if backend != "PIL":
        raise ValueError(f"Invalid backend '{backend}'. Options are 'PIL'")
