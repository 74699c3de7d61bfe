"""Histograms with edges: counts, or sums of weights, of what lies in bins; in one dimension or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _C
from .operation import reading

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
    """``bins`` bins of one width between two numbers, by default the least and the greatest element."""
    if bins <= 0:
        raise RuntimeError(f"{name}(): bins must be > 0, but got {bins} for dimension 0")
    if low is None or high is None:
        low, high = (float(x.min()), float(x.max())) if x.numel() else (0.0, 1.0)
    if not (abs(low) < float("inf") and abs(high) < float("inf")):
        raise RuntimeError(f"{name}: dimension 0's range [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(f"{name}(): min should not exceed max, but got min {low:g} max {high:g} for dimension 0")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return _C.linspace(low, high, bins + 1, dtype=x.dtype)


def _places(x: Tensor, edges: Tensor) -> Tensor:
    """Each element's bin, -1 outside; the last bin holds its right edge, too."""
    last = edges.numel() - 1
    at = _C.searchsorted(edges, x, right=True) - 1
    at = _C.where((at == last) & (x == edges[-1]), last - 1, at)
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
    """Counts (or sums of weights) of points by their coordinates' bins."""
    sizes = [e.numel() - 1 for e in edges]
    flat = _C.zeros(coordinates[0].shape, dtype=_C.int64)
    inside = _C.ones(coordinates[0].shape, dtype=_C.bool)
    for x, e, n in zip(coordinates, edges, sizes, strict=True):
        at = _places(x, e)
        inside = inside & (at >= 0)
        flat = flat * n + at
    total = 1
    for n in sizes:
        total *= n
    kept = flat[inside]
    sums = _C.bincount(kept, None if weight is None else weight[inside], total).to(edges[0].dtype).reshape(sizes)
    if density:
        for i, e in enumerate(edges):
            shape = [1] * len(sizes)
            shape[i] = sizes[i]
            sums = sums / e.diff().reshape(shape)
        sums = sums / _C.bincount(kept, None if weight is None else weight[inside], total).sum()
    return sums


def _checked_edges(name: str, x: Tensor, edges: Tensor) -> Tensor:
    if edges.dim() != 1:
        raise RuntimeError(f"{name}(): bins tensor should have one dimension, but got {edges.dim()} dimensions")
    if edges.dtype != x.dtype:
        raise RuntimeError(f"{name}(): input tensor and bins tensors should have the same dtype")
    if edges.numel() < 2:
        raise RuntimeError(f"{name}(): bins tensor should have at least 2 elements, but got {edges.numel()}")
    return edges


@reading("input", "bins", "weight")
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
    x, w = input.detach(), None if weight is None else weight.detach()
    _check("histogram", x, w, tuple(x.shape))
    if isinstance(bins, Tensor):
        if range is not None:
            raise TypeError("histogram() got edges and a range: expected bins=int where range is given")
        edges = _checked_edges("histogram", x, bins.detach())
    else:
        low, high = range if range is not None else (None, None)
        edges = _uniform_edges("histogram", x, bins, low, high)
    counts = _counted([x.reshape(-1)], [edges], None if w is None else w.reshape(-1), density)
    if out is not None:
        for target, part in zip(out, (counts, edges), strict=True):
            target.resize_(part.shape).copy_(part)
        return out
    return _Histogram(counts, edges)


@reading("input", "weight")
def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """Return how many points (rows of the last dimension) lie in each box of a grid, and the edges per dimension."""
    x = input.detach()
    w = None if weight is None else weight.detach()
    _check("histogramdd", x, w, tuple(x.shape[:-1]))
    count = x.shape[-1]
    points = x.reshape(-1, count)
    given: list[int | Tensor] = [bins] * count if isinstance(bins, int) else list(bins)
    if len(given) != count:
        raise RuntimeError(
            f"histogramdd(): The size of bins must be equal to the innermost dimension of the input, but got "
            f"{len(given)} and {count}"
        )
    edges: list[Tensor] = []
    for i, b in enumerate(given):
        column = points[:, i]
        if isinstance(b, Tensor):
            edges.append(_checked_edges("histogramdd", x, b.detach()))
        else:
            low, high = (range[2 * i], range[2 * i + 1]) if range is not None else (None, None)
            edges.append(_uniform_edges("histogramdd", column, b, low, high))
    counts = _counted(list(points.unbind(1)), edges, None if w is None else w.reshape(-1), density)
    return _Histogramdd(counts, tuple(edges))
