"""Factorizations of matrices by LAPACK (through NumPy), least squares and pseudo-inverses.

The derivatives are those of Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008), of Walter and Lehmann (QR), and of Golub and Pereyra (pseudo-inverse).
"""

from __future__ import annotations

from typing import Any, NoReturn, cast

import numpy as np

import rushlight
from rushlight import Tensor

from ..operators.operation import Operation, every_sample
from .matrices import (
    LinAlgError,
    check_matrix,
    check_square,
    matrices_of,
    named,
    numbers,
    over_batches,
    regular,
    tensor,
    write,
)
from .phase import check_phase, off_diagonal_quotient
from .solve import solve_triangular

__all__ = [
    "cholesky",
    "cholesky_ex",
    "eigh",
    "eigvalsh",
    "geqrf",
    "householder_product",
    "lstsq",
    "pinv",
    "qr",
    "svd",
    "svdvals",
]

_cholesky_ex = named("linalg_cholesky_ex", "L info")
_eigh = named("linalg_eigh", "eigenvalues eigenvectors")
_geqrf = named("geqrf", "a tau")
_lstsq = named("linalg_lstsq", "solution residuals rank singular_values")
_qr = named("linalg_qr", "Q R")
_svd = named("linalg_svd", "U S Vh")


def _with_halved_diagonal(a: Tensor) -> Tensor:
    return a - 0.5 * rushlight.diag_embed(a.diagonal(0, -2, -1))


class LinalgCholeskyEx(Operation):
    """The lower factor of a Hermitian matrix, of which the upper triangle is read where ``upper``.

    As in PyTorch the gradient is the same in both cases, where both triangles depend on something.
    """

    core_dims = (2, 0)

    @staticmethod
    def forward(ctx: Any, a: Tensor, upper: bool) -> Tensor:
        x = numbers(a)
        y = tensor(np.linalg.cholesky(np.conj(np.swapaxes(x, -1, -2)) if upper else x))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (y,) = ctx.saved_tensors
        lower = (y.mH @ grad).tril()
        inner = solve_triangular(y.mH, 0.5 * (lower + lower.tril(-1).mH), upper=True)
        return solve_triangular(y, inner, upper=False, left=False), None


def _minor(a: Any) -> int:
    """The order of the first leading minor that is not positive-definite, 0 where all are: LAPACK's info."""
    for n in range(1, len(a) + 1):
        try:
            np.linalg.cholesky(a[:n, :n])
        except np.linalg.LinAlgError:
            return n
    return 0


@over_batches(2)
def _minors(A: Tensor) -> Tensor:
    return tensor(np.array([_minor(a) for a in matrices_of(A)], np.int32).reshape(A.shape[:-2]))


def _cholesky(name: str, A: Tensor, upper: bool) -> Tensor:
    check_square(name, A)
    try:
        factor: Tensor = LinalgCholeskyEx.apply(A, upper)
    except np.linalg.LinAlgError:
        lower = every_sample(A.mH if upper else A)
        info = numbers(_minors(lower)).reshape(-1)
        at = int(np.argmax(info > 0))
        where = f"(Batch element {at}): " if lower.dim() > 2 else ""
        raise LinAlgError(
            f"{name}: {where}The factorization could not be completed because the input is not positive-definite "
            f"(the leading minor of order {info[at]} is not positive-definite)."
        ) from None
    return factor.mH if upper else factor


def cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """Return the lower triangular L with A = L Lᴴ (U with A = Uᴴ U where ``upper``) of Hermitian positive-definite A."""
    return write(out, _cholesky("linalg.cholesky", A, upper))


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """Return cholesky's factor, and per matrix the order of a minor that is not positive-definite, or 0."""
    check_square("linalg.cholesky_ex", A)
    try:
        success = rushlight.zeros(A.shape[:-2], dtype=rushlight.int32)
        return _cholesky_ex(*write(out, (_cholesky("linalg.cholesky_ex", A, upper), success)))
    except LinAlgError:
        if check_errors:
            raise
    info = _minors(A.mH if upper else A)
    failed = (info != 0)[..., None, None]
    factor = _cholesky("linalg.cholesky_ex", regular(A, failed), upper)
    return _cholesky_ex(*write(out, (rushlight.where(failed, A.triu() if upper else A.tril(), factor), info)))


