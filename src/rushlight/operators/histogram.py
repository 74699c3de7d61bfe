"""Histograms with edges: counts, or sums of weights, of what lies in bins; in one dimension or several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _C
from .operation import Samples, reading

__all__ = ["histogram", "histogramdd"]

Tensor = _C.Tensor


class _Histogram(NamedTuple):
    hist: Tensor
    bin_edges: Tensor

    def __repr__(self) -> str:
        return f"torch.return_types.histogram(\nhist={self.hist!r},\nbin_edges={self.bin_edges!r})"


class _Histogramdd(NamedTuple):
    hist: Tensor
    bin_edges: tuple[Tensor, ...]

    def __repr__(self) -> str:
        return f"torch.return_types.histogramdd(\nhist={self.hist!r},\nbin_edges={self.bin_edges!r})"


def _uniform_edges(name: str, x: Tensor, bins: int, low: float | None, high: float | None) -> Tensor:
    """``bins`` bins of one width between two numbers, by default the least and the greatest of each row: ``(rows, bins
    + 1)`` for ``x`` of shape ``(rows, n)``."""
    rows = x.shape[0]
    if low is None and x.shape[1]:
        bounds = zip(x.amin(1).tolist(), x.amax(1).tolist(), strict=True)
        each = [_edges_between(name, x, bins, *pair) for pair in bounds]
        return _C.stack(each) if each else x.new_empty(0, bins + 1)
    return _edges_between(name, x, bins, low, high).expand(rows, -1)


def _edges_between(name: str, x: Tensor, bins: int, low: float | None, high: float | None) -> Tensor:
    if bins <= 0:
        raise RuntimeError(f"{name}(): bins must be > 0, but got {bins} for dimension 0")
    if low is None or high is None:
        low, high = 0.0, 1.0
    if not (abs(low) < float("inf") and abs(high) < float("inf")):
        raise RuntimeError(f"{name}: dimension 0's range [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(f"{name}(): min should not exceed max, but got min {low:g} max {high:g} for dimension 0")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return _C.linspace(low, high, bins + 1, dtype=x.dtype)


def _places(x: Tensor, edges: Tensor) -> Tensor:
    """Each element's bin, -1 outside; the last bin holds its right edge, too."""
    last = edges.shape[1] - 1
    at = _C.searchsorted(edges.contiguous(), x.contiguous(), right=True) - 1
    at = _C.where((at == last) & (x == edges[:, -1:]), last - 1, at)
    return _C.where((at >= last) | x.isnan(), -1, at)


def _check(name: str, x: Tensor, weight: Tensor | None, count: tuple[int, ...]) -> None:
    if not x.dtype.is_floating_point or x.dtype in (_C.float16, _C.bfloat16):
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{x.dtype}'")
    if weight is None:
        return
    if weight.dtype != x.dtype:
        raise RuntimeError(
            f"{name}(): if weight tensor is provided, input tensor and weight tensor should have the same dtype, "
            f"but got input.dtype() {x.dtype}, and weight.dtype() {weight.dtype}"
        )
    if tuple(weight.shape) != count:
        raise RuntimeError(
            f"{name}(): if weight tensor is provided it should have the same shape as the input tensor excluding its "
            f"innermost dimension, but got input with shape {list(x.shape)} and weight with shape {list(weight.shape)}"
        )


def _counted(coordinates: list[Tensor], edges: list[Tensor], weight: Tensor | None, density: bool) -> Tensor:
    """Counts (or sums of weights) of points by their coordinates' bins; everything has rows, which count apart."""
    rows, sizes = coordinates[0].shape[0], [e.shape[1] - 1 for e in edges]
    flat = _C.zeros(coordinates[0].shape, dtype=_C.int64)
    inside = _C.ones(coordinates[0].shape, dtype=_C.bool)
    for x, e, n in zip(coordinates, edges, sizes, strict=True):
        at = _places(x, e)
        inside = inside & (at >= 0)
        flat = flat * n + at
    total = math.prod(sizes)
    flat = flat + _C.arange(rows).unsqueeze(1) * total
    counts = _C.bincount(flat[inside], None if weight is None else weight[inside], rows * total).view(rows, total)
    sums = counts.to(edges[0].dtype).view(rows, *sizes)
    if density:
        for i, e in enumerate(edges):
            shape = [rows] + [1] * len(sizes)
            shape[i + 1] = sizes[i]
            sums = sums / e.diff().reshape(shape)
        sums = sums / counts.sum(1).view(rows, *[1] * len(sizes))
    return sums


