"""LU factorization with pivots (LAPACK through SciPy), and solutions from the factors.

The derivative of A = P L U is, with Φ the strict lower triangle and Ψ the upper one with the diagonal,
P L^-H (Φ(Lᴴ grad_L) + Ψ(grad_U Uᴴ)) U^-H for square A; what is beside the square part follows by substitution.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import rushlight
from rushlight import Tensor

from ..operators.operation import Operation
from .matrices import LinAlgError, check_matrix, check_square, matrices_of, named, over_batches, tensor, write
from .solve import solve_triangular

__all__ = ["lu", "lu_factor", "lu_factor_ex", "lu_solve", "lu_unpack"]

_lu = named("linalg_lu", "P L U")
_lu_factor = named("linalg_lu_factor", "LU pivots")
_lu_factor_ex = named("linalg_lu_factor_ex", "LU pivots info")
_lu_unpack = named("lu_unpack", "P L U")


def _getrf(a: Any) -> tuple[Any, Any, int]:
    """One matrix's factors in one, its row exchanges (from 0), and the number of a zero pivot (from 1) or 0."""
    from scipy.linalg import get_lapack_funcs

    if 0 in a.shape:
        return a.copy(), np.zeros(0, np.int32), 0
    factor, pivots, info = get_lapack_funcs(("getrf",), (a,))[0](a)
    return factor, pivots, info


def _permutation(pivots: Any, rows: int) -> Any:
    """The matrix P of A = P L U for LAPACK's row exchanges (from 1)."""
    order = np.arange(rows)
    for i, p in enumerate(pivots):
        order[[i, p - 1]] = order[[p - 1, i]]
    out = np.zeros((rows, rows))
    out[order, np.arange(rows)] = 1
    return out


@over_batches(1, 0, 0)
def _permutations(pivots: Tensor, rows: int, dtype: Any) -> Tensor:
    flat = pivots.numpy().reshape(pivots.shape[:-1].numel(), pivots.shape[-1])
    made = np.array([_permutation(p, rows) for p in flat]).reshape(*pivots.shape[:-1], rows, rows)
    return tensor(made).to(dtype)


def _split(factor: Tensor) -> tuple[Tensor, Tensor]:
    """L with ones on its diagonal, and U."""
    m, n = factor.shape[-2:]
    k = min(m, n)
    lower = factor[..., :k].tril(-1) + rushlight.eye(m, k, dtype=factor.dtype)
    return lower, factor[..., :k, :].triu()


class LinalgLuFactorEx(Operation):
    """L and U in one matrix."""

    core_dims = (2,)

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        m, n = a.shape[-2:]
        found = [_getrf(x) for x in matrices_of(a)]
        factor = tensor(np.array([f for f, _, _ in found], matrices_of(a).dtype).reshape(a.shape))
        pivots = np.array([p + 1 for _, p, _ in found], np.int32).reshape(*a.shape[:-2], min(m, n))
        info = np.array([i for _, _, i in found], np.int32).reshape(a.shape[:-2])
        exchanges, failures = tensor(pivots), tensor(info)
        ctx.mark_non_differentiable(exchanges, failures)
        ctx.save_for_backward(factor, exchanges)
        return factor, exchanges, failures

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> Tensor:
        factor, pivots = ctx.saved_tensors
        m, n = factor.shape[-2:]
        k = min(m, n)
        lower, upper = _split(factor)
        p = _permutations(pivots, m, factor.dtype)
        l_square, u_square = lower[..., :k, :], upper[..., :k]
        l_grad, u_grad = grad[..., :k].tril(-1), grad[..., :k, :].triu()
        # of the square part: the rows below are L2 = A2 U^-1, the columns beside are U2 = L^-1 A2
        below, beside = l_grad[..., k:, :], u_grad[..., k:]
        of_l = l_square.mH @ l_grad[..., :k, :] - beside @ upper[..., k:].mH
        of_u = u_grad[..., :k] @ u_square.mH - lower[..., k:, :].mH @ below
        inner = of_l.tril(-1) + of_u.triu()
        half = solve_triangular(l_square.mH, inner, upper=True, unitriangular=True)
        square_grad = solve_triangular(u_square.mH, half, upper=False, left=False)
        if m > n:
            rest = solve_triangular(u_square.mH, below, upper=False, left=False)
            return p @ rushlight.cat([square_grad, rest], -2)
        if n > m:
            rest = solve_triangular(l_square.mH, beside, upper=True, unitriangular=True)
            return p @ rushlight.cat([square_grad, rest], -1)
        return p @ square_grad


def _check_pivot(name: str, pivot: bool) -> None:
    if not pivot:
        raise RuntimeError(f"{name}: LU without pivoting is not implemented on the CPU")


@over_batches(2)
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """Return L and U in one matrix, the row exchanges (from 1), and the number of a zero pivot (from 1) or 0."""
    check_matrix("torch.linalg.lu_factor_ex", A)
    _check_pivot("linalg.lu_factor", pivot)
    factor, pivots, info = LinalgLuFactorEx.apply(A)
    if check_errors and bool(info.any()):
        raise LinAlgError(
            f"torch.linalg.lu_factor: U[{int(info.max())},{int(info.max())}] is zero and using it on lu_solve would "
            "result in a division by zero."
        )
    return _lu_factor_ex(*write(out, (factor, pivots, info)))


def lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """Return L (without its ones) and U in one matrix, and LAPACK's row exchanges (from 1)."""
    check_matrix("torch.linalg.lu_factor", A)
    return _lu_factor(*write(out, tuple(lu_factor_ex(A, pivot=pivot))[:2]))


def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True, *, out: Any = None
) -> Any:
    """Return P, L and U of what lu_factor gives; empty tensors for what is not wanted."""
    nothing = LU_data.new_empty(0)
    if LU_pivots.dtype != rushlight.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    p = _permutations(LU_pivots, LU_data.shape[-2], LU_data.dtype) if unpack_pivots else nothing
    lower, upper = _split(LU_data) if unpack_data else (nothing, nothing)
    return _lu_unpack(*write(out, (p, lower, upper)))


def lu(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """Return the permutation P, the unit lower triangular L and the upper triangular U with A = P L U."""
    check_matrix("linalg.lu", A)
    factor, pivots, _ = lu_factor_ex(A, pivot=pivot)
    return _lu(*write(out, tuple(lu_unpack(factor, pivots))))


def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return X with A X = B (X A = B unless ``left``; Aᴴ for A where ``adjoint``), given lu_factor's result."""
    check_square("torch.linalg.lu_solve", LU, "LU")
    check_matrix("torch.linalg.lu_solve", B, "B")
    if not left:
        transposed: Tensor = write(out, lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH)
        return transposed
    p, lower, upper = lu_unpack(LU, pivots)
    if adjoint:
        half = solve_triangular(upper.mH, B, upper=False)
        x = p @ solve_triangular(lower.mH, half, upper=True, unitriangular=True)
    else:
        half = solve_triangular(lower, p.mT @ B, upper=False, unitriangular=True)
        x = solve_triangular(upper, half, upper=True)
    result: Tensor = write(out, x)
    return result
