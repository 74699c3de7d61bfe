"""Convolution layers, plain and transposed, in one to three dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import Tensor

from .. import functional as F
from .. import init
from .._sizes import _ntuple, _spatial
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module
from .utils import _reverse_repeat_tuple

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]


class _ConvNd(Module):
    """What all convolutions share: sizes, weight and bias.

    `weight` is (out, in / groups, *kernel), transposed (in, out / groups, *kernel); `bias` is (out). Both start
    uniformly in ±1/sqrt(fan in). Channels that `groups` does not divide, and options that do not go together, raise
    ValueError.
    """

    bias: Tensor | None
    weight: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(
                "padding_mode must be one of {'zeros', 'circular', 'replicate', 'reflect'}, "
                f"but got padding_mode='{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding: Any = padding  # sizes, or a name where the convolution is not transposed
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        # What functional.pad takes, for the padding modes that the convolution itself does not know.
        self._reversed_padding_repeated_twice = self._pad_argument()
        if transposed:
            shape = (in_channels, out_channels // groups, *kernel_size)
        else:
            shape = (out_channels, in_channels // groups, *kernel_size)
        self.weight = Parameter(rushlight.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(rushlight.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _pad_argument(self) -> Sequence[int]:
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        sides: list[int] = []
        for step, size in zip(reversed(self.dilation), reversed(self.kernel_size), strict=False):
            total = step * (size - 1) if self.padding == "same" else 0
            sides += (total // 2, total - total // 2)
        return sides

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        # With slope sqrt(5) the bound of kaiming_uniform_ is 1 / sqrt(fan in).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _input_shapes(self) -> tuple[tuple[Any, ...], ...]:
        sample = (self.in_channels or "C", *_spatial(len(self.stride)))  # no number: to be taken from the input
        return (("N", *sample), sample)

    def extra_repr(self) -> str:
        shown = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * len(self.padding):
            shown += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            shown += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            shown += f", output_padding={self.output_padding}"
        if self.groups != 1:
            shown += f", groups={self.groups}"
        if self.bias is None:
            shown += ", bias=False"
        if self.padding_mode != "zeros":
            shown += f", padding_mode={self.padding_mode}"
        return shown

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # Early versions of PyTorch had no padding modes.
        self.__dict__.setdefault("padding_mode", "zeros")


class _PlainConv(_ConvNd):
    """A convolution in `_dims` dimensions, which a subclass sets together with `_convolve`."""

    _dims: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: str | int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        spread = _ntuple(self._dims)
        super().__init__(
            in_channels,
            out_channels,
            spread(kernel_size),
            spread(stride),
            padding if isinstance(padding, str) else spread(padding),
            spread(dilation),
            False,
            spread(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode == "zeros":
            return self._convolve(input, weight, bias, self.padding)
        padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return self._convolve(padded, weight, bias, 0)

    def _convolve(self, input: Tensor, weight: Tensor, bias: Tensor | None, padding: Any) -> Tensor:
        raise NotImplementedError(f"{self._get_name()} does not say how it convolves")

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_PlainConv):
    """Cross-correlation of an input (N, C, L) or (C, L) with `weight`, plus `bias`; see `functional.conv1d`.

    The output has length (L + 2 · padding - dilation · (kernel_size - 1) - 1) / stride + 1, rounded down. `padding` may
    also be "valid" (none) or "same" (the output as long as the input, for stride 1).
    """

    _dims = 1

    def _convolve(self, input: Tensor, weight: Tensor, bias: Tensor | None, padding: Any) -> Tensor:
        return F.conv1d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv2d(_PlainConv):
    """Cross-correlation of an input (N, C, H, W) or (C, H, W) with `weight`, plus `bias`; see `functional.conv2d`.

    Each output dimension has size (size + 2 · padding - dilation · (kernel_size - 1) - 1) / stride + 1, rounded down.
    `padding` may also be "valid" (none) or "same" (the output as large as the input, for stride 1).
    """

    _dims = 2

    def _convolve(self, input: Tensor, weight: Tensor, bias: Tensor | None, padding: Any) -> Tensor:
        return F.conv2d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv3d(_PlainConv):
    """Cross-correlation of an input (N, C, D, H, W) or (C, D, H, W) with `weight`, plus `bias`.

    Each output dimension has size (size + 2 · padding - dilation · (kernel_size - 1) - 1) / stride + 1, rounded down.
    `padding` may also be "valid" (none) or "same" (the output as large as the input, for stride 1).
    """

    _dims = 3

    def _convolve(self, input: Tensor, weight: Tensor, bias: Tensor | None, padding: Any) -> Tensor:
        return F.conv3d(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution in `_dims` dimensions, which a subclass sets together with `forward`."""

    _dims: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | tuple[int, ...] = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        spread = _ntuple(self._dims)
        super().__init__(
            in_channels,
            out_channels,
            spread(kernel_size),
            spread(stride),
            spread(padding),
            spread(dilation),
            True,
            spread(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None) -> Sequence[int]:
        """What to add at the far ends so that the result has `output_size`; ValueError if it cannot have it."""
        if output_size is None:
            return self.output_padding
        dims = self._dims
        leading = input.dim() - dims
        if len(output_size) == leading + dims:
            output_size = output_size[leading:]
        if len(output_size) != dims:
            raise ValueError(
                f"ConvTranspose{dims}D: for {input.dim()}D input, output_size must have {dims} or {input.dim()} "
                f"elements (got {len(output_size)})"
            )
        smallest = [
            (input.size(leading + d) - 1) * self.stride[d]
            - 2 * self.padding[d]
            + self.dilation[d] * (self.kernel_size[d] - 1)
            + 1
            for d in range(dims)
        ]
        largest = [size + step - 1 for size, step in zip(smallest, self.stride, strict=True)]
        if any(not low <= size <= high for low, size, high in zip(smallest, output_size, largest, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {smallest} to {largest} "
                f"(for an input of {input.size()[leading:]})"
            )
        return [size - low for size, low in zip(output_size, smallest, strict=True)]

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        padding = self._output_padding(input, output_size)
        return self._convolve(input, padding)

    def _convolve(self, input: Tensor, output_padding: Sequence[int]) -> Tensor:
        raise NotImplementedError(f"{self._get_name()} does not say how it convolves")


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose of a `Conv1d` on an input (N, C, L) or (C, L): its map from output to input, plus `bias`.

    The output has length (L - 1) · stride - 2 · padding + dilation · (kernel_size - 1) + output_padding + 1; the
    `output_size` of a call chooses another `output_padding`.
    """

    _dims = 1

    def _convolve(self, input: Tensor, output_padding: Sequence[int]) -> Tensor:
        return F.conv_transpose1d(
            input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups, self.dilation
        )


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of a `Conv2d` on an input (N, C, H, W) or (C, H, W): its map from output to input, plus `bias`.

    Each output dimension has size (size - 1) · stride - 2 · padding + dilation · (kernel_size - 1) + output_padding
    + 1; the `output_size` of a call chooses another `output_padding`.
    """

    _dims = 2

    def _convolve(self, input: Tensor, output_padding: Sequence[int]) -> Tensor:
        return F.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups, self.dilation
        )


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of a `Conv3d` on an input (N, C, D, H, W) or (C, D, H, W): from output to input, plus `bias`.

    Each output dimension has size (size - 1) · stride - 2 · padding + dilation · (kernel_size - 1) + output_padding
    + 1; the `output_size` of a call chooses another `output_padding`.
    """

    _dims = 3

    def _convolve(self, input: Tensor, output_padding: Sequence[int]) -> Tensor:
        return F.conv_transpose3d(
            input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups, self.dilation
        )


class _LazyConv(LazyModuleMixin, _ConvNd):
    """A convolution whose `in_channels` is the number of channels of the first input.

    Its signature is that of the convolution without `in_channels`.
    """

    weight: UninitializedParameter
    bias: UninitializedParameter | None

    def _make_lazy(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        """After the base class has set up a convolution without channels, take the true parameters."""
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        self.in_channels = self._get_in_channels(input)
        if not self.has_uninitialized_params():
            return
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        channels = (self.out_channels, self.in_channels // self.groups)
        if self.transposed:
            channels = (self.in_channels, self.out_channels // self.groups)
        self.weight.materialize((*channels, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        dims = len(self.kernel_size)
        if input.dim() not in (dims + 1, dims + 2):
            raise RuntimeError(
                f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {type(self).__name__}, but got "
                f"input of size: {input.shape}"
            )
        return input.shape[-1 - dims]


class _LazyPlainConv(_LazyConv, _PlainConv):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._make_lazy(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConv, _ConvTransposeNd):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | tuple[int, ...] = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        )
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyPlainConv, Conv1d):
    """A `Conv1d` whose `in_channels` is the number of channels of the first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyPlainConv, Conv2d):
    """A `Conv2d` whose `in_channels` is the number of channels of the first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyPlainConv, Conv3d):
    """A `Conv3d` whose `in_channels` is the number of channels of the first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A `ConvTranspose1d` whose `in_channels` is the number of channels of the first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A `ConvTranspose2d` whose `in_channels` is the number of channels of the first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A `ConvTranspose3d` whose `in_channels` is the number of channels of the first input."""

    cls_to_become = ConvTranspose3d
