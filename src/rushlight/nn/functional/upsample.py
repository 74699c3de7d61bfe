"""Images, signals and volumes at another size.

Every mode is a table for each axis: the places in the input from which an output element is made and, except for the
nearest, their weights. Tables are NumPy arrays, made once for each pair of sizes; the work on the tensor is one gather
and one weighted sum for each axis, so that the derivatives need no formula of their own.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import rushlight
from rushlight import Tensor

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

_Reals = npt.NDArray[Any]
_Places = npt.NDArray[np.int64]

_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
_DIMENSIONS = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5, "lanczos": 4}


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """`input` ``(N, C, *d)`` with one to three dimensions ``d`` resized to `size`, or by `scale_factor` (rounded down).

    `mode` is ``"nearest"``, ``"nearest-exact"`` (whose centres agree with other libraries), ``"area"``, ``"linear"``
    (one dimension), ``"bilinear"``, ``"bicubic"`` (two), ``"lanczos"`` (two, with `antialias`) or ``"trilinear"``
    (three). `align_corners` makes the first and last elements coincide, else the borders do. A given `scale_factor` is
    the step through the input unless `recompute_scale_factor` has it derived from the sizes. `antialias` widens the
    filter where the image shrinks. The input is floating point, or uint8, which is computed in float32 and rounded.
    Combinations that do not fit are a ``ValueError``, a mode for other dimensions a ``NotImplementedError``.
    """
    if align_corners is None:
        align_corners = False
    elif mode in ("nearest", "area", "nearest-exact"):
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
            "\nin interpolate()"
        )
    sizes, scales = _target(input, size, scale_factor, recompute_scale_factor)
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
            "\nin interpolate()"
        )
    _check_mode(input, mode, align_corners, antialias)
    if mode == "area":
        return _area(input, sizes)
    _check_sizes(input, sizes, mode)
    if mode.startswith("nearest"):
        return _nearest(input, sizes, scales, mode == "nearest-exact")
    return _weighted(input, sizes, scales, mode, align_corners, antialias)


def _target(
    input: Tensor,
    size: int | Sequence[int] | None,
    scale_factor: float | Sequence[float] | None,
    recompute_scale_factor: bool | None,
) -> tuple[list[int], list[float | None]]:
    """The output's sizes, and the factors where they are to be used as given."""
    dims = input.dim() - 2
    given = list(input.shape[2:])
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined\nin interpolate()")
    if size is not None:
        if recompute_scale_factor:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.\nin interpolate()")
        return _sizes(size, given), [None] * dims
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined\nin interpolate()")
    if isinstance(scale_factor, (list, tuple)):
        if len(scale_factor) != dims:
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {given} and scale_factor of shape {scale_factor}. Please provide input tensor in "
                "(N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format.\nin interpolate()"
            )
        factors = [float(s) for s in scale_factor]
    else:
        factors = [float(scale_factor)] * dims  # type: ignore[arg-type]
    sizes = [math.floor(n * s) for n, s in zip(given, factors, strict=True)]
    return sizes, [None if recompute_scale_factor else s for s in factors]


def _sizes(size: int | Sequence[int], given: list[int]) -> list[int]:
    if not isinstance(size, (list, tuple)):
        return [_integer(size)] * len(given)
    if len(size) != len(given):
        raise ValueError(
            "Input and output must have the same number of spatial dimensions, but got input with spatial dimensions "
            f"of {given} and output size of {size}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
            "output size in (o1, o2, ...,oK) format.\nin interpolate()"
        )
    return [_integer(n) for n in size]


def _integer(size: Any) -> int:
    try:
        return int(size.__index__())
    except AttributeError:
        raise TypeError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], "
            f"but got size with types {type(size)}"
        ) from None


