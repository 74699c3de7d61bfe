"""Images apart into blocks, and blocks together."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import rushlight
from rushlight import Tensor

__all__ = ["fold", "unfold"]

_Size = int | Sequence[int]


def _pair(value: _Size, name: str) -> tuple[int, int]:
    if isinstance(value, int):
        return value, value
    if len(value) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(value)}")
    return value[0], value[1]


def _settings(
    kernel_size: _Size, dilation: _Size, padding: _Size, stride: _Size
) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int], tuple[int, int]]:
    kernel, dilate, pad, step = (
        _pair(v, n)
        for v, n in (
            (kernel_size, "kernel_size"),
            (dilation, "dilation"),
            (padding, "padding"),
            (stride, "stride"),
        )
    )
    if min(kernel) <= 0:
        raise RuntimeError(
            f"kernel size should be greater than zero, but got kernel_height: {kernel[0]} kernel_width: {kernel[1]}"
        )
    if min(dilate) <= 0:
        raise RuntimeError(
            f"dilation should be greater than zero, but got dilation_height: {dilate[0]} dilation_width: {dilate[1]}"
        )
    if min(pad) < 0:
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {pad[0]} pad_width: {pad[1]}")
    if min(step) <= 0:
        raise RuntimeError(
            f"stride should be greater than zero, but got stride_height: {step[0]} stride_width: {step[1]}"
        )
    return kernel, dilate, pad, step


def _blocks(
    size: tuple[int, int],
    kernel: tuple[int, int],
    dilate: tuple[int, int],
    pad: tuple[int, int],
    step: tuple[int, int],
) -> tuple[int, int]:
    """How many blocks there are along each dimension of an image of `size`."""
    rows, columns = (
        (n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(size, kernel, dilate, pad, step, strict=True)
    )
    return rows, columns


@functools.lru_cache(maxsize=32)
def _places(
    width: int, kernel: tuple[int, int], dilate: tuple[int, int], step: tuple[int, int], blocks: tuple[int, int]
) -> npt.NDArray[np.int64]:
    """Where the elements of all blocks are in a padded image with rows of `width`, in unfolded order."""
    row, column = (
        np.arange(k)[:, None] * d + np.arange(b) * s for k, d, s, b in zip(kernel, dilate, step, blocks, strict=True)
    )
    return (row[:, None, :, None] * width + column[None, :, None, :]).reshape(-1)


def unfold(input: Tensor, kernel_size: _Size, dilation: _Size = 1, padding: _Size = 0, stride: _Size = 1) -> Tensor:
    """The sliding blocks of images ``(N, C, H, W)`` or ``(C, H, W)`` as columns: ``(N, C · kernel, blocks)``.

    Sizes that are not positive, a negative padding, and a kernel that does not fit are a ``RuntimeError``.
    """
    kernel, dilate, pad, step = _settings(kernel_size, dilation, padding, stride)
    if input.dim() not in (3, 4) or not all(input.shape[-3:]):
        raise (RuntimeError if input.dim() else IndexError)(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {list(input.shape)}\nin unfold()"
        )
    height, width = input.shape[-2:]
    blocks = _blocks((height, width), kernel, dilate, pad, step)
    if min(blocks) < 1:
        raise RuntimeError(
            f"Given input with spatial size {(height, width)}, kernel_size={kernel}, dilation={dilate}, padding={pad}, "
            f"calculated shape of the array of sliding blocks as {blocks}, but its components must be at least one."
            "\nin unfold()"
        )
    if not (input.is_floating_point() or input.is_complex()):
        raise NotImplementedError(f'"unfold" not implemented for {input.dtype}')
    images = input if input.dim() == 4 else input.unsqueeze(0)
    if max(pad):
        images = rushlight.constant_pad_nd(images, [pad[1], pad[1], pad[0], pad[0]])
    places = _places(width + 2 * pad[1], kernel, dilate, step, blocks)
    columns = images.flatten(2).index_select(2, rushlight.from_numpy(places))
    columns = columns.reshape(images.shape[0], images.shape[1] * kernel[0] * kernel[1], blocks[0] * blocks[1])
    return columns if input.dim() == 4 else columns.squeeze(0)


def fold(
    input: Tensor,
    output_size: _Size,
    kernel_size: _Size,
    dilation: _Size = 1,
    padding: _Size = 0,
    stride: _Size = 1,
) -> Tensor:
    """Images of `output_size` that are the sums of blocks: ``(N, C · kernel, blocks)`` to ``(N, C, *output_size)``.

    The transpose of :func:`unfold`. Settings as there; rows or columns that do not fit them are a ``RuntimeError``.
    """
    kernel, dilate, pad, step = _settings(kernel_size, dilation, padding, stride)
    height, width = _pair(output_size, "output_size")
    if input.dim() not in (2, 3) or not all(input.shape[-2:]):
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(input.shape)}\nin fold()"
        )
    area = kernel[0] * kernel[1]
    if input.shape[-2] % area:
        raise RuntimeError(
            f"Expected size of input's dimension {input.dim() - 2} to be divisible by the product of kernel_size, "
            f"but got input.size({input.dim() - 2})={input.shape[-2]} and kernel_size={kernel}.\nin fold()"
        )
    blocks = _blocks((height, width), kernel, dilate, pad, step)
    if min(blocks) < 1 or input.shape[-1] != blocks[0] * blocks[1]:
        raise RuntimeError(
            f"Given output_size={(height, width)}, kernel_size={kernel}, dilation={dilate}, padding={pad}, "
            f"stride={step}, expected size of input's dimension {input.dim() - 1} to match the calculated number of "
            f"sliding blocks {blocks[0]} * {blocks[1]} = {blocks[0] * blocks[1]}, "
            f"but got input.size({input.dim() - 1})={input.shape[-1]}.\nin fold()"
        )
    if not (input.is_floating_point() or input.is_complex()):
        raise NotImplementedError(f'"fold" not implemented for {input.dtype}')
    columns = input if input.dim() == 3 else input.unsqueeze(0)
    batch, channels = columns.shape[0], columns.shape[1] // area
    padded = (height + 2 * pad[0], width + 2 * pad[1])
    places = rushlight.from_numpy(_places(padded[1], kernel, dilate, step, blocks))
    images = columns.new_zeros(batch, channels, padded[0] * padded[1])
    images = images.index_add(2, places, columns.reshape(batch, channels, area * blocks[0] * blocks[1])).unflatten(
        2, padded
    )
    if max(pad):
        images = images[:, :, pad[0] : pad[0] + height, pad[1] : pad[1] + width].contiguous()
    return images if input.dim() == 3 else images.squeeze(0)
