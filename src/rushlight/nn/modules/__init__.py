"""The layers of neural networks."""

from .module import Module

__all__ = [
    "Module",
]
