"""Norms of vectors and matrices, condition numbers, ranks."""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight import _C, Tensor

from .factor import eigvalsh, svdvals
from .matrices import check_matrix, write
from .solve import inv

__all__ = ["cond", "matrix_norm", "matrix_rank", "norm", "vector_norm"]

Dims = int | tuple[int, ...] | list[int] | None


def vector_norm(
    x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None, out: Tensor | None = None
) -> Tensor:
    """Return (sum |x|^ord)^(1/ord) over ``dim`` (all elements where None).

    ``ord`` inf and -inf: the greatest and the smallest ``|x|``; 0: how many are not 0. The gradient at a norm of 0 is 0.
    """
    return _C.linalg_vector_norm(x, ord, dim, keepdim, dtype=dtype, out=out)


def _by_columns(a: Tensor, ord: float, dims: tuple[int, int], keepdim: bool) -> Tensor:
    """The greatest (or smallest) sum of absolute values of a column (ord 1) or a row (ord inf)."""
    summed, rest = dims if abs(ord) == 1 else dims[::-1]
    sums = a.abs().sum(summed, keepdim=True)
    extreme = sums.amax(rest, keepdim=True) if ord > 0 else sums.amin(rest, keepdim=True)
    return extreme if keepdim else extreme.squeeze(dims)


def _by_singular_values(a: Tensor, ord: Any, dims: tuple[int, int], keepdim: bool) -> Tensor:
    values = svdvals(a.movedim(dims, (-2, -1)))
    found = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
    if keepdim:
        for d in sorted(d % a.dim() for d in dims):
            found = found.unsqueeze(d)
    return found


def matrix_norm(
    A: Tensor,
    ord: float | str = "fro",
    dim: tuple[int, ...] | list[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return a norm of matrices, which lie along two dimensions.

    ``ord``: "fro" (the root of the sum of squares), "nuc" (the sum of the singular values), 2 and -2 (the greatest and
    the smallest singular value), 1 and -1 (of the columns' sums of ``|A|``), inf and -inf (of the rows').
    """
    check_matrix("linalg.matrix_norm", A)
    if isinstance(ord, str) and ord not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if not isinstance(ord, str) and abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if len(dim) != 2:
        raise RuntimeError("linalg.matrix_norm: dim must be a 2-tuple.")
    dims = (dim[0], dim[1])
    if dims[0] % A.dim() == dims[1] % A.dim():
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dims[0]}, {dims[1]})")
    a = A if dtype is None else A.to(dtype)
    if ord == "fro":
        return vector_norm(a, 2, dims, keepdim, out=out)
    if ord == "nuc" or (not isinstance(ord, str) and abs(ord) == 2):
        return write(out, _by_singular_values(a, ord, dims, keepdim))
    return write(out, _by_columns(a, float(ord), dims, keepdim))


def norm(
    A: Tensor,
    ord: float | str | None = None,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return a norm of a vector (one dimension) or a matrix (two), by what ``ord`` and ``dim`` say.

    Without ``ord`` the 2-norm over all elements (or over ``dim``). See :func:`vector_norm` and :func:`matrix_norm`.
    """
    dims = (dim,) if isinstance(dim, int) else None if dim is None else tuple(dim)
    if dims is not None and ord is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if dims is None and ord is not None and A.dim() not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.dim()}D."
        )
    if ord is not None and (len(dims) == 2 if dims is not None else A.dim() == 2):
        return matrix_norm(A, ord, dims or (0, 1), keepdim, dtype=dtype, out=out)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: Order {ord} not supported for vectors.")
    return vector_norm(A, 2 if ord is None else ord, dims, keepdim, dtype=dtype, out=out)


def cond(A: Tensor, p: float | str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Return the condition number: the norm of A times the norm of its inverse (of singular values where p is None)."""
    check_matrix("linalg.cond", A)
    if p in (None, 2, -2):
        values = svdvals(A)
        ends = values[..., 0], values[..., -1]
        return write(out, ends[1] / ends[0] if p == -2 else ends[0] / ends[1])
    return write(out, matrix_norm(A, p) * matrix_norm(inv(A), p))  # type: ignore[arg-type]


def matrix_rank(
    A: Tensor,
    tol: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return how many singular values (absolute eigenvalues where ``hermitian``) are above max(atol, rtol · greatest)."""
    check_matrix("linalg.matrix_rank", A)
    with rushlight.no_grad():
        values = eigvalsh(A).abs() if hermitian else svdvals(A)
        atol = tol if atol is None else atol
        if rtol is None:
            rtol = 0.0 if atol is not None else max(A.shape[-2:]) * rushlight.finfo(A.dtype).eps
        greatest = values.amax(-1, keepdim=True) if values.shape[-1] else values.sum(-1, keepdim=True)
        share = rtol.unsqueeze(-1) if isinstance(rtol, Tensor) else rtol
        limit = greatest * share
        if atol is not None:
            least = atol.unsqueeze(-1) if isinstance(atol, Tensor) else rushlight.full_like(greatest, atol)
            limit = rushlight.maximum(limit, least)
        return write(out, (values > limit).sum(-1))
