"""Switches of the whole process that programs set and ask for; and questions about a tensor or a number.

Every operator gives the same bits in every run with as many threads. Asking for deterministic algorithms makes them
the same for any number of threads: convolutions leave oneDNN for our own kernels, and products are cut by their sizes.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from . import _C

__all__ = [
    "_assert",
    "_assert_async",
    "_check",
    "_check_index",
    "_check_type",
    "_check_value",
    "are_deterministic_algorithms_enabled",
    "get_autocast_cpu_dtype",
    "get_autocast_gpu_dtype",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "is_autocast_cpu_enabled",
    "is_conj",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_inference",
    "is_neg",
    "is_signed",
    "is_warn_always_enabled",
    "resolve_conj",
    "resolve_neg",
    "set_anomaly_enabled",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_warn_always",
    "sym_float",
    "sym_int",
    "sym_max",
    "sym_min",
    "sym_not",
    "use_deterministic_algorithms",
]

Tensor = _C.Tensor

_deterministic = {"on": False, "warn_only": False}
_precision = "highest"
_warn_always = False
_interop_threads = 1


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for operators that repeat their results to the bit, whatever the number of threads.

    Convolutions then run on our own kernels, which are slower than oneDNN's. No operator refuses, so that `warn_only`
    changes no more than the answer of `is_deterministic_algorithms_warn_only_enabled`.
    """
    _deterministic.update(on=bool(mode), warn_only=bool(mode) and bool(warn_only))
    _C._set_deterministic(bool(mode))


def are_deterministic_algorithms_enabled() -> bool:
    """Were deterministic algorithms asked for?"""
    return _deterministic["on"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Were they asked for with a warning in place of an error?"""
    return _deterministic["warn_only"]


_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Ask for deterministic algorithms by "default" (0: no), "warn" (1) or "error" (2)."""
    if not isinstance(debug_mode, int | str):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = _MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """Return 0, 1 (warn) or 2 (error): how deterministic algorithms were asked for."""
    return 0 if not _deterministic["on"] else 1 if _deterministic["warn_only"] else 2


def set_float32_matmul_precision(precision: str) -> None:
    """Allow products of float32 numbers to be less precise; here they are of full precision whatever is allowed."""
    global _precision
    if precision in ("highest", "high", "medium"):
        _precision = precision
        return
    warnings.warn(
        f"{precision} is not one of 'highest', 'high', or 'medium'; the current setFloat32MatmulPrecision call has no "
        "effect.",
        stacklevel=2,
    )


def get_float32_matmul_precision() -> str:
    """Return what was set."""
    return _precision


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Turn anomaly mode on or off, without the warning and the undoing of :class:`autograd.set_detect_anomaly`."""
    _C._set_anomaly_enabled(mode, check_nan)


def set_warn_always(b: bool) -> None:
    """Ask that warnings which are given once be given always."""
    global _warn_always
    if not isinstance(b, bool):
        raise TypeError(f"set_warn_always(): expected a bool, but got {type(b).__name__}")
    _warn_always = b


def is_warn_always_enabled() -> bool:
    """Return what was set."""
    return _warn_always


def set_flush_denormal(mode: bool) -> bool:
    """Return False: denormal numbers are computed with, not flushed to zero."""
    return False


def get_num_interop_threads() -> int:
    """Return what was set: operators run one after another in the thread that calls them."""
    return _interop_threads


def set_num_interop_threads(n: int) -> None:
    """Accept a number of threads for running operators side by side."""
    global _interop_threads
    if n <= 0:
        raise RuntimeError("Expected number of threads > 0")
    _interop_threads = int(n)


# ---- questions


@_C._offered
def is_signed(input: Tensor) -> bool:
    """Has the tensor's type negative numbers?"""
    return input.is_signed()


@_C._offered
def is_inference(input: Tensor) -> bool:
    """Was the tensor made in inference mode?"""
    return input.is_inference()


@_C._offered
def is_conj(input: Tensor) -> bool:
    """Is the tensor to be read conjugated? Never: conjugates are computed."""
    return False


@_C._offered
def is_neg(input: Tensor) -> bool:
    """Is the tensor to be read negated? Never: negatives are computed."""
    return False


@_C._offered
def resolve_conj(input: Tensor) -> Tensor:
    """Return the tensor, which is never to be read conjugated."""
    return input


@_C._offered
def resolve_neg(input: Tensor) -> Tensor:
    """Return the tensor, which is never to be read negated."""
    return input


# ---- numbers that may be symbols elsewhere


def sym_int(a: Any) -> int:
    """Return the number without its fraction."""
    whole: int = math.trunc(a)
    return whole


def sym_float(a: Any) -> float:
    """Return the number as a float."""
    return float(a)


def sym_max(a: Any, b: Any) -> Any:
    """Return the greater number; a float where one of them is."""
    greater = max(a, b)
    return float(greater) if isinstance(a, float) or isinstance(b, float) else greater


def sym_min(a: Any, b: Any) -> Any:
    """Return the smaller number; a float where one of them is."""
    smaller = min(a, b)
    return float(smaller) if isinstance(a, float) or isinstance(b, float) else smaller


def sym_not(a: bool) -> bool:
    """Return the opposite."""
    return not a


# ---- demands of programs


def _assert(condition: Any, message: str) -> None:
    """Raise AssertionError with the message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def _assert_async(input: Tensor, message: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise RuntimeError with the message where the only element is zero."""
    if not bool(input):
        raise RuntimeError(message)


def _demand(error: type[Exception], cond: Any, message: Any) -> None:
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error(
            "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
            "enhancement request to PyTorch.)"
        )
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error(str(message()))


def _check(cond: Any, message: Any = None) -> None:
    """Raise RuntimeError with what ``message()`` says unless the condition holds."""
    _demand(RuntimeError, cond, message)


def _check_index(cond: Any, message: Any = None) -> None:
    """Raise IndexError with what ``message()`` says unless the condition holds."""
    _demand(IndexError, cond, message)


def _check_value(cond: Any, message: Any = None) -> None:
    """Raise ValueError with what ``message()`` says unless the condition holds."""
    _demand(ValueError, cond, message)


def _check_type(cond: Any, message: Any = None) -> None:
    """Raise TypeError with what ``message()`` says unless the condition holds."""
    _demand(TypeError, cond, message)


# ---- mixed precision by older names


def is_autocast_cpu_enabled() -> bool:
    """Is mixed precision chosen for the CPU?"""
    from .amp.autocast_mode import is_autocast_enabled

    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> Any:
    """Return the type that mixed precision computes in on the CPU."""
    from .amp.autocast_mode import get_autocast_dtype

    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> Any:
    """Return the type that mixed precision computes in on a GPU."""
    from .amp.autocast_mode import get_autocast_dtype

    return get_autocast_dtype("cuda")
