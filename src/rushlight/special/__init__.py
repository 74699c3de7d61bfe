"""Special functions by PyTorch's names in ``torch.special``; the formulas stand in ``operators/pointwise_special.py``."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._missing import lazy_module
from ..operators.declare import declared
from ..operators.pointwise_polynomial import polynomials
from ..operators.underivable import underivable

Tensor = _C.Tensor

digamma = _C.digamma
psi = _C.digamma
erf = _C.erf
erfc = _C.erfc
erfinv = _C.erfinv
exp2 = _C.exp2
expit = _C.sigmoid
expm1 = _C.expm1
gammaln = _C.lgamma
i0 = _C.i0
log1p = _C.log1p
logit = _C.logit
logsumexp = _C.logsumexp
multigammaln = _C.mvlgamma
polygamma = _C.polygamma
round = _C.round
sinc = _C.sinc
xlogy = _C.xlogy

entr = declared["entr"].function
erfcx = declared["erfcx"].function
i0e = declared["i0e"].function
i1 = declared["i1"].function
i1e = declared["i1e"].function
log_ndtr = declared["log_ndtr"].function
ndtr = declared["ndtr"].function
ndtri = declared["ndtri"].function
spherical_bessel_j0 = declared["spherical_bessel_j0"].function
xlog1py = declared["xlog1py"].function
globals().update(polynomials)
modified_bessel_i0 = _C.i0
modified_bessel_i1 = i1


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return exp(x) over the sum of exp(x) along ``dim``. See :func:`rushlight.softmax`."""
    return _C.softmax(input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return the logarithm of softmax along ``dim``. See :func:`rushlight.log_softmax`."""
    return _C.log_softmax(input, dim, dtype=dtype)


def zeta(input: Any, other: Any, *, out: Any = None) -> Any:
    """Return Hurwitz's zeta function, the sum over k >= 0 of (``other`` + k) ** -``input``, pointwise.

    The derivative in ``other`` is -s zeta(s + 1, q); that in ``input`` raises NotImplementedError in backward.
    """
    return declared["zeta"].function(underivable(input, "zeta"), other, out=out)


_SCIPY = "rushlight.operators.pointwise_scipy"
__getattr__, __dir__ = lazy_module(
    __name__,
    names={
        **dict.fromkeys(
            (
                "airy_ai",
                *[f"bessel_{kind}" for kind in ("j0", "j1", "y0", "y1")],
                *[f"{scaled}modified_bessel_{kind}" for scaled in ("", "scaled_") for kind in ("k0", "k1")],
            ),
            _SCIPY,
        ),
        "gammainc": f"{_SCIPY}:igamma",
        "gammaincc": f"{_SCIPY}:igammac",
    },
    offers=("rushlight.special", "rushlight.operators.pointwise_scipy"),
)
