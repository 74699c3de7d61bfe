"""Pooling layers and the reverse of max pooling, in one to three dimensions."""

from __future__ import annotations

from typing import Any

from rushlight import Tensor

from .. import functional as F
from .._sizes import _ntuple, _single, _spatial, _triple
from .module import Module

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]

_Sizes = int | tuple[int, ...]


class _Pool(Module):
    """What all pooling layers share: they work on the last `_dims` dimensions, which a subclass sets."""

    _dims: int

    def _input_shapes(self) -> tuple[tuple[Any, ...], ...]:
        plane = ("C", *_spatial(self._dims))
        return ("N", *plane), plane


class _MaxPoolNd(_Pool):
    """What max pooling layers share: windows of `kernel_size`, `stride` apart (by default as far as they are long).

    The input is padded by -inf; with `ceil_mode` a window may begin in it and end outside; `return_indices` adds the
    place of each maximum.
    """

    return_indices: bool
    ceil_mode: bool

    def __init__(
        self,
        kernel_size: _Sizes,
        stride: _Sizes | None = None,
        padding: _Sizes = 0,
        dilation: _Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _arguments(self) -> tuple[Any, ...]:
        return self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of an input (N, C, L) or (C, L)."""

    _dims = 1

    def forward(self, input: Tensor) -> Any:
        return F.max_pool1d(input, *self._arguments())


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of an input (N, C, H, W) or (C, H, W)."""

    _dims = 2

    def forward(self, input: Tensor) -> Any:
        return F.max_pool2d(input, *self._arguments())


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of an input (N, C, D, H, W) or (C, D, H, W)."""

    _dims = 3

    def forward(self, input: Tensor) -> Any:
        return F.max_pool3d(input, *self._arguments())


class _MaxUnpoolNd(_Pool):
    """What unpooling layers share; the sizes are those of the pooling that is to be reversed."""

    def __init__(self, kernel_size: _Sizes, stride: _Sizes | None = None, padding: _Sizes = 0) -> None:
        super().__init__()
        spread = _ntuple(self._dims)
        self.kernel_size = spread(kernel_size)
        self.stride = spread(kernel_size if stride is None else stride)
        self.padding = spread(padding)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts each maximum of a `MaxPool1d` back to its index, and zeros elsewhere; see `functional.max_unpool2d`."""

    _dims = 1

    def forward(self, input: Tensor, indices: Tensor, output_size: list[int] | None = None) -> Tensor:
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts each maximum of a `MaxPool2d` back to its index, and zeros elsewhere; see `functional.max_unpool2d`."""

    _dims = 2

    def forward(self, input: Tensor, indices: Tensor, output_size: list[int] | None = None) -> Tensor:
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts each maximum of a `MaxPool3d` back to its index, and zeros elsewhere; see `functional.max_unpool2d`."""

    _dims = 3

    def forward(self, input: Tensor, indices: Tensor, output_size: list[int] | None = None) -> Tensor:
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _AvgPoolNd(_Pool):
    """What average pooling layers share.

    With `count_include_pad` the zeros of the padding count for the average; `divisor_override` divides by another
    number than that of the window's entries.
    """

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The average of each window of an input (N, C, L) or (C, L)."""

    _dims = 1

    def __init__(
        self,
        kernel_size: int | tuple[int],
        stride: int | tuple[int] | None = None,
        padding: int | tuple[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(kernel_size if stride is None else stride)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolWithDivisor(_AvgPoolNd):
    def __init__(
        self,
        kernel_size: _Sizes,
        stride: _Sizes | None = None,
        padding: _Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _arguments(self) -> tuple[Any, ...]:
        sizes = self.kernel_size, self.stride, self.padding
        return *sizes, self.ceil_mode, self.count_include_pad, self.divisor_override


class AvgPool2d(_AvgPoolWithDivisor):
    """The average of each window of an input (N, C, H, W) or (C, H, W)."""

    _dims = 2

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(input, *self._arguments())


class AvgPool3d(_AvgPoolWithDivisor):
    """The average of each window of an input (N, C, D, H, W) or (C, D, H, W)."""

    _dims = 3

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(input, *self._arguments())


class _FractionalMaxPoolNd(_Pool):
    """What fractional max pooling layers share.

    Either `output_size` or `output_ratio` (between 0 and 1) must be given (ValueError).
    """

    _dims: int

    def __init__(
        self,
        kernel_size: _Sizes,
        output_size: _Sizes | None = None,
        output_ratio: float | tuple[float, ...] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        spread = _ntuple(self._dims)
        self.kernel_size = spread(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else spread(output_size)
        self.output_ratio = None if output_ratio is None else spread(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{self._get_name()} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def _arguments(self) -> tuple[Any, ...]:
        return self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maxima over windows at random, nearly even places of an input (N, C, H, W) or (C, H, W).

    See `functional.fractional_max_pool2d_with_indices`.
    """

    _dims = 2

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool2d(input, *self._arguments())


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maxima over windows at random, nearly even places of an input (N, C, D, H, W) or (C, D, H, W).

    See `functional.fractional_max_pool2d_with_indices`. A `kernel_size` below one raises ValueError.
    """

    _dims = 3

    def __init__(
        self,
        kernel_size: _Sizes,
        output_size: _Sizes | None = None,
        output_ratio: float | tuple[float, ...] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        if any(size <= 0 for size in _triple(kernel_size)):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        super().__init__(kernel_size, output_size, output_ratio, return_indices, _random_samples)

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool3d(input, *self._arguments())


class _LPPoolNd(_Pool):
    """What power pooling layers share."""

    norm_type: float
    ceil_mode: bool

    def __init__(
        self, norm_type: float, kernel_size: _Sizes, stride: _Sizes | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """(Σ x^p)^(1/p) over each window of an input (N, C, L) or (C, L), with p = `norm_type`."""

    _dims = 1

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPoolNd):
    """(Σ x^p)^(1/p) over each window of an input (N, C, H, W) or (C, H, W), with p = `norm_type`."""

    _dims = 2

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_LPPoolNd):
    """(Σ x^p)^(1/p) over each window of an input (N, C, D, H, W) or (C, D, H, W), with p = `norm_type`."""

    _dims = 3

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class _AdaptivePoolNd(_Pool):
    """What adaptive pooling layers share: `output_size`, where None keeps the input's size."""

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveMaxPoolNd(_AdaptivePoolNd):
    """What adaptive max pooling layers share; `return_indices` adds the place of each maximum."""

    return_indices: bool

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima of an input (N, C, L) or (C, L) over `output_size` windows."""

    _dims = 1

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima of an input (N, C, H, W) or (C, H, W) over planes of `output_size` windows."""

    _dims = 2

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima of an input (N, C, D, H, W) or (C, D, H, W) over volumes of `output_size` windows."""

    _dims = 3

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class AdaptiveAvgPool1d(_AdaptivePoolNd):
    """Averages of an input (N, C, L) or (C, L) over `output_size` windows."""

    _dims = 1

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptivePoolNd):
    """Averages of an input (N, C, H, W) or (C, H, W) over planes of `output_size` windows."""

    _dims = 2

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptivePoolNd):
    """Averages of an input (N, C, D, H, W) or (C, D, H, W) over volumes of `output_size` windows."""

    _dims = 3

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)
