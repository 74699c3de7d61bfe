"""Special functions by PyTorch's names in ``torch.special``; the formulas stand in ``operators/pointwise_special.py``."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._missing import lazy_module
from ..operators.declare import declared

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
xlog1py = declared["xlog1py"].function
zeta = declared["zeta"].function


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return exp(x) over the sum of exp(x) along ``dim``. See :func:`rushlight.softmax`."""
    return _C.softmax(input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return the logarithm of softmax along ``dim``. See :func:`rushlight.log_softmax`."""
    return _C.log_softmax(input, dim, dtype=dtype)


__getattr__, __dir__ = lazy_module(__name__)
