"""Images apart into blocks, and blocks together."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight import Tensor

from .. import functional as F
from .module import Module

__all__ = ["Fold", "Unfold"]

_Size = int | Sequence[int]


class Fold(Module):
    """Blocks ``(N, C · kernel, blocks)`` or ``(C · kernel, blocks)`` summed up to images ``(N, C, *output_size)``.

    There are ``prod((output_size + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1)`` blocks.
    """

    def __init__(
        self, output_size: _Size, kernel_size: _Size, dilation: _Size = 1, padding: _Size = 0, stride: _Size = 1
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )


class Unfold(Module):
    """Images ``(N, C, H, W)`` or ``(C, H, W)`` as their sliding blocks ``(N, C · kernel, blocks)``."""

    def __init__(self, kernel_size: _Size, dilation: _Size = 1, padding: _Size = 0, stride: _Size = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