def _check_edges(name: str, x: Tensor, edges: Tensor) -> None:
    if edges.dim() != 1:
        raise RuntimeError(f"{name}(): bins tensor should have one dimension, but got {edges.dim()} dimensions")
    if edges.dtype != x.dtype:
        raise RuntimeError(f"{name}(): input tensor and bins tensors should have the same dtype")
    if edges.numel() < 2:
        raise RuntimeError(f"{name}(): bins tensor should have at least 2 elements, but got {edges.numel()}")


def _edges(name: str, x: Tensor, bins: int | Tensor, range: Sequence[float] | None) -> Tensor:
    """The edges for every row; those of rows that differ are given as they are."""
    if not isinstance(bins, Tensor):
        low, high = range if range is not None else (None, None)
        return _uniform_edges(name, x, bins, low, high)
    if range is not None:
        raise TypeError(f"{name}() got edges and a range: expected bins=int where range is given")
    return bins.detach() if bins.dim() == 2 else bins.detach().expand(x.shape[0], -1)


def _histogram(
    x: Tensor, bins: int | Tensor, range: Sequence[float] | None, weight: Tensor | None, density: bool
) -> tuple[Tensor, Tensor]:
    """Histograms of the rows of ``x``, and their edges."""
    x = x.detach().flatten(1)
    edges = _edges("histogram", x, bins, range)
    return _counted([x], [edges], None if weight is None else weight.detach().flatten(1), density), edges


def _histogram_of_samples(given: Samples) -> Any:
    x, weight, bins = given.full("input"), given.full("weight"), given.arguments["bins"]
    if given.size == 0:
        return NotImplemented
    _check("histogram", x[0], None if weight is None else weight[0], tuple(x.shape[1:]))
    if isinstance(bins, Tensor):
        _check_edges("histogram", x, bins[0] if "bins" in given.batched else bins)
    limits, density = given.arguments["range"], given.arguments["density"]
    return _Histogram(*_histogram(x, bins, limits, weight, density))


@reading("input", "bins", "weight", rule=_histogram_of_samples)
def histogram(
    input: Tensor,
    bins: int | Tensor = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: Any = None,
) -> Any:
    """Return how many elements lie in each bin (or the sum of their weights), and the bins' edges.

    ``bins``: the edges, or a number of bins of one width over ``range`` (by default from the least to the greatest
    element). ``density``: over the bins' widths and the total. float32 and float64; no derivative.
    """
    _check("histogram", input, weight, tuple(input.shape))
    if isinstance(bins, Tensor):
        _check_edges("histogram", input, bins)
    row = None if weight is None else weight.unsqueeze(0)
    counts, edges = [part[0] for part in _histogram(input.unsqueeze(0), bins, range, row, density)]
    if out is not None:
        for target, part in zip(out, (counts, edges), strict=True):
            target.resize_(part.shape).copy_(part)
        return out
    return _Histogram(counts, edges)


def _histogramdd(
    x: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    range: Sequence[float] | None,
    weight: Tensor | None,
    density: bool,
) -> tuple[Tensor, list[Tensor]]:
    """Histograms of the rows of ``x``, each of points, and their edges by dimension."""
    x = x.detach()
    count = x.shape[-1]
    points = x.reshape(x.shape[0], -1, count)
    given: list[int | Tensor] = [bins] * count if isinstance(bins, int) else list(bins)
    if len(given) != count:
        raise RuntimeError(
            f"histogramdd(): The size of bins must be equal to the innermost dimension of the input, but got "
            f"{len(given)} and {count}"
        )
    edges = []
    for i, b in enumerate(given):
        if isinstance(b, Tensor):
            _check_edges("histogramdd", x, b)
        limits = None if isinstance(b, Tensor) or range is None else range[2 * i : 2 * i + 2]
        edges.append(_edges("histogramdd", points[..., i], b, limits))
    return _counted(
        list(points.unbind(2)), edges, None if weight is None else weight.detach().flatten(1), density
    ), edges


def _histogramdd_of_samples(given: Samples) -> Any:
    x, weight, bins = given.full("input"), given.full("weight"), given.arguments["bins"]
    if given.size == 0:
        return NotImplemented
    _check("histogramdd", x[0], None if weight is None else weight[0], tuple(x.shape[1:-1]))
    limits, density = given.arguments["range"], given.arguments["density"]
    counts, edges = _histogramdd(x, bins, limits, weight, density)
    return _Histogramdd(counts, tuple(edges))


@reading("input", "weight", rule=_histogramdd_of_samples)
def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """Return how many points (rows of the last dimension) lie in each box of a grid, and the edges per dimension."""
    _check("histogramdd", input, weight, tuple(input.shape[:-1]))
    row = None if weight is None else weight.unsqueeze(0)
    counts, edges = _histogramdd(input.unsqueeze(0), bins, range, row, density)
    return _Histogramdd(counts[0], tuple([e[0] for e in edges]))
