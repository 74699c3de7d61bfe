"""Orthogonal polynomials of ``torch.special``, in ``x`` and the degree ``n``; like PyTorch's they have no derivative."""

from __future__ import annotations

from .declare import pointwise

_FAMILIES = (
    *[f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"],
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
)

polynomials = {
    name: pointwise(name, loop=name, params=(("x",), ("n",)), operands="ee", rule="float", forms="")
    for name in _FAMILIES
}
