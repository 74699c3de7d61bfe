"""Eigenvalues and eigenvectors of matrices of any kind, by LAPACK (through NumPy).

The derivatives are those of Giles (2008), "Collected matrix derivative results", for eigenvectors of norm 1 (Boeddeker
et al. 2017, "On the computation of complex-valued gradients with application to statistically optimum beamforming").
"""

from __future__ import annotations

from typing import Any

import numpy as np

import rushlight
from rushlight import Tensor

from ..operators.operation import Operation
from .matrices import check_square, named, numbers, scalar_type, tensor, write
from .phase import check_phase, off_diagonal_quotient
from .solve import solve

__all__ = ["eig", "eigvals"]

_eig = named("linalg_eig", "eigenvalues eigenvectors")


class LinalgEig(Operation):
    core_dims = (2, 0)

    @staticmethod
    def forward(ctx: Any, a: Tensor, name: str) -> tuple[Tensor, Tensor]:
        x = numbers(a)
        kind = np.result_type(x.dtype, np.complex64)
        if not np.isfinite(x).all():
            raise RuntimeError(f"torch.{name}: input tensor should not contain infs or NaNs.")
        values, vectors = (tensor(part.astype(kind, copy=False)) for part in np.linalg.eig(x))
        ctx.real = not a.is_complex()
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(values, vectors)
        return values, vectors

    @staticmethod
    def backward(ctx: Any, values_grad: Tensor | None, vectors_grad: Tensor | None) -> tuple[Tensor | None, None]:
        """V^-H (diag grad_L + (Vᴴ grad_V - Vᴴ V diag(Re Vᴴ grad_V)) / conj(L_j - L_i)) Vᴴ."""
        if values_grad is None and vectors_grad is None:
            return None, None
        values, v = ctx.saved_tensors
        inner: Any = 0.0 if values_grad is None else rushlight.diag_embed(values_grad)
        if vectors_grad is not None:
            turn = v.mH @ vectors_grad
            diagonal = turn.diagonal(0, -2, -1)
            check_phase("linalg_eig_backward", "eigenvectors", diagonal)
            change = turn - v.mH @ (v * diagonal.real.unsqueeze(-2))  # the vectors keep their norm
            inner = off_diagonal_quotient(change, (values.unsqueeze(-2) - values.unsqueeze(-1)).conj()) + inner
        result = solve(v.mH, inner @ v.mH)
        return result.real if ctx.real else result, None


def _checked(name: str, A: Tensor) -> Tensor:
    if A.dim() >= 2 and A.dtype in (rushlight.float16, rushlight.bfloat16):
        raise NotImplementedError(f"\"{name.replace('.', '_')}\" not implemented for '{scalar_type(A.dtype)}'")
    check_square(name, A)
    return A


def _check_out(name: str, out: Any) -> None:
    for what, t in zip(("eigenvalues", "eigenvectors"), out or (), strict=False):
        if not t.is_complex():
            raise RuntimeError(
                f"torch.{name}: Expected {what} to be safely castable from ComplexFloat dtype, but got {what} with "
                f"dtype {scalar_type(t.dtype)}"
            )


def eig(A: Tensor, *, out: Any = None) -> Any:
    """Return the eigenvalues and the eigenvectors (columns of norm 1) of square A, both complex.

    The order of the values and the phases of the vectors are as LAPACK leaves them. Derivatives need distinct values;
    a loss that depends on the phases of the vectors is refused in backward.
    """
    _check_out("linalg.eig", out)
    return _eig(*write(out, LinalgEig.apply(_checked("linalg.eig", A), "linalg.eig")))


def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the eigenvalues of square A, complex, in LAPACK's order."""
    _check_out("linalg.eigvals", None if out is None else (out,))
    computed: Tensor = LinalgEig.apply(_checked("linalg.eigvals", A), "linalg.eigvals")[0]
    return write(out, computed)
