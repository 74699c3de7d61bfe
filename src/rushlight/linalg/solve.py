"""Inverses, determinants and solutions of linear systems, by LU factorization (LAPACK through NumPy).

Derivatives: of X = A^-1 B the gradients are G = A^-T grad for B and -G X^T for A; of det A it is the cofactors, of
log |det A| the transposed inverse.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import rushlight
from rushlight import Tensor

from ..operators.operation import Operation
from .matrices import (
    LinAlgError,
    check_matrix,
    check_square,
    matrices_of,
    named,
    numbers,
    over_batches,
    regular,
    scalar_type,
    tensor,
    write,
)

__all__ = [
    "det",
    "inv",
    "inv_ex",
    "logdet",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "tensorinv",
    "tensorsolve",
]

_inv_ex = named("linalg_inv_ex", "inverse info")
_solve_ex = named("linalg_solve_ex", "result info")
_slogdet = named("linalg_slogdet", "sign logabsdet")


def _zero_pivot(a: Any) -> int:
    """The first (from 1) diagonal element of U that is zero, 0 where there is none: LAPACK's info.

    LAPACK says whether there is one, as other roundings may find none; it is then the last.
    """
    try:
        np.linalg.inv(a)
        return 0
    except np.linalg.LinAlgError:
        a = np.array(a)
    for k in range(len(a)):
        at = k + int(np.argmax(np.abs(a[k:, k])))
        if a[at, k] == 0:
            return k + 1
        a[[k, at]] = a[[at, k]]
        a[k + 1 :] -= np.outer(a[k + 1 :, k] / a[k, k], a[k])
    return len(a)


def _singular(a: Any) -> tuple[str, int]:
    """Where the first singular matrix of a batch stands, for messages, and its zero pivot."""
    for i, one in enumerate(a.reshape(-1, *a.shape[-2:])):
        pivot = _zero_pivot(one)
        if pivot:
            return (f"(Batch element {i}): " if a.ndim > 2 else ""), pivot
    return "", 1


class LinalgInvEx(Operation):
    core_dims = (2,)

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        x = numbers(a)
        try:
            y = tensor(np.linalg.inv(x))
        except np.linalg.LinAlgError:
            where, pivot = _singular(x)
            raise LinAlgError(
                f"linalg.inv: {where}The diagonal element {pivot} is zero, the inversion could not be completed "
                "because the input matrix is singular."
            ) from None
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        computed: Tensor = -(y.mH @ grad @ y.mH)
        return computed


class LinalgSolveEx(Operation):
    core_dims = (2, 2)

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        x = numbers(a)
        try:
            y = tensor(np.linalg.solve(x, numbers(b)))
        except np.linalg.LinAlgError:
            where, _ = _singular(x)
            raise LinAlgError(
                f"torch.linalg.solve: {where}The solver failed because the input matrix is singular."
            ) from None
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        a, y = ctx.saved_tensors
        b_grad = LinalgSolveEx.apply(a.mH, grad)
        return -(b_grad @ y.mH), b_grad


class LinalgDet(Operation):
    core_dims = (2,)

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        y = tensor(np.linalg.det(numbers(a)))
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        a, y = ctx.saved_tensors
        return grad[..., None, None] * _cofactors(a, y)


def _cofactors(a: Tensor, det: Tensor) -> Tensor:
    """conj(det A) · A^-H, of singular matrices by U, S, V: each singular value's place takes the product of others."""
    if bool((det != 0).all()):
        regular: Tensor = det.conj()[..., None, None] * LinalgInvEx.apply(a).mH
        return regular
    from .factor import svd

    u, s, vh = svd(a, full_matrices=False)
    n = s.shape[-1]
    others = s.unsqueeze(-2).expand(*s.shape[:-1], n, n).masked_fill(rushlight.eye(n, dtype=rushlight.bool), 1.0)
    sign = (LinalgDet.apply(u) * LinalgDet.apply(vh)).conj()
    computed: Tensor = sign[..., None, None] * (u * others.prod(-1).unsqueeze(-2)) @ vh
    return computed


class LinalgSlogdet(Operation):
    core_dims = (2,)

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> tuple[Tensor, Tensor]:
        sign, size = (tensor(np.asarray(x)) for x in np.linalg.slogdet(numbers(a)))
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(a, sign)
        return sign, size

    @staticmethod
    def backward(ctx: Any, sign_grad: Tensor | None, size_grad: Tensor | None) -> Tensor | None:
        a, sign = ctx.saved_tensors
        grad = size_grad
        if a.is_complex() and sign_grad is not None:  # the sign is e^(i phi): it turns by the imaginary part
            turn = (sign_grad * sign.conj()).imag * 1j
            grad = turn if size_grad is None else turn + size_grad
        if grad is None:
            return None
        computed: Tensor = grad[..., None, None] * LinalgInvEx.apply(a).mH
        return computed