class LinalgQr(Operation):
    core_dims = (2, 0)

    @staticmethod
    def forward(ctx: Any, a: Tensor, mode: str) -> tuple[Tensor, Tensor]:
        if mode == "r":
            q, r = a.new_empty(0), tensor(np.linalg.qr(numbers(a), "r"))
        else:
            q, r = (tensor(x) for x in np.linalg.qr(numbers(a), cast("Any", mode)))
        ctx.mode = mode
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(q, r)
        return q, r

    @staticmethod
    def backward(ctx: Any, q_grad: Tensor | None, r_grad: Tensor | None) -> tuple[Tensor | None, None]:
        if q_grad is None and r_grad is None:
            return None, None
        q, r = ctx.saved_tensors
        if ctx.mode == "r":
            raise RuntimeError(
                "linalg_qr_backward: The derivative of linalg.qr depends on Q, which is not computed when mode='r'. "
                "Please use linalg.qr(A, mode='reduced') if you are going to require gradients"
            )
        m, n = q.shape[-2], r.shape[-1]
        if ctx.mode == "complete" and m > n:
            raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols")
        if m >= n or r_grad is None:
            of_a = _qr_vjp(q, r[..., :m], q_grad, r_grad)
            return rushlight.nn.functional.pad(of_a, (0, n - of_a.shape[-1])) if m < n else of_a, None
        # A = [X | Y], R = [U | V]: Y = Q V, and X = Q U is square
        left, right = r[..., :m], r[..., m:]
        g = r_grad[..., m:]
        of_q = q @ right @ g.mH
        x_grad = _qr_vjp(q, left, of_q if q_grad is None else q_grad + of_q, r_grad[..., :m])
        return rushlight.cat([x_grad, q @ g], -1), None


def _qr_vjp(q: Tensor, r: Tensor, q_grad: Tensor | None, r_grad: Tensor | None) -> Tensor:
    """(grad_Q + Q (T + Tᴴ)) R^-H, T the upper triangle of grad_R Rᴴ - Qᴴ grad_Q with half its diagonal."""
    m: Any = 0.0 if r_grad is None else r_grad @ r.mH
    if q_grad is not None:
        m = m - q.mH @ q_grad
    triangle = _with_halved_diagonal(m.triu())
    inner = q @ (triangle + triangle.mH)
    return solve_triangular(r.mH, inner if q_grad is None else q_grad + inner, upper=False, left=False)


def qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> Any:
    """Return Q with orthonormal columns and the upper triangular R with A = Q R.

    ``mode``: "reduced" (Q of the shape of A where it is tall), "complete" (Q square), "r" (R alone).
    """
    check_matrix("linalg.qr", A)
    if mode not in ("reduced", "r", "complete"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    return _qr(*write(out, LinalgQr.apply(A, mode)))


class LinalgEigh(Operation):
    core_dims = (2, 0)

    @staticmethod
    def forward(ctx: Any, a: Tensor, uplo: str) -> tuple[Tensor, Tensor]:
        values, vectors = (tensor(x) for x in np.linalg.eigh(numbers(a), cast("Any", uplo)))
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(values, vectors)
        return values, vectors

    @staticmethod
    def backward(ctx: Any, values_grad: Tensor | None, vectors_grad: Tensor | None) -> tuple[Tensor | None, None]:
        if values_grad is None and vectors_grad is None:
            return None, None
        values, v = ctx.saved_tensors
        inner: Any = 0.0 if values_grad is None else rushlight.diag_embed(values_grad)
        if vectors_grad is not None:
            turn = v.mH @ vectors_grad
            check_phase("linalg_eigh_backward", "eigenvectors", turn.diagonal(0, -2, -1))
            inner = off_diagonal_quotient(turn, values.unsqueeze(-2) - values.unsqueeze(-1)) + inner
        result = v @ inner.to(v.dtype) @ v.mH
        return 0.5 * (result + result.mH), None  # one triangle stands for both


def eigh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Any:
    """Return the eigenvalues (ascending) and eigenvectors (columns) of Hermitian A, of which one triangle is read."""
    check_square("linalg.eigh", A)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return _eigh(*write(out, LinalgEigh.apply(A, UPLO.upper())))


def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """Return the eigenvalues of Hermitian A, ascending."""
    computed: Tensor = write(out, eigh(A, UPLO)[0])
    return computed


class LinalgSvd(Operation):
    core_dims = (2, 0)

    @staticmethod
    def forward(ctx: Any, a: Tensor, full: bool) -> tuple[Tensor, Tensor, Tensor]:
        u, s, vh = (tensor(x) for x in np.linalg.svd(numbers(a), full))
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(u, s, vh)
        return u, s, vh

    @staticmethod
    def backward(
        ctx: Any, u_grad: Tensor | None, s_grad: Tensor | None, vh_grad: Tensor | None
    ) -> tuple[Tensor | None, None]:
        if u_grad is None and s_grad is None and vh_grad is None:
            return None, None
        u, s, vh = ctx.saved_tensors
        k = s.shape[-1]
        v_grad = None if vh_grad is None else vh_grad.mH
        if any(g is not None and bool((g[..., k:] != 0).any()) for g in (u_grad, v_grad)):
            raise RuntimeError(
                "svd_backward: The singular vectors beyond the first min(m, n) of full_matrices=True have no derivative"
            )
        u, v = u[..., :k], vh[..., :k, :].mH
        inner: Any = 0.0 if s_grad is None else rushlight.diag_embed(s_grad)
        if u_grad is None and v_grad is None:
            return u @ inner.to(u.dtype) @ v.mH, None
        row, column = s.unsqueeze(-2), s.unsqueeze(-1)
        gaps = (row - column) * (row + column)
        phases: Any = 0.0
        beside: Any = 0.0
        if u_grad is not None:
            u_grad = u_grad[..., :k]
            turn = u.mH @ u_grad
            inner = off_diagonal_quotient(turn - turn.mH, gaps) * row + inner
            phases = phases + turn.diagonal(0, -2, -1)
            if u.shape[-2] > k:
                beside = beside + ((u_grad - u @ turn) / row) @ v.mH
        if v_grad is not None:
            v_grad = v_grad[..., :k]
            turn = v.mH @ v_grad
            inner = column * off_diagonal_quotient(turn - turn.mH, gaps) + inner
            phases = phases + turn.diagonal(0, -2, -1)
            if v.shape[-2] > k:
                beside = beside + (u / row) @ (v_grad - v @ turn).mH
        if u.is_complex():
            check_phase("svd_backward", "singular vectors", phases)
            inner = inner + rushlight.diag_embed(_half_phases(u, v, u_grad, v_grad) / s)
        return u @ inner.to(u.dtype) @ v.mH + beside, None


def _half_phases(u: Tensor, v: Tensor, u_grad: Tensor | None, v_grad: Tensor | None) -> Tensor:
    """i/2 of how far the loss grows as each u turns, less as each v does: one phase is free, both turn by halves."""
    turns: Any = 0.0
    for sign, x, g in ((0.5, u, u_grad), (-0.5, v, v_grad)):
        if g is not None:
            turns = turns + sign * (x.conj() * g).sum(-2).imag
    found: Tensor = turns * 1j
    return found


def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None) -> Any:
    """Return U, S, Vh with A = U diag(S) Vh: U and Vh unitary, S descending.

    ``full_matrices``: U and Vh are square. The vectors' derivatives need distinct singular values that are not 0.
    """
    check_matrix("linalg.svd", A)
    if driver is not None:
        raise RuntimeError(f"torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs: {driver}")
    return _svd(*write(out, LinalgSvd.apply(A, full_matrices)))


def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """Return the singular values, descending."""
    computed: Tensor = write(out, svd(A, False, driver=driver)[1])
    return computed


