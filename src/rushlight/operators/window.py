"""The windows that `torch` itself has: those of signal.windows, of one period unless told otherwise."""

from __future__ import annotations

from typing import Any

from .. import _C
from ..signal import windows

__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]

Tensor = _C.Tensor


def _check(name: str, window_length: int, how: dict[str, Any]) -> None:
    """Refuse what these refuse with other words than signal.windows."""
    for key in how:
        if key not in ("dtype", "layout", "device", "pin_memory", "requires_grad"):
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
    dtype = how.get("dtype") or _C.get_default_dtype()
    if window_length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={window_length}")
    if not dtype.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")


def _made(name: str, make: Any, window_length: int, periodic: bool, how: dict[str, Any], **shape: Any) -> Tensor:
    _check(name, window_length, how)
    dtype, requires_grad = how.pop("dtype", None) or _C.get_default_dtype(), how.pop("requires_grad", False)
    if how.get("layout", 0) is None:
        del how["layout"]
    window: Tensor = make(window_length, sym=not periodic, dtype=_C.float64, **shape, **how)
    return window.to(dtype).requires_grad_(requires_grad)


def hann_window(window_length: int, periodic: bool = True, **how: Any) -> Tensor:
    """Return 1/2 - 1/2 cos(2 pi x) for x from 0 to 1 (without the end where ``periodic``)."""
    return _made("hann_window", windows.hann, window_length, periodic, how)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **how: Any
) -> Tensor:
    """Return alpha - beta cos(2 pi x) for x from 0 to 1 (without the end where ``periodic``)."""
    return _made("hamming_window", windows.general_cosine, window_length, periodic, how, a=(alpha, beta))


def blackman_window(window_length: int, periodic: bool = True, **how: Any) -> Tensor:
    """Return 0.42 - 0.5 cos(2 pi x) + 0.08 cos(4 pi x) for x from 0 to 1 (without the end where ``periodic``)."""
    return _made("blackman_window", windows.blackman, window_length, periodic, how)


def bartlett_window(window_length: int, periodic: bool = True, **how: Any) -> Tensor:
    """Return the triangle 1 - |2 x - 1| for x from 0 to 1 (without the end where ``periodic``)."""
    return _made("bartlett_window", windows.bartlett, window_length, periodic, how)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, **how: Any) -> Tensor:
    """Return I0(beta sqrt(1 - (2 x - 1)^2)) / I0(beta) for x from 0 to 1 (without the end where ``periodic``)."""
    return _made("kaiser_window", windows.kaiser, window_length, periodic, how, beta=beta)
