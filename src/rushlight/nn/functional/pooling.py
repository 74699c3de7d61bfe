"""Pooling by maximum, average and power, with fractional and adaptive windows, and the reverse of max pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import Tensor

from ...operators.operation import every_sample
from .._sizes import _list_with_default, _ntuple, _pair, _single, _triple

__all__ = [
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]


# Maximum ------------------------------------------------------------------------------------------------------------


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """The maximum of each window of `input` (N, C, L) or (C, L), and its index in the row."""
    stride = kernel_size if stride is None else stride
    return rushlight.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of `input` (N, C, L) or (C, L); with `return_indices` also its index in the row."""
    stride = kernel_size if stride is None else stride
    if return_indices:
        return rushlight.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return rushlight.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """The maximum of each window of `input` (N, C, H, W) or (C, H, W), and its index in the flattened plane."""
    stride = kernel_size if stride is None else stride
    return rushlight._C._nn.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of `input` (N, C, H, W) or (C, H, W); with `return_indices` also its index."""
    stride = kernel_size if stride is None else stride
    if return_indices:
        return rushlight._C._nn.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return rushlight.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """The maximum of each window of `input` (N, C, D, H, W) or (C, D, H, W), and its index in the flattened volume."""
    stride = kernel_size if stride is None else stride
    return rushlight._C._nn.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of `input` (N, C, D, H, W) or (C, D, H, W); with `return_indices` also its index."""
    stride = kernel_size if stride is None else stride
    if return_indices:
        return rushlight._C._nn.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return rushlight.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)


