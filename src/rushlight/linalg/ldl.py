"""Factors of indefinite symmetric or Hermitian matrices, A = P L D Lᵀ Pᵀ (LAPACK through SciPy), and solutions by them.

D has blocks of one or two rows (Bunch and Kaufman 1977, "Some stable methods for calculating inertia and solving
symmetric linear systems"). L (without its ones) and D stand in one lower triangle. The pivots are LAPACK's: a
positive number is the row (from 1) that changed places with this one; two equal negative ones are a block of two rows,
of which the second changed places with that row. As in PyTorch there is no derivative.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np

from rushlight import Tensor

from ..operators.operation import Operation, every_sample
from .matrices import check_square, matrices_of, named, numbers, scalar_type, tensor, write

__all__ = ["ldl_factor", "ldl_factor_ex", "ldl_solve"]

_ldl_factor = named("linalg_ldl_factor", "LD pivots")
_ldl_factor_ex = named("linalg_ldl_factor_ex", "LD pivots info")


def _factor(a: Any, hermitian: bool) -> tuple[Any, Any, int]:
    from scipy.linalg import get_lapack_funcs

    if not len(a):
        return a, np.zeros(0, np.int32), 0
    name = "hetrf" if hermitian and a.dtype.kind == "c" else "sytrf"
    factor, pivots, info = get_lapack_funcs((name,), (a,))[0](a, lower=1)
    return np.tril(factor), pivots, info


class LinalgLdlFactorEx(Operation):
    core_dims = (2, 0)

    @staticmethod
    def forward(ctx: Any, a: Tensor, hermitian: bool) -> tuple[Tensor, Tensor, Tensor]:
        matrices = matrices_of(a)
        found = [_factor(x, hermitian) for x in matrices]
        factor = tensor(np.array([f for f, _, _ in found], matrices.dtype).reshape(a.shape))
        pivots = tensor(np.array([p for _, p, _ in found], np.int32).reshape(a.shape[:-1]))
        info = tensor(np.array([i for _, _, i in found], np.int32).reshape(a.shape[:-2]))
        ctx.mark_non_differentiable(pivots, info)
        return factor, pivots, info

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> NoReturn:
        raise RuntimeError("derivative for linalg_ldl_factor_ex is not implemented")


def _substituted(factor: Any, pivots: Any, b: Any, hermitian: bool) -> Any:
    """The solution for one matrix: by L forwards and D, then by Lᵀ (Lᴴ) backwards, exchanging rows on the way."""
    x, n = b.copy(), len(factor)
    upper = factor.conj().T if hermitian else factor.T
    k = 0
    while k < n:
        size = 1 if pivots[k] > 0 else 2
        end = k + size
        other = abs(int(pivots[k])) - 1
        x[[end - 1, other]] = x[[other, end - 1]]
        x[end:] -= factor[end:, k:end] @ x[k:end]
        block = factor[k:end, k:end].copy()
        if size == 2:
            block[0, 1] = upper[k, k + 1]
        x[k:end] = np.linalg.solve(block, x[k:end])
        k = end
    while k > 0:
        start = k - (1 if pivots[k - 1] > 0 else 2)
        x[start:k] -= upper[start:k, k:] @ x[k:]
        other = abs(int(pivots[k - 1])) - 1
        x[[k - 1, other]] = x[[other, k - 1]]
        k = start
    return x


class LinalgLdlSolve(Operation):
    core_dims = (2, 1, 2, 0)

    @staticmethod
    def forward(ctx: Any, factor: Tensor, pivots: Tensor, b: Tensor, hermitian: bool) -> Tensor:
        batch = np.broadcast_shapes(factor.shape[:-2], b.shape[:-2])
        count = math.prod(batch)

        def items(t: Tensor, dims: int) -> Any:
            core = t.shape[-dims:]
            return np.broadcast_to(numbers(t), (*batch, *core)).reshape(count, *core)

        triples = zip(items(factor, 2), items(pivots, 1), items(b, 2), strict=True)
        found = [_substituted(*triple, hermitian) for triple in triples]
        return tensor(np.array(found, numbers(b).dtype).reshape(*batch, *b.shape[-2:]))

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> NoReturn:
        raise RuntimeError("derivative for linalg_ldl_solve is not implemented")


def _factored(A: Tensor, hermitian: bool, check_errors: bool) -> tuple[Tensor, Tensor, Tensor]:
    check_square("torch.linalg.ldl_factor_ex", A)
    factor, pivots, info = LinalgLdlFactorEx.apply(A, hermitian)
    if check_errors and bool(every_sample(info != 0).any()):
        raise RuntimeError(
            f"torch.linalg.ldl_factor_ex: D[{int(every_sample(info).max())}] is zero: the matrix is singular, and using "
            "the factor in ldl_solve would divide by zero"
        )
    return factor, pivots, info


def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """Return L and D in one triangle, the pivots, and the number (from 1) of a block of D that is zero, or 0.

    Of A the lower triangle is read; ``hermitian``: a complex A is Hermitian, not symmetric.
    """
    return _ldl_factor_ex(*write(out, _factored(A, hermitian, check_errors)))


def ldl_factor(A: Tensor, *, hermitian: bool = False, out: Any = None) -> Any:
    """Return L and D in one triangle, and the pivots; RuntimeError where a block of D is zero."""
    return _ldl_factor(*write(out, _factored(A, hermitian, True)[:2]))


def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False, out: Tensor | None = None) -> Tensor:
    """Return X with A X = B, given ldl_factor's result for A; B: (batches of) matrices."""
    check_square("torch.linalg.ldl_solve", LD)
    if LD.dtype != B.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {scalar_type(B.dtype)} and A of type "
            f"{scalar_type(LD.dtype)} instead."
        )
    if B.dim() < 2:
        raise RuntimeError(
            f"torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has {B.dim()} dimensions instead"
        )
    if LD.shape[-1] != B.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is {LD.shape[-1]} by {LD.shape[-1]} "
            f"but each b matrix is {B.shape[-2]} by {B.shape[-1]}"
        )
    if LD.shape[:-1] != pivots.shape:
        raise RuntimeError(
            "torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    if pivots.is_floating_point() or pivots.is_complex():
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected pivots to be integers. Got {scalar_type(pivots.dtype)}")
    computed: Tensor = LinalgLdlSolve.apply(LD, pivots, B, hermitian and LD.is_complex())
    return write(out, computed)
