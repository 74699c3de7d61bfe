"""Decompositions of low rank by random projections (Halko, Martinsson and Tropp, 2009)."""

from __future__ import annotations

import rushlight
from rushlight import Tensor

from .factor import qr, svd

__all__ = ["pca_lowrank", "svd_lowrank"]


def _range(a: Tensor, q: int, iterations: int) -> Tensor:
    """Orthonormal columns that span nearly what the q greatest singular vectors span."""
    basis: Tensor = qr(a @ rushlight.randn(a.shape[-1], q, dtype=a.dtype)).Q
    for _ in range(iterations):
        basis = qr(a @ qr(a.mH @ basis).Q).Q
    return basis


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return U, S, V with nearly A - M = U diag(S) Vᴴ, for the q greatest singular values."""
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    a = A if M is None else A - M.expand(A.shape)
    m, n = a.shape[-2:]
    if m < n:
        v, s, u = svd_lowrank(a.mH, q, niter)
        return u, s, v
    basis = _range(a, q, niter)
    u, s, vh = svd(basis.mH @ a, full_matrices=False)
    return basis @ u, s, vh.mH


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Return U, S, V of the (centred) rows: the columns of V are the principal directions."""
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