def _check_mode(input: Tensor, mode: str, align_corners: bool, antialias: bool) -> None:
    dim = input.dim()
    if mode in ("linear", "bilinear", "trilinear") and dim in (3, 4, 5) and dim != _DIMENSIONS[mode]:
        raise NotImplementedError(
            f"Got {dim}D input, but {mode} mode needs {_DIMENSIONS[mode]}D input\nin interpolate()"
        )
    known = mode in _DIMENSIONS or mode in ("nearest", "nearest-exact", "area")
    if dim not in (3, 4, 5) or not known or _DIMENSIONS.get(mode, dim) != dim:
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {dim}D) for the modes: {_MODES} (got {mode})"
            "\nin interpolate()"
        )
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True\nin interpolate()")
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True\nin interpolate()")
    if not input.is_floating_point() and not (input.dtype == rushlight.uint8 and mode != "area"):
        raise NotImplementedError(f'"interpolate" in mode {mode} not implemented for {input.dtype}')


def _check_sizes(input: Tensor, sizes: list[int], mode: str) -> None:
    if any(n <= 0 for n in input.shape[2:]) or any(n <= 0 for n in sizes):
        names = "DHW"[-len(sizes) :]
        before, after = (
            ", ".join(f"{k}: {n}" for k, n in zip(names, ns, strict=True)) for ns in (input.shape[2:], sizes)
        )
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({before}) output ({after})"
            "\nin interpolate()"
        )
    if not input.shape[1]:
        raise RuntimeError(
            f"Non-empty {input.dim()}D data tensor expected but got a tensor with sizes {list(input.shape)}"
            "\nin interpolate()"
        )


def _area(input: Tensor, sizes: list[int]) -> Tensor:
    from .. import functional as F

    pool: Callable[[Tensor, list[int]], Tensor] = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)[
        len(sizes) - 1
    ]
    return pool(input, sizes)


def _shrinking_first(input: Tensor, sizes: list[int]) -> list[int]:
    """The spatial axes in the order in which they are best resized: those that make the tensor smallest first."""
    return sorted(range(len(sizes)), key=lambda axis: sizes[axis] / input.shape[axis + 2])


def _nearest(input: Tensor, sizes: list[int], scales: list[float | None], exact: bool) -> Tensor:
    images = len(sizes) == 2
    double = input.dtype == rushlight.float64 and not images
    for axis in _shrinking_first(input, sizes):
        length, size, scale = input.shape[axis + 2], sizes[axis], scales[axis]
        if images and not exact and size in (length, 2 * length):
            scale = None  # PyTorch's rule for images: these two sizes come out even, whatever the factor
        if size == length and scale in (None, 1.0):
            continue
        places = _nearest_table(length, size, scale, exact, double)
        input = input.index_select(axis + 2, rushlight.from_numpy(places))
    return input


@functools.lru_cache(maxsize=64)
def _nearest_table(length: int, size: int, scale: float | None, exact: bool, double: bool) -> _Places:
    """For each output element the input element whose place, or with `exact` whose centre, is nearest.

    The roundings are PyTorch's, which decide where two are equally near: to float32 in the end, in any case.
    """
    step = _step(length, size, scale, False, np.float64 if double else np.float32)
    target = np.arange(size)
    source = (target + 0.5) * np.float64(step) if exact else target.astype(step.dtype) * step
    return np.minimum(np.floor(source.astype(np.float32)).astype(np.int64), length - 1)


def _step(length: int, size: int, scale: float | None, align_corners: bool, real: type) -> Any:
    """How far apart neighbouring output elements are in the input, in the arithmetic of `real`."""
    if align_corners:
        return real(length - 1) / real(size - 1) if size > 1 else real(0)
    if scale is not None and scale > 0:
        return real(1.0 / scale)
    return real(length) / real(size)


def _weighted(
    input: Tensor, sizes: list[int], scales: list[float | None], mode: str, align_corners: bool, antialias: bool
) -> Tensor:
    dtype = input.dtype
    computed = dtype if dtype in (rushlight.float32, rushlight.float64) else rushlight.float32
    kernel = mode if mode in ("bicubic", "lanczos") else "linear"
    x = input.to(computed)
    images = dtype == rushlight.uint8  # rounded after each axis, rows first: what libraries for images do
    for axis in reversed(range(len(sizes))) if images else _shrinking_first(input, sizes):
        length, size, scale = x.shape[axis + 2], sizes[axis], scales[axis]
        if length == size and (kernel == "linear" or antialias or align_corners or scale in (None, 1.0)):
            continue
        table = _antialias_table if antialias else _weight_table
        places, weights = table(length, size, scale, kernel, align_corners, computed == rushlight.float64)
        x = _apply(x, axis + 2, places, weights)
        if images:
            x = x.round().clamp(0, 255)
    return x.to(dtype)


