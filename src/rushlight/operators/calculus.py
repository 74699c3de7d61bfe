"""Finite differences and trapezoids: derivatives and integrals of sampled functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _C

__all__ = ["cumulative_trapezoid", "gradient", "trapezoid", "trapz"]

Tensor = _C.Tensor


def _areas(name: str, y: Tensor, x: Tensor | None, dx: float | None, dim: int) -> Tensor:
    """The trapezoids between neighbours along ``dim``."""
    if y.dim() == 0:
        raise RuntimeError(f"{name}: expected a tensor of at least one dimension")
    n = y.shape[dim]
    pairs = y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1) if n else y
    if x is None:
        return pairs * (0.5 * (1 if dx is None else dx))
    if x.dim() == 0:
        raise RuntimeError(f"{name}: the sample points cannot be a 0-d tensor")
    if x.dim() == 1:
        if x.shape[0] != n:
            raise RuntimeError(
                f"{name}: There must be one `x` value for each sample point, but there are {n} along dim {dim} and "
                f"{x.shape[0]} `x` values"
            )
        spacing = x.diff().reshape([-1 if d == dim % y.dim() else 1 for d in range(y.dim())])
    else:
        spacing = x.diff(dim=dim - y.dim() if dim >= 0 else dim)
    return pairs * spacing / 2.0


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """Return the integral of samples ``y`` along ``dim`` by the trapezoid rule.

    ``x`` gives the places of the samples (a vector, or broadcast with ``y``), else they are ``dx`` (1) apart.
    """
    if y.dim() and y.shape[dim] == 0:
        return y.sum(dim)
    return _areas("trapezoid", y, x, dx, dim).sum(dim)


def trapz(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """Return :func:`trapezoid`, under its older name."""
    return trapezoid(y, x, dx=dx, dim=dim)


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Tensor:
    """Return the running integrals of :func:`trapezoid`: one less than there are samples."""
    return _areas("cumulative_trapezoid", y, x, dx, dim).cumsum(dim)


def _gradient_along(y: Tensor, spacing: float | Tensor, dim: int, edge_order: int) -> Tensor:
    """Second-order differences inside, differences of ``edge_order`` at both ends."""
    n = y.shape[dim]

    def at(start: int, length: int) -> Tensor:
        return y.narrow(dim, start, length)

    if not isinstance(spacing, Tensor):
        inside = (at(2, n - 2) - at(0, n - 2)) / (2 * spacing)
        first, last = (at(1, 1) - at(0, 1)) / spacing, (at(n - 1, 1) - at(n - 2, 1)) / spacing
        if edge_order == 2:
            first = (-3 * at(0, 1) + 4 * at(1, 1) - at(2, 1)) / (2 * spacing)
            last = (3 * at(n - 1, 1) - 4 * at(n - 2, 1) + at(n - 3, 1)) / (2 * spacing)
        return _C.cat([first, inside, last], dim)
    h = spacing.diff().reshape([-1 if d == dim else 1 for d in range(y.dim())])
    a, b = h.narrow(dim, 0, n - 2), h.narrow(dim, 1, n - 2)  # distances to the left and to the right neighbour
    inside = (
        at(0, n - 2) * (-b / (a * (a + b))) + at(1, n - 2) * ((b - a) / (a * b)) + at(2, n - 2) * (a / (b * (a + b)))
    )
    h0, h1, g0, g1 = (h.narrow(dim, k, 1) for k in (0, min(1, n - 2), n - 2, max(n - 3, 0)))
    if edge_order == 1:
        first, last = (at(1, 1) - at(0, 1)) / h0, (at(n - 1, 1) - at(n - 2, 1)) / g0
    else:
        first = (
            at(0, 1) * (-(2 * h0 + h1) / (h0 * (h0 + h1)))
            + at(1, 1) * ((h0 + h1) / (h0 * h1))
            - at(2, 1) * (h0 / (h1 * (h0 + h1)))
        )
        last = (
            at(n - 1, 1) * ((2 * g0 + g1) / (g0 * (g0 + g1)))
            - at(n - 2, 1) * ((g0 + g1) / (g0 * g1))
            + at(n - 3, 1) * (g0 / (g1 * (g0 + g1)))
        )
    return _C.cat([first, inside, last], dim)


def _wrong_spacing(input: Tensor, spacings: int, dims: int | None) -> str:
    if dims is None:
        return (
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
            f"'self.dim() = {input.dim()}', since dim argument was not given, but got a list of length {spacings}"
        )
    return (
        "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same "
        f"length, but got a spacing argument of length {spacings} and a dim argument of length {dims}."
    )


def gradient(
    input: Tensor,
    *,
    spacing: float | Tensor | Sequence[float] | Sequence[Tensor] | None = None,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """Return the derivatives of samples along ``dim`` (each dimension where None) by second-order differences.

    ``spacing``: the distance of samples, one for all or one per dimension, or vectors of their coordinates.
    ``edge_order`` (1 or 2) is the order at both ends.
    """
    dims = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = [d % input.dim() if -input.dim() <= d < input.dim() else d for d in dims]
    if spacing is None:
        spacing = 1
    one = isinstance(spacing, int | float) or (isinstance(spacing, Tensor) and spacing.dim() == 0)
    spacings: list[Any] = [spacing] * len(dims) if one else [spacing] if isinstance(spacing, Tensor) else list(spacing)  # type: ignore[arg-type]
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if len(spacings) != len(dims):
        raise RuntimeError(_wrong_spacing(input, len(spacings), None if dim is None else len(dims)))
    repeated = next((d for i, d in enumerate(dims) if d in dims[:i]), None)
    if repeated is not None:
        raise RuntimeError(f"dim {repeated} appears multiple times in the list of dims")
    for d, s in zip(dims, spacings, strict=True):
        if not -input.dim() <= d < input.dim():
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-input.dim()}, {input.dim() - 1}], but got {d})"
            )
        if input.shape[d] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
        if isinstance(s, Tensor) and s.dim() and s.shape[0] != input.shape[d]:
            raise RuntimeError(
                f"torch.gradient expected each coordinate tensor to have the size of its dimension, {input.shape[d]}, got {s.shape[0]}"
            )
    return tuple(
        [
            _gradient_along(input, float(s) if isinstance(s, Tensor) and s.dim() == 0 else s, d, edge_order)
            for d, s in zip(dims, spacings, strict=True)
        ]
    )
