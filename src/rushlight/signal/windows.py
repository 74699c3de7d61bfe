"""Windows by PyTorch's names in ``torch.signal.windows``: M numbers, symmetric or (``sym=False``) of one period."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import rushlight
from rushlight import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]

_KEYWORDS = ("dtype", "layout", "device", "pin_memory", "requires_grad")


def _checked(name: str, M: int, how: dict[str, Any]) -> Any:
    """The type of the result; refuses what no window is made of."""
    for key in how:
        if key not in _KEYWORDS:
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    layout, device = how.get("layout", rushlight.strided), how.get("device")
    if layout is not rushlight.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if device is not None:
        rushlight.device(device)
    dtype = how.get("dtype") or rushlight.get_default_dtype()
    if dtype not in (rushlight.float32, rushlight.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return dtype


def _places(M: int, sym: bool, first: float, last: float) -> Tensor:
    """M numbers from `first` to `last`, in double precision; the last one left out unless `sym`."""
    return rushlight.linspace(first, last, M if sym else M + 1, dtype=rushlight.float64)[:M]


def _finished(window: Tensor, dtype: Any, how: dict[str, Any]) -> Tensor:
    return window.to(dtype).requires_grad_(how.get("requires_grad", False))


def _plain(M: int, dtype: Any, how: dict[str, Any]) -> Tensor:
    """Windows of no or one number."""
    return _finished(rushlight.ones(M), dtype, how)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **how: Any) -> Tensor:
    """Return the sum over k of (-1)^k a[k] cos(2 pi k x) for x from 0 to 1."""
    dtype = _checked("general_cosine", M, how)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    if M < 2:
        return _plain(M, dtype, how)
    x = _places(M, sym, 0, 2 * math.pi)
    window = rushlight.zeros(M, dtype=rushlight.float64)
    for k, weight in enumerate(weights):
        window = window + (-1) ** k * weight * rushlight.cos(x * k)
    return _finished(window, dtype, how)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **how: Any) -> Tensor:
    """Return alpha - (1 - alpha) cos(2 pi x) for x from 0 to 1."""
    return general_cosine(M, a=(alpha, 1.0 - alpha), sym=sym, **how)


def hamming(M: int, *, sym: bool = True, **how: Any) -> Tensor:
    """Return 0.54 - 0.46 cos(2 pi x) for x from 0 to 1."""
    return general_hamming(M, sym=sym, **how)


def hann(M: int, *, sym: bool = True, **how: Any) -> Tensor:
    """Return 1/2 - 1/2 cos(2 pi x) for x from 0 to 1."""
    return general_hamming(M, alpha=0.5, sym=sym, **how)


def blackman(M: int, *, sym: bool = True, **how: Any) -> Tensor:
    """Return 0.42 - 0.5 cos(2 pi x) + 0.08 cos(4 pi x) for x from 0 to 1."""
    return general_cosine(M, a=(0.42, 0.5, 0.08), sym=sym, **how)


def nuttall(M: int, *, sym: bool = True, **how: Any) -> Tensor:
    """Return Nuttall's window of four cosines, with the smallest side lobes."""
    return general_cosine(M, a=(0.3635819, 0.4891775, 0.1365995, 0.0106411), sym=sym, **how)


def bartlett(M: int, *, sym: bool = True, **how: Any) -> Tensor:
    """Return the triangle 1 - |x| for x from -1 to 1."""
    dtype = _checked("bartlett", M, how)
    return _plain(M, dtype, how) if M < 2 else _finished(1 - _places(M, sym, -1, 1).abs(), dtype, how)


def cosine(M: int, *, sym: bool = True, **how: Any) -> Tensor:
    """Return sin(pi (n + 1/2) / M) for n from 0."""
    dtype = _checked("cosine", M, how)
    if M == 0:
        return _plain(M, dtype, how)
    places = rushlight.arange(M, dtype=rushlight.float64) + 0.5
    return _finished(rushlight.sin(places * (math.pi / (M if sym or M == 1 else M + 1))), dtype, how)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **how: Any) -> Tensor:
    """Return exp(-|n - center| / tau) for n from 0; the center of a symmetric window is its middle."""
    dtype = _checked("exponential", M, how)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return _plain(M, dtype, how)
    middle = (M if not sym and M > 1 else M - 1) / 2.0 if center is None else center
    places = rushlight.arange(M, dtype=rushlight.float64)
    return _finished(rushlight.exp(-(places - middle).abs() / tau), dtype, how)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **how: Any) -> Tensor:
    """Return exp(-((n - middle) / std)^2 / 2) for n from 0."""
    dtype = _checked("gaussian", M, how)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return _plain(M, dtype, how)
    middle = (M if not sym and M > 1 else M - 1) / 2.0
    places = (rushlight.arange(M, dtype=rushlight.float64) - middle) / std
    return _finished(rushlight.exp(-places.square() / 2), dtype, how)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **how: Any) -> Tensor:
    """Return I0(beta sqrt(1 - x^2)) / I0(beta) for x from -1 to 1."""
    dtype = _checked("kaiser", M, how)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M < 2:
        return _plain(M, dtype, how)
    inside = (1 - _places(M, sym, -1, 1).square()).clamp(min=0).sqrt()
    peak = rushlight.i0(rushlight.tensor(beta, dtype=rushlight.float64))
    return _finished(rushlight.i0(beta * inside) / peak, dtype, how)