def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse of square matrices; LinAlgError where one is singular."""
    check_square("linalg.inv", A)
    computed: Tensor = LinalgInvEx.apply(A)
    return write(out, computed)


def _success(A: Tensor) -> Tensor:
    return rushlight.zeros(A.shape[:-2], dtype=rushlight.int32)


@over_batches(2)
def _info(A: Tensor) -> Tensor:
    return tensor(np.array([_zero_pivot(a) for a in matrices_of(A)], np.int32).reshape(A.shape[:-2]))


def inv_ex(A: Tensor, *, check_errors: bool = False, out: Any = None) -> Any:
    """Return the inverse, and per matrix the number (from 1) of a zero pivot, 0 where there is none."""
    check_square("linalg.inv_ex", A)
    try:
        return _inv_ex(*write(out, (LinalgInvEx.apply(A), _success(A))))
    except LinAlgError:
        if check_errors:
            raise
    info = _info(A)
    failed = (info != 0)[..., None, None]
    inverse = LinalgInvEx.apply(regular(A, failed)).masked_fill(failed, float("nan"))
    return _inv_ex(*write(out, (inverse, info)))


def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the determinant of square matrices."""
    check_square("linalg.det", A)
    computed: Tensor = LinalgDet.apply(A)
    return write(out, computed)


def slogdet(A: Tensor, *, out: Any = None) -> Any:
    """Return the determinant's sign, and the logarithm of its absolute value (-inf of singular matrices)."""
    check_square("linalg.slogdet", A)
    return _slogdet(*write(out, LinalgSlogdet.apply(A)))


def logdet(A: Tensor) -> Tensor:
    """Return the logarithm of the determinant: -inf of singular matrices, NaN where a real determinant is negative."""
    check_square("logdet", A)
    sign, size = LinalgSlogdet.apply(A)
    return sign.log() + size if A.is_complex() else rushlight.where(sign < 0, float("nan"), size)


def _is_vector(A: Tensor, B: Tensor) -> bool:
    return B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == A.shape[:-1])


def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """Return X with A X = B (X A = B unless ``left``). B: (batches of) matrices or vectors; a batch is broadcast.

    LinAlgError where a matrix is singular.
    """
    check_square("linalg.solve", A)
    if A.dtype != B.dtype:
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {scalar_type(A.dtype)} and "
            f"B of type {scalar_type(B.dtype)} instead"
        )
    vector = _is_vector(A, B)
    b = B.unsqueeze(-1) if vector else B
    if not left and vector:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
            "linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    if A.shape[-1] != b.shape[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        shapes = f"{A.shape[-2]}x{A.shape[-1]} and {b.shape[-2]}x{b.shape[-1]}"
        raise RuntimeError(f"linalg.solve: Incompatible shapes of A and B for the equation {equation} ({shapes})")
    x = LinalgSolveEx.apply(A, b) if left else LinalgSolveEx.apply(A.mT, b.mT).mT
    computed: Tensor = write(out, x.squeeze(-1) if vector else x)
    return computed


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """Return X with A X = B, and per matrix the number (from 1) of a zero pivot, 0 where there is none."""
    check_square("linalg.solve_ex", A)
    try:
        return _solve_ex(*write(out, (solve(A, B, left=left), _success(A))))
    except LinAlgError:
        if check_errors:
            raise
    info = _info(A)
    failed = (info != 0)[..., None] if _is_vector(A, B) else (info != 0)[..., None, None]
    result = solve(regular(A, (info != 0)[..., None, None]), B, left=left).masked_fill(failed, float("nan"))
    return _solve_ex(*write(out, (result, info)))


def solve_triangular(
    A: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Return X with A X = B (X A = B unless ``left``) of triangular A, whose other triangle is not read.

    ``unitriangular``: the diagonal counts as ones.
    """
    check_square("linalg.solve_triangular", A)
    check_matrix("linalg.solve_triangular", B, "B")
    strict = (1 if upper else -1) if unitriangular else 0
    a = A.triu(strict) if upper else A.tril(strict)
    if unitriangular:
        a = a + rushlight.eye(A.shape[-1], dtype=A.dtype)
    return write(out, solve(a, B, left=left))


def tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """Return the inverse of ``tensordot(A, x, ind)``: the first ``ind`` dimensions are the rows."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    rows, columns = A.shape[:ind], A.shape[ind:]
    if rows.numel() != columns.numel():
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{columns.numel()} != {rows.numel()}"
        )
    inverse = inv(A.reshape(rows.numel(), columns.numel()))
    return write(out, inverse.reshape(*columns, *rows))


def tensorsolve(A: Tensor, B: Tensor, dims: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Return X with ``tensordot(A, X, X.dim()) == B``; ``dims`` of A are moved to the end first."""
    a = A if dims is None else A.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    result = a.shape[B.dim() :]
    if result.numel() != B.numel():
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {result.numel()} != {B.numel()}"
        )
    return write(out, solve(a.reshape(B.numel(), result.numel()), B.reshape(-1)).reshape(result))
