"""Weights of convolutions in another memory format."""

from __future__ import annotations

from typing import TypeVar

import rushlight

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

_M = TypeVar("_M", bound=Module)


def _convert(module: Module, kinds: tuple[type[Module], ...], memory_format: rushlight.memory_format) -> None:
    for part in module.modules():
        if isinstance(part, kinds):
            part.weight.data = part.weight.detach().clone(memory_format=memory_format)


def convert_conv2d_weight_memory_format(module: _M, memory_format: rushlight.memory_format) -> _M:
    """`module`, with the weights of its two-dimensional convolutions in `memory_format`."""
    _convert(module, (Conv2d, ConvTranspose2d), memory_format)
    return module


def convert_conv3d_weight_memory_format(module: _M, memory_format: rushlight.memory_format) -> _M:
    """`module`, with the weights of its three-dimensional convolutions in `memory_format`."""
    _convert(module, (Conv3d, ConvTranspose3d), memory_format)
    return module