def _apply(x: Tensor, dim: int, places: _Places, weights: _Reals) -> Tensor:
    """Along `dim`, the sum of the elements at ``places[i]`` times ``weights[i]`` as element ``i``."""
    size, taps = places.shape
    found = x.index_select(dim, rushlight.from_numpy(places.reshape(-1))).unflatten(dim, (size, taps))
    factors = rushlight.from_numpy(weights).reshape(size, taps, *[1] * (x.dim() - dim - 1))
    return (found * factors).sum(dim + 1)


@functools.lru_cache(maxsize=64)
def _weight_table(
    length: int, size: int, scale: float | None, kernel: str, align_corners: bool, double: bool
) -> tuple[_Places, _Reals]:
    """Places and weights of the two (linear) or four (bicubic) neighbours of each output element."""
    real: Any = np.float64 if double else np.float32
    step = _step(length, size, scale, align_corners, real)
    target = np.arange(size).astype(real)
    source = target * step if align_corners else (target + real(0.5)) * step - real(0.5)
    if kernel == "linear":
        source = np.maximum(source, real(0))
        first = np.minimum(np.floor(source).astype(np.int64), length - 1)
        share = np.clip(source - first.astype(real), 0, 1).astype(real)
        return np.stack([first, np.minimum(first + 1, length - 1)], 1), np.stack([1 - share, share], 1)
    first = np.floor(source).astype(np.int64)
    share = (source - first.astype(real)).astype(real)
    places = np.clip(first[:, None] + np.arange(-1, 3), 0, length - 1)
    return places, np.stack([_cubic(np.abs(share - offset), -0.75) for offset in (-1, 0, 1, 2)], 1).astype(real)


def _cubic(x: _Reals, a: float) -> _Reals:
    """Keys' convolution kernel (1981, *Cubic convolution interpolation for digital image processing*)."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _triangle(x: _Reals) -> _Reals:
    heights: _Reals = np.maximum(1 - x, 0)
    return heights


def _lanczos(x: _Reals) -> _Reals:
    return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)


#: kernels for antialiasing: function of the distance, and how far it reaches
_KERNELS: dict[str, tuple[Callable[[_Reals], _Reals], float]] = {
    "linear": (_triangle, 1.0),
    "bicubic": (lambda x: _cubic(x, -0.5), 2.0),
    "lanczos": (_lanczos, 3.0),
}


@functools.lru_cache(maxsize=64)
def _antialias_table(
    length: int, size: int, scale: float | None, kernel: str, align_corners: bool, double: bool
) -> tuple[_Places, _Reals]:
    """Places and weights of all neighbours within the kernel's reach, which grows with the step.

    Shorter neighbourhoods repeat their last place with weight 0, so that all have as many.
    """
    function, reach = _KERNELS[kernel]
    real = np.float64 if double else np.float32
    step = float(_step(length, size, scale, align_corners, real))
    wide = max(step, 1.0)
    centre = step * (np.arange(size) + 0.5)  # with aligned corners too: there only the step differs in PyTorch
    first = np.maximum(np.trunc(centre - reach * wide + 0.5), 0).astype(np.int64)
    end = np.minimum(np.trunc(centre + reach * wide + 0.5), length).astype(np.int64)
    taps = int((end - first).max())
    places = np.minimum(first[:, None] + np.arange(taps), end[:, None] - 1)
    inside = np.arange(taps) < (end - first)[:, None]
    weights = np.where(inside, function(np.abs(places - centre[:, None] + 0.5) / wide), 0)
    weights /= weights.sum(1, keepdims=True)
    return places, weights.astype(real)


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """The old name of :func:`interpolate`."""
    _warn_renamed("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """:func:`interpolate` in the mode ``"nearest"``."""
    _warn_renamed("upsample_nearest")
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """:func:`interpolate` in the mode ``"bilinear"`` with aligned corners."""
    _warn_renamed("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)


def _warn_renamed(name: str) -> None:
    warnings.warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=3)