class LinalgPinv(Operation):
    core_dims = (2, 0, 0, 0)

    @staticmethod
    def forward(ctx: Any, a: Tensor, atol: Tensor, rtol: Tensor, hermitian: bool) -> Tensor:
        u, s, vh = np.linalg.svd(numbers(a), full_matrices=False, hermitian=hermitian)
        greatest = s.max(-1, keepdims=True) if s.shape[-1] else s.sum(-1, keepdims=True)
        limit = np.maximum(numbers(atol)[..., None], numbers(rtol)[..., None] * greatest)
        inverse = np.divide(1, s, out=np.zeros(np.broadcast_shapes(s.shape, limit.shape), s.dtype), where=s > limit)
        y = tensor(np.swapaxes(vh.conj(), -1, -2) @ (inverse[..., None] * np.swapaxes(u.conj(), -1, -2)))
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        a, y = ctx.saved_tensors
        g, yh = grad.mH, y.mH
        outer, inner = g @ y, y @ g
        result = -(yh @ grad @ yh)
        result = result + (outer - a @ (y @ outer)) @ yh
        result = result + yh @ (inner - (inner @ y) @ a)
        return result, None, None, None


def pinv(
    A: Tensor,
    rcond: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the pseudo-inverse: singular values up to max(atol, rtol · greatest) count as 0."""
    check_matrix("linalg.pinv", A)
    share = rcond if rtol is None else rtol
    if share is None:
        share = 0.0 if atol is not None else max(A.shape[-2:]) * rushlight.finfo(A.dtype).eps
    real = A.dtype.to_real()
    limits = [t if isinstance(t, Tensor) else rushlight.tensor(t or 0.0, dtype=real) for t in (atol, share)]
    computed: Tensor = LinalgPinv.apply(A, *limits, hermitian)
    return write(out, computed)


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """Return the X that make A X - B smallest (and, of several, the smallest X), residuals, ranks, singular values.

    ``driver`` "gels" takes A for one of full rank; others look at its singular values, which "gelsd" and "gelss" give.
    Unless given it is "gelsy", which gives no residuals.
    """
    check_matrix("torch.linalg.lstsq", A)
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    m, n = A.shape[-2:]
    vector = A.dim() - 1 == B.dim() and A.shape[:-1] == B.shape
    b = B.unsqueeze(-1) if vector else B
    share = max(m, n) * rushlight.finfo(A.dtype).eps if rcond is None else rcond
    with rushlight.no_grad():
        values = svdvals(A.detach())
        greatest = values[..., :1] if values.shape[-1] else 0.0
        rank = (values > greatest * share).sum(-1)
    solution = pinv(A, share) @ b
    full = m > n and bool((every_sample(rank) == n).all()) and driver in ("gels", "gelsd", "gelss")
    residuals = (A @ solution - b).abs().square().sum(-2) if full else solution.reshape(-1)[:0].abs()
    nothing = rushlight.empty(0, dtype=rushlight.int64)
    return _lstsq(
        solution.squeeze(-1) if vector else solution,
        residuals.squeeze(-1) if vector and full else residuals,
        nothing if driver == "gels" else rank,
        values if driver in ("gelsd", "gelss") else values.new_empty(0),
    )


class Geqrf(Operation):
    core_dims = (2,)

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> tuple[Tensor, Tensor]:
        h, tau = np.linalg.qr(numbers(a), "raw")
        return tensor(np.swapaxes(h, -1, -2)), tensor(tau)

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> NoReturn:
        raise NotImplementedError("the derivative for 'geqrf' is not implemented: use torch.linalg.qr")


def geqrf(input: Tensor, *, out: Any = None) -> Any:
    """Return QR in LAPACK's form: R above the diagonal, the reflectors' vectors below, and their factors tau."""
    check_matrix("geqrf", input)
    return _geqrf(*write(out, Geqrf.apply(input)))


def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the first columns of the product of the reflectors I - tau v vᴴ, whose v stand below A's diagonal."""
    check_matrix("linalg.householder_product", A)
    m, n = A.shape[-2:]
    if m < n:
        raise RuntimeError(
            "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if tau.shape[-1] > n:
        raise RuntimeError(
            "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    if A.numel() == 0:
        return write(out, A.clone())
    vectors = A.tril(-1) + rushlight.eye(m, n, dtype=A.dtype)
    q = A.clone().zero_() + rushlight.eye(m, n, dtype=A.dtype)
    for i in range(tau.shape[-1] - 1, -1, -1):
        v = vectors[..., i : i + 1]
        q = q - tau[..., i, None, None] * (v @ (v.mH @ q))
    return write(out, q)
