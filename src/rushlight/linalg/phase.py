"""What derivatives of eigenvectors and singular vectors share: gaps between values, phases that nothing determines."""

from __future__ import annotations

import rushlight
from rushlight import Tensor

__all__ = ["check_phase", "off_diagonal_quotient"]


def off_diagonal_quotient(a: Tensor, gaps: Tensor) -> Tensor:
    """Each number divided by the gap between two values; zeros on the diagonal."""
    diagonal = rushlight.eye(gaps.shape[-1], dtype=rushlight.bool)
    return a.masked_fill(diagonal, 0.0) / gaps.masked_fill(diagonal, 1.0)


def check_phase(name: str, what: str, diagonal: Tensor) -> None:
    """Refuse a loss that depends on the phases of complex vectors."""
    if diagonal.is_complex() and bool((diagonal.detach().imag.abs() > 1e-2).any()):
        ends = "this phase term, making it" if what == "singular vectors" else "this quantity, so it is"
        raise RuntimeError(
            f"{name}: The {what} in the complex case are specified up to multiplication by e^{{i phi}}. The specified "
            f"loss function depends on {ends} ill-defined."
        )