# Unpooling ----------------------------------------------------------------------------------------------------------


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Put each maximum back to its index in a row of zeros; see `max_unpool2d`."""
    return _unpool(input, indices, _single(kernel_size), stride, padding, output_size)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Put each maximum back to its index in a plane of zeros: a right inverse of `max_pool2d`.

    `output_size` chooses among the sizes whose pooling has the size of `input`; one out of that range raises
    ValueError, an index out of the plane RuntimeError.
    """
    return _unpool(input, indices, _pair(kernel_size), stride, padding, output_size)


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Put each maximum back to its index in a volume of zeros; see `max_unpool2d`."""
    return _unpool(input, indices, _triple(kernel_size), stride, padding, output_size)


def _unpool(
    input: Tensor, indices: Tensor, kernel_size: tuple[int, ...], stride: Any, padding: Any, output_size: Any
) -> Tensor:
    dims = len(kernel_size)
    if input.dim() not in (dims + 1, dims + 2):
        # PyTorch runs the 1-d case as a 2-d one and says so.
        shown = max(dims, 2)
        raise RuntimeError(
            f"Input to max_unpooling{shown}d should be a {shown + 1}d or {shown + 2}d Tensor, but got a tensor with "
            f"{input.dim() + shown - dims} dimensions.\nin max_unpool{dims}d()"
        )
    if input.is_complex():
        raise NotImplementedError(f'"max_unpool{max(dims, 2)}d" not implemented for {input.dtype}')
    if indices.dtype != rushlight.int64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype}\nin max_unpool{dims}d()")
    if indices.shape != input.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got indices "
            f"tensor with shape: {list(indices.shape)}\nin max_unpool{dims}d()"
        )
    spread = _ntuple(dims)
    stride = kernel_size if stride is None else spread(stride)
    size = _unpool_output_size(input, kernel_size, stride, spread(padding), output_size)
    volume = math.prod(size)
    places = every_sample(indices)
    outside = (places < 0) | (places >= volume)
    if outside.any():
        shown_size = "x".join(map(str, size if dims > 1 else (*size, 1)))
        raise RuntimeError(
            f"Found an invalid max index: {places[outside][0].item()} (output volumes are of size {shown_size})"
            f"\nin max_unpool{dims}d()"
        )
    outer = input.shape[: input.dim() - dims]
    zeros = input.new_zeros((*outer, volume))
    flat = input.reshape(*outer, -1)
    return zeros.scatter(-1, indices.reshape(flat.shape), flat).view(*outer, *size)


def _unpool_output_size(
    input: Tensor, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int], output_size: Any
) -> list[int]:
    dims = len(kernel_size)
    pooled = input.shape[input.dim() - dims :]
    smallest = [
        (size - 1) * step + kernel - 2 * pad
        for size, kernel, step, pad in zip(pooled, kernel_size, stride, padding, strict=True)
    ]
    if output_size is None:
        return smallest
    if len(output_size) not in (dims, dims + 2):
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of "
            f"'{len(output_size)}'\nin max_unpool{dims}d()"
        )
    chosen = list(output_size)[len(output_size) - dims :]
    for dim, (size, default, step) in enumerate(zip(chosen, smallest, stride, strict=True)):
        if not default - step < size < default + step:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {dim} must be between {default - step} and {default + step})'
                f"\nin max_unpool{dims}d()"
            )
    return chosen


# Adaptive -----------------------------------------------------------------------------------------------------------


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Average `input` (N, C, H, W) or (C, H, W) down to planes of `output_size`; None keeps a size."""
    return rushlight._C._nn.adaptive_avg_pool2d(input, _list_with_default(output_size, input.size()))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Average `input` (N, C, D, H, W) or (C, D, H, W) down to volumes of `output_size`; None keeps a size."""
    return rushlight._C._nn.adaptive_avg_pool3d(input, _list_with_default(output_size, input.size()))


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Maxima of `input` (N, C, L) or (C, L) over rows of `output_size` windows, and their indices."""
    return rushlight.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of `input` (N, C, L) or (C, L) over rows of `output_size` windows; with `return_indices` also theirs."""
    result = rushlight.adaptive_max_pool1d(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Maxima of `input` (N, C, H, W) or (C, H, W) over planes of `output_size` windows, and their indices."""
    return rushlight._C._nn.adaptive_max_pool2d(input, _list_with_default(output_size, input.size()))


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of `input` (N, C, H, W) or (C, H, W) over planes of `output_size` windows; None keeps a size."""
    result = adaptive_max_pool2d_with_indices(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Maxima of `input` (N, C, D, H, W) or (C, D, H, W) over volumes of `output_size` windows, and their indices."""
    return rushlight._C._nn.adaptive_max_pool3d(input, _list_with_default(output_size, input.size()))


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of `input` (N, C, D, H, W) or (C, D, H, W) over volumes of `output_size` windows; None keeps a size."""
    result = adaptive_max_pool3d_with_indices(input, output_size)
    return result if return_indices else result[0]


# Powers -------------------------------------------------------------------------------------------------------------


def _power_pool(pool: Any, input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Tensor:
    """(Σ x^p)^(1/p) over windows; a sum that is negative, as odd powers give, becomes 0 times its sign."""
    stride = kernel_size if stride is None else stride
    means: Tensor = pool(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return (means.sign() * means.abs().relu()).mul(math.prod(kernel_size)).pow(1.0 / norm_type)


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(Σ x^p)^(1/p) over each window of `input` (N, C, L) or (C, L), with p = `norm_type`."""
    return _power_pool(rushlight.avg_pool1d, input, norm_type, _single(kernel_size), stride, ceil_mode)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(Σ x^p)^(1/p) over each window of `input` (N, C, H, W) or (C, H, W), with p = `norm_type`."""
    return _power_pool(rushlight._C._nn.avg_pool2d, input, norm_type, _pair(kernel_size), stride, ceil_mode)


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(Σ x^p)^(1/p) over each window of `input` (N, C, D, H, W) or (C, D, H, W), with p = `norm_type`."""
    return _power_pool(rushlight._C._nn.avg_pool3d, input, norm_type, _triple(kernel_size), stride, ceil_mode)


# Fractional ---------------------------------------------------------------------------------------------------------


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Maxima over windows at random, nearly even places of `input` (N, C, H, W) or (C, H, W), and their indices.

    The size of the result is `output_size` or the share `output_ratio` of the input's; neither raises ValueError, a
    size that does not fit RuntimeError. From "Fractional max-pooling", Graham 2014 (the pseudo-random variant).
    """
    return _fractional_pool(2, input, _pair(kernel_size), output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Maxima over windows at random, nearly even places; see `fractional_max_pool2d_with_indices`."""
    result = _fractional_pool(2, input, _pair(kernel_size), output_size, output_ratio, _random_samples)
    return result if return_indices else result[0]


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Maxima over windows at random, nearly even places of `input` (N, C, D, H, W) or (C, D, H, W), and their indices.

    See `fractional_max_pool2d_with_indices`.
    """
    return _fractional_pool(3, input, _triple(kernel_size), output_size, output_ratio, _random_samples)


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Maxima over windows at random, nearly even places; see `fractional_max_pool2d_with_indices`."""
    result = _fractional_pool(3, input, _triple(kernel_size), output_size, output_ratio, _random_samples)
    return result if return_indices else result[0]


