"""``torch.norm`` and ``torch.unique``: the calls whose arguments choose among operators of the core."""

from __future__ import annotations

from typing import Any

from .. import _C

__all__ = ["norm", "unique", "unique_consecutive"]

Tensor = _C.Tensor


def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: int | tuple[int, ...] | list[int] | None = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """Return the p-norm of ``input`` over ``dim`` (all elements where None): ``(sum |x|^p)^(1/p)``.

    ``p``: a number, inf, -inf, 0 or "fro" (the same as 2). "nuc", the sum of singular values, raises
    NotImplementedError. The gradient at a norm of 0 is 0.
    """
    if isinstance(p, str):
        if p == "nuc":
            raise NotImplementedError("rushlight has no nuclear norm (torch.norm with p='nuc')")
        if p != "fro":
            raise RuntimeError(f"only valid string values are 'fro' and 'nuc', found {p}")
    order = 2 if p is None or p == "fro" else p
    dims = [dim] if isinstance(dim, int) else dim
    return _C.linalg_vector_norm(input, order, dims, keepdim, dtype=dtype, out=out)


def _chosen(parts: tuple[Tensor, Tensor, Tensor], inverse: bool, counts: bool) -> Any:
    values, places, numbers = parts
    if not inverse and not counts:
        return values
    return (values, *([places] if inverse else []), *([numbers] if counts else []))


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements (slices along ``dim``) in ascending order, NaN last.

    ``return_inverse`` adds where each input went, ``return_counts`` how many became each output.
    """
    return _chosen(_C._unique2(input, sorted, return_inverse, return_counts, dim), return_inverse, return_counts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return one element (slice along ``dim``) of each run of equal ones; the other results as for :func:`unique`."""
    return _chosen(_C._unique_consecutive(input, return_inverse, return_counts, dim), return_inverse, return_counts)


for _function in (norm, unique, unique_consecutive):
    setattr(Tensor, _function.__name__, _function)
