"""Sampling of images and volumes at given places, and the places of an affine map."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import rushlight
from rushlight import Tensor

__all__ = ["affine_grid", "grid_sample"]

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def _warn_default() -> None:
    warnings.warn(
        "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
        "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.",
        stacklevel=3,
    )


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """`input` ``(N, C, H, W)`` at the places `grid` ``(N, h, w, 2)``: ``(N, C, h, w)``; in three dimensions likewise.

    A place is ``(x, y)`` or ``(x, y, z)``, from -1 to 1 between the borders of the image, or with `align_corners`
    between the centres of its corner elements. `mode` is ``"bilinear"`` (trilinear in three dimensions), ``"nearest"``
    or, for images, ``"bicubic"``; outside the image lie zeros, its border, or its reflection (`padding_mode`).
    Differentiable by both. Shapes that do not fit and differing dtypes are a ``RuntimeError``, unknown words a
    ``ValueError``.
    """
    if mode not in GRID_SAMPLE_INTERPOLATION_MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in GRID_SAMPLE_PADDING_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', "
            f"but got: '{padding_mode}'"
        )
    if align_corners is None:
        _warn_default()
        align_corners = False
    _check_grid(input, grid, mode)
    # the grid names the last dimension first; zeros outside are a frame around the image
    sizes = list(input.shape[:1:-1])
    framed = padding_mode == "zeros"
    image = rushlight.constant_pad_nd(input, [1, 1] * len(sizes)) if framed else input
    places = [_unnormalized(grid[..., d], n, align_corners) for d, n in enumerate(sizes)]
    sampler = _Sampler(image, sizes, padding_mode, align_corners)
    if mode == "bicubic":
        return sampler.cubic(places)
    places = [sampler.confined(p, n) for p, n in zip(places, sizes, strict=True)]
    return sampler.nearest(places) if mode == "nearest" else sampler.linear(places)


def _check_grid(input: Tensor, grid: Tensor, mode: str) -> None:
    if input.dim() not in (4, 5) or grid.dim() != input.dim():
        raise RuntimeError(
            f"grid_sampler(): expected {'4D or 5D' if input.dim() not in (4, 5) else f'{input.dim()}D'} input and grid "
            f"with same number of dimensions, but got input with sizes {list(input.shape)} "
            f"and grid with sizes {list(grid.shape)}"
        )
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if grid.shape[-1] != input.dim() - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {input.dim() - 2} in last dimension, "
            f"but got grid with sizes {list(grid.shape)}"
        )
    for d in range(2, input.dim()):
        if not input.shape[d]:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, "
                f"but input has sizes {list(input.shape)} with dimension {d} being empty"
            )
    if mode == "bicubic" and input.dim() == 5:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if not input.is_floating_point():
        raise NotImplementedError(f'"grid_sampler" not implemented for {input.dtype}')
    if input.dtype != grid.dtype:
        raise RuntimeError(f"grid_sampler(): expected grid with dtype {input.dtype} of the input, but got {grid.dtype}")


def _unnormalized(place: Tensor, size: int, align_corners: bool) -> Tensor:
    """From -1 ... 1 to element numbers."""
    return (place + 1) * ((size - 1) / 2) if align_corners else ((place + 1) * size - 1) / 2


def _confined(x: Tensor, low: float, high: float) -> Tensor:
    """`x` within the bounds, NaN at the lower one."""
    return rushlight.where(x < high, rushlight.where(x > low, x, low), high)


class _Sampler:
    """An image as rows ``(N, C, elements)``, and how places outside it are read."""

    def __init__(self, image: Tensor, sizes: list[int], padding_mode: str, align_corners: bool) -> None:
        self.rows = image.flatten(2)
        self.sizes = sizes
        self.padding_mode = padding_mode
        self.align_corners = align_corners
        # how many elements a step along each dimension of the grid passes, and where the image starts in its frame
        frame = 2 if padding_mode == "zeros" else 0
        self.strides = [1]
        for n in sizes[:-1]:
            self.strides.append(self.strides[-1] * (n + frame))
        self.origin = sum(self.strides) if frame else 0

    def confined(self, x: Tensor, size: int) -> Tensor:
        """A place led back into the image as the padding says; the derivative is 0 where it ends at the border."""
        if self.padding_mode == "zeros":
            return x
        if self.padding_mode == "reflection":
            x = self._reflected(x, size)
        inside = (x > 0) & (x < size - 1)
        return rushlight.where(inside, x, _confined(x.detach(), 0, size - 1))

    def _reflected(self, x: Tensor, size: int) -> Tensor:
        """`x` mirrored at the borders until it lies between them."""
        low, span = (0.0, size - 1.0) if self.align_corners else (-0.5, float(size))
        if span == 0:
            return x
        with rushlight.no_grad():
            distance = (x - low).abs()
            turns = (distance / span).floor()
            odd = turns % 2 == 1
            sign = rushlight.where(x < low, -1.0, 1.0).to(x.dtype)
            start = rushlight.where(odd, (turns + 1) * span, -turns * span) + low
            slope = rushlight.where(odd, -sign, sign)
        return start + slope * (x - low)

    def _found(self, places: Sequence[Tensor]) -> Tensor:
        """The elements at whole-numbered places ``(N, ...)``, read at the edge where outside: ``(N, C, ...)``."""
        low, high = (-1, 0) if self.padding_mode == "zeros" else (0, -1)
        index: Any = self.origin
        for place, size, stride in zip(places, self.sizes, self.strides, strict=True):
            index = index + _confined(place, low, size + high).long() * stride
        batch, channels = self.rows.shape[:2]
        flat = index.flatten(1).unsqueeze(1).expand(batch, channels, -1)
        return self.rows.gather(2, flat).reshape(batch, channels, *index.shape[1:])

    def nearest(self, places: list[Tensor]) -> Tensor:
        found = self._found([p.detach().round() for p in places])
        if not any(p.requires_grad for p in places):
            return found
        # the places take part, with the derivative 0
        everywhere = rushlight.ones((), dtype=rushlight.bool)
        return rushlight.where(everywhere, found, sum(places[1:], places[0]).unsqueeze(1))

    def linear(self, places: list[Tensor]) -> Tensor:
        first = [p.detach().floor() for p in places]
        share = [p - f for p, f in zip(places, first, strict=True)]
        total: Any = 0
        for corner in itertools.product((0, 1), repeat=len(places)):
            weight = functools.reduce(rushlight.mul, [s if c else 1 - s for c, s in zip(corner, share, strict=True)])
            found = self._found([f + c for c, f in zip(corner, first, strict=True)])
            total = total + found * weight.unsqueeze(1)
        result: Tensor = total
        return result

    def cubic(self, places: list[Tensor]) -> Tensor:
        (x, y), (width, height) = places, self.sizes
        left, top = x.detach().floor(), y.detach().floor()
        columns, rows = _cubic_weights(x - left), _cubic_weights(y - top)
        total: Any = 0
        for i, row in enumerate(rows, -1):
            line: Any = 0
            for j, column in enumerate(columns, -1):
                places = [self.confined(left + j, width), self.confined(top + i, height)]
                line = line + self._found([p.round() for p in places]) * column.unsqueeze(1)
            total = total + line * row.unsqueeze(1)
        result: Tensor = total
        return result


def _cubic_weights(t: Tensor, a: float = -0.75) -> list[Tensor]:
    """Keys' kernel at the distances of the four neighbours of a place `t` past the second (see ``upsample``)."""

    def near(x: Tensor) -> Tensor:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Tensor) -> Tensor:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The places for :func:`grid_sample` that the affine maps `theta` make of a regular grid.

    `theta` is ``(N, 2, 3)`` for a `size` of ``(N, C, H, W)``, giving ``(N, H, W, 2)``, or ``(N, 3, 4)`` for one with a
    depth. Types and shapes that do not fit are a ``ValueError``, other sizes a ``NotImplementedError``.
    """
    if align_corners is None:
        _warn_default()
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}\nin affine_grid()")
    size = tuple(size)
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {size}."
        )
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (dims, dims + 1):
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {size}. "
            f"Got {theta.shape}.\nin affine_grid()"
        )
    if min(size[2:]) <= 0 or size[0] <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}\nin affine_grid()")
    if align_corners and min(size[2:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. "
            "This is not an intended use case of affine_grid. See the documentation of affine_grid for details.",
            stacklevel=2,
        )
    if theta.shape[0] != size[0]:
        raise RuntimeError(
            f"Expected size for first dimension of theta to be {size[0]} but got: {theta.shape[0]}.\nin affine_grid()"
        )
    base = rushlight.from_numpy(_regular_grid(size[2:], align_corners)).to(theta.dtype)
    return (base @ theta.transpose(1, 2)).reshape(size[0], *size[2:], dims)


@functools.lru_cache(maxsize=16)
def _regular_grid(sizes: tuple[int, ...], align_corners: bool) -> npt.NDArray[np.float64]:
    """The homogeneous coordinates ``(x, y[, z], 1)`` of all elements, one row each."""
    axes = []
    for n in sizes:
        ends = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        axes.append(ends if align_corners else ends * (n - 1) / n)
    mesh = np.meshgrid(*axes, indexing="ij")
    return np.stack([*mesh[::-1], np.ones(sizes)], -1).reshape(-1, len(sizes) + 1)