def _fractional_pool(
    dims: int, input: Tensor, kernel_size: tuple[int, ...], output_size: Any, output_ratio: Any, samples: Tensor | None
) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{dims}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if input.dim() not in (dims + 1, dims + 2):
        kind = IndexError if input.dim() < dims else RuntimeError
        raise kind(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got: {list(input.shape)}")
    spatial = input.shape[input.dim() - dims :]
    spread = _ntuple(dims)
    if output_size is None:
        ratios = spread(output_ratio)
        size = tuple(int(full * ratio) for full, ratio in zip(spatial, ratios, strict=False))
    else:
        ratios, size = (), spread(output_size)
    for argument, value in (("kernel_size", kernel_size), ("output_size", size), ("output_ratio", ratios or size)):
        if len(value) != dims:
            raise RuntimeError(f"{name}: {argument} must either be a single Int or tuple of Ints")
    for what, kernel, out, full in zip(
        ("time", "height", "width")[3 - dims :], kernel_size, size, spatial, strict=True
    ):
        if out + kernel - 1 > full - (dims == 3):  # PyTorch wants one number more in three dimensions
            raise RuntimeError(f"{name}(): pool {what} {kernel} too large relative to input {what} {full}")
    planes = input if input.dim() == dims + 2 else input.unsqueeze(0)
    batch, channels = planes.shape[:2]
    if samples is None:
        samples = rushlight.rand(batch, channels, dims, dtype=input.dtype, device=input.device)
    _check_samples(samples, planes, dims)
    flat = planes.flatten(2)
    with rushlight.no_grad():
        windows = _window_places(samples[:batch], spatial, size, kernel_size)
        numbers = flat.gather(2, windows.flatten(2)).reshape(windows.shape)
        places = windows.gather(3, numbers.argmax(3, keepdim=True)).squeeze(3)
    shape = (*input.shape[: input.dim() - dims], *size)
    return flat.gather(2, places).reshape(shape), places.reshape(shape)


def _check_samples(samples: Tensor, planes: Tensor, dims: int) -> None:
    if samples.dtype != planes.dtype:
        raise RuntimeError(f"Expect _random_samples to have the same dtype as input\nin fractional_max_pool{dims}d()")
    if samples.dim() != 3:
        raise RuntimeError(
            f"Expect _random_samples to have 3 dimensions, got {samples.dim()}\nin fractional_max_pool{dims}d()"
        )
    if samples.size(0) < planes.size(0):
        raise RuntimeError(
            f"Expect _random_samples.size(0) no less then input batch size.\nin fractional_max_pool{dims}d()"
        )
    if samples.size(1) != planes.size(1):
        raise RuntimeError(
            f"Expect _random_samples.size(1) equals to input channel size.\nin fractional_max_pool{dims}d()"
        )
    if samples.size(2) != dims:
        raise RuntimeError(
            f"Expect _random_samples.size(2) equals to {dims}; got {samples.size(2)}.\nin fractional_max_pool{dims}d()"
        )


def _window_places(samples: Tensor, spatial: Sequence[int], size: Sequence[int], kernel_size: Sequence[int]) -> Tensor:
    """Flat indices (N, C, windows, numbers of a window), the windows at places that `samples` (N, C, dims) choose."""
    dims = len(spatial)
    batch, channels = samples.shape[:2]
    places = rushlight.zeros((batch, channels) + (1,) * (2 * dims), dtype=rushlight.int64)
    for dim, (full, out, kernel) in enumerate(zip(spatial, size, kernel_size, strict=True)):
        # In two dimensions PyTorch takes the samples from the last dimension to the first.
        sample = samples[:, :, dim if dims == 3 else dims - 1 - dim].unsqueeze(-1)
        last = full - kernel
        starts = rushlight.full((batch, channels, min(out, 1)), last, dtype=rushlight.int64)
        if out > 1:
            step = last / (out - 1)
            moved = (rushlight.arange(out - 1, dtype=samples.dtype) + sample) * step
            starts = rushlight.cat([moved.long() - (sample * step).long(), starts], 2)
        shape = [batch, channels] + [1] * (2 * dims)
        shape[2 + dim], shape[2 + dims + dim] = out, kernel
        within = starts.unsqueeze(-1) + rushlight.arange(kernel)
        places = places * full + within.reshape(shape)
    return places.reshape(batch, channels, math.prod(size), math.prod(kernel_size))
