"""What `torch` itself calls by older names: qr, svd, cholesky, inverse and the solvers from a factor."""

from __future__ import annotations

import warnings
from typing import Any

import rushlight
from rushlight import Tensor

from ..operators.operation import Operation
from . import factor
from .lu import lu_factor_ex
from .lu import lu_solve as solve_with_factors
from .matrices import check_matrix, check_square, named, write
from .solve import inv, solve_triangular

__all__ = [
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "frobenius_norm",
    "inverse",
    "lu",
    "lu_solve",
    "nuclear_norm",
    "orgqr",
    "ormqr",
    "pinverse",
    "qr",
    "svd",
    "triangular_solve",
]

inverse = inv
orgqr = factor.householder_product

_qr = named("qr", "Q R")
_svd = named("svd", "U S V")
_triangular_solve = named("triangular_solve", "solution cloned_coefficient")


def _deprecated(name: str, instead: str) -> None:
    warnings.warn(
        f"torch.{name} is deprecated in favor of torch.linalg.{instead} and will be removed in a future PyTorch release.",
        stacklevel=3,
    )


def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return Cholesky's factor. Deprecated for :func:`rushlight.linalg.cholesky`."""
    _deprecated("cholesky", "cholesky")
    return write(out, factor._cholesky("cholesky", input, upper))


class CholeskySolve(Operation):
    """A^-1 B by way of A's factor L. The derivative takes A for L Lᵀ with all of L, as PyTorch's does."""

    core_dims = (2, 2, 0)

    @staticmethod
    def forward(ctx: Any, b: Tensor, factor: Tensor, upper: bool) -> Tensor:
        lower = factor.mH if upper else factor
        x = solve_triangular(lower.mH, solve_triangular(lower, b, upper=False), upper=True)
        ctx.upper = upper
        ctx.save_for_backward(factor, x)
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        factor, x = ctx.saved_tensors
        b_grad = CholeskySolve.apply(grad, factor, ctx.upper)
        inner = b_grad @ x.mH
        symmetric = -(inner + inner.mH)
        return b_grad, factor @ symmetric if ctx.upper else symmetric @ factor, None


def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return X with A X = input, given Cholesky's factor of A: L Lᵀ, or Lᵀ L where ``upper``."""
    for what, t in (("b", input), ("u", L)):
        if t.dim() < 2:
            raise RuntimeError(f"{what} should have at least 2 dimensions, but has {t.dim()} dimensions instead")
    check_square("cholesky_solve", L)
    computed: Tensor = CholeskySolve.apply(input, L, upper)
    return write(out, computed)


def cholesky_inverse(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse of A, given Cholesky's factor of A."""
    check_square("cholesky_inverse", input)
    one = rushlight.eye(input.shape[-1], dtype=input.dtype).expand(input.shape)
    return cholesky_solve(one, input, upper, out=out)


def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False, *, out: Any = None
) -> Any:
    """Return X with A X = b of triangular A, and a copy of A. Deprecated for linalg.solve_triangular."""
    _deprecated("triangular_solve", "solve_triangular")
    check_square("triangular_solve", A)
    a, above = (A.mT, not upper) if transpose else (A, upper)
    solution = solve_triangular(a, b, upper=above, unitriangular=unitriangular)
    return _triangular_solve(*write(out, (solution, A.expand(*solution.shape[:-2], *A.shape[-2:]).clone())))


def qr(input: Tensor, some: bool = True, *, out: Any = None) -> Any:
    """Return Q and R. Deprecated for :func:`rushlight.linalg.qr`."""
    _deprecated("qr", "qr")
    check_matrix("linalg.qr", input)
    return _qr(*write(out, tuple(factor.qr(input, "reduced" if some else "complete"))))


def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """Return U, S and V (not its transpose) of the singular value decomposition; zeros for both unless wanted."""
    check_matrix("linalg.svd", input)
    if compute_uv:
        u, s, vh = factor.svd(input, full_matrices=not some)
        return _svd(*write(out, (u, s, vh.mH)))
    m, n = input.shape[-2:]
    batch = input.shape[:-2]
    zeros = (input.new_zeros(*batch, m, m), input.new_zeros(*batch, n, n))
    return _svd(*write(out, (zeros[0], factor.svdvals(input), zeros[1])))


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """Return lu_factor's result as a tuple, with the numbers of zero pivots where ``get_infos``. Deprecated."""
    _deprecated("lu", "lu_factor / torch.linalg.lu_factor_ex")
    parts = tuple(lu_factor_ex(A, pivot=pivot))
    return write(out, parts if get_infos else parts[:2])


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return X with A X = b, given lu_factor's result for A. Deprecated for :func:`rushlight.linalg.lu_solve`."""
    _deprecated("lu_solve", "lu_solve")
    return solve_with_factors(LU_data, LU_pivots, b, out=out)


def ormqr(
    input: Tensor,
    tau: Tensor,
    other: Tensor,
    left: bool = True,
    transpose: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return Q ``other`` (``other`` Q unless ``left``; Qᴴ for Q where ``transpose``), Q all columns of geqrf's Q."""
    check_matrix("ormqr", input)
    check_matrix("ormqr", other)
    size, given = other.shape[-2 if left else -1], input.shape[-2]
    if size != given:
        which = "other.shape[-2]" if left else "other.shape[-1]"
        raise RuntimeError(f"torch.ormqr: {which} must be equal to input.shape[-2]")
    n = tau.shape[-1]
    vectors = input[..., :n].tril(-1) + rushlight.eye(size, n, dtype=input.dtype)
    result = other if left else other.mH
    # Q = H1 H2 ...: the last reflector acts first on the left; from the right, on the adjoint, the other way round
    forwards = transpose if left else not transpose
    factors = tau.conj() if forwards else tau
    for i in range(n) if forwards else range(n - 1, -1, -1):
        v = vectors[..., i : i + 1]
        result = result - factors[..., i, None, None] * (v @ (v.mH @ result))
    return write(out, result if left else result.mH)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Return the pseudo-inverse: singular values up to rcond times the greatest count as 0."""
    return factor.pinv(input, rcond)


def nuclear_norm(input: Tensor, dim: Any = (-2, -1), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the sum of the singular values."""
    from .norm import matrix_norm

    return matrix_norm(input, "nuc", tuple(dim), keepdim, out=out)


def frobenius_norm(input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Return the root of the sum of squares over ``dim`` (all elements where it is empty)."""
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    return rushlight.norm(input, 2, dims or None, keepdim, out=out)
