"""Finding the operation whose derivative, or result, went wrong (``torch.autograd.anomaly_mode``).

The core keeps the mode, for all threads as PyTorch does: ``_C.is_anomaly_enabled()``,
``_C.is_anomaly_check_nan_enabled()`` and ``_C._set_anomaly_enabled(enabled, check_nan, check_inf, check_forward)``. It
asks `_forward_message` and `_backward_message` for the texts of its errors.

Beyond PyTorch: infinities are looked for if asked, results of forward if asked, and the errors say what the operation
was given and where the program called it.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import _C

from ._location import Place, line_of
from .grad_mode import no_grad

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Turn anomaly mode on or off: at once as a function, until the end of the block as a context manager.

    ``check_nan``, ``check_inf`` and ``check_forward`` as for :class:`detect_anomaly`.
    """

    def __init__(
        self, mode: bool, check_nan: bool = True, *, check_inf: bool = False, check_forward: bool = False
    ) -> None:
        self.prev, self._previous = _C.is_anomaly_enabled(), _setting()
        _C._set_anomaly_enabled(mode, check_nan, check_inf, check_forward)
        _remember(mode and check_forward)

    def __enter__(self) -> None:
        """Nothing is left to do: the constructor has switched."""

    def __exit__(self, *exc: Any) -> None:
        _restore(self._previous)


class detect_anomaly:
    """Inside, an error of backward also shows where its operation was recorded, and NaN is an error.

    A forward pass inside stores with each operation the lines that called it; when its backward raises, those lines
    are shown as a warning before the error. With ``check_nan`` a backward that produces NaN raises RuntimeError, with
    ``check_inf`` one that produces an infinity, too. With ``check_forward`` the first operation of a forward pass does
    whose result holds one while its inputs do not; the error gives the operation, statistics of its inputs, and the
    line. ``check_inf`` and ``check_forward`` are not in
    PyTorch. This slows programs down: for debugging only.
    """

    def __init__(self, check_nan: bool = True, *, check_inf: bool = False, check_forward: bool = False) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.check_nan, self.check_inf, self.check_forward = check_nan, check_inf, check_forward
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._previous = _setting()
        _C._set_anomaly_enabled(True, self.check_nan, self.check_inf, self.check_forward)
        _remember(self.check_forward)

    def __exit__(self, *exc: Any) -> None:
        _restore(self._previous)


_Setting = tuple[bool, bool, bool, bool]
_checks_forward = False


def _setting() -> _Setting:
    return (
        _C.is_anomaly_enabled(),
        _C.is_anomaly_check_nan_enabled(),
        _C._is_anomaly_check_infinity_enabled(),
        _checks_forward,
    )


def _remember(check_forward: bool) -> None:
    global _checks_forward
    _checks_forward = check_forward


def _restore(setting: _Setting) -> None:
    _C._set_anomaly_enabled(*setting)
    _remember(setting[3])


# ---- what the core's errors say


def _forward_message(name: str, inputs: Sequence[Any], result: Any, nan: bool, place: Place) -> str:
    """The error of an operation whose result is the first that is not finite."""
    outputs = [result] if isinstance(result, rushlight.Tensor) else list(result)
    which = next(i for i, out in enumerate(outputs) if _counts(out)[0 if nan else 1])
    return (
        f"Operation '{name}' returned {_fault(nan)} values in its {which}th output, and none of its inputs holds any.\n"
        f"It was called here: {line_of(place)}\n" + _describe_all("Input", inputs) + _describe("Result", outputs[which])
    )


def _backward_message(
    name: str, output: int, nan: bool, gradients: Sequence[Any], result: Any, place: Place | None
) -> str:
    """The error of a node that gave a gradient which is not finite."""
    text = f"Function '{name}' returned {_fault(nan)} values in its {output}th output."
    if place is not None:
        text += f"\nIts operation was called here: {line_of(place)}"
    text += "\n" + _describe_all("Gradient", gradients)
    if nan and len(gradients) == 1 and _zero_where_nan(gradients[0], result):
        text += (
            "The gradient that came in is 0 wherever the result is nan: 0 times an infinite derivative. So it is behind "
            "torch.where, masked_fill or a product with a mask, in places that they leave out. Put numbers that are "
            "safe into these places before the operation, too: torch.where(mask, f(torch.where(mask, x, 1.0)), 0.0).\n"
        )
    return text


def _zero_where_nan(gradient: Any, result: Any) -> bool:
    if not isinstance(gradient, rushlight.Tensor) or gradient.shape != result.shape:
        return False
    with no_grad():
        return bool((gradient[result.isnan()] == 0).all())


def _fault(nan: bool) -> str:
    return "nan" if nan else "inf"


def _describe_all(what: str, values: Sequence[Any]) -> str:
    return "".join([_describe(f"{what} {i}", value) for i, value in enumerate(values)])


def _describe(what: str, value: Any) -> str:
    return f"{what}: {_statistics(value)}\n"


def _statistics(value: Any) -> str:
    """What is to know of an operation's argument, on one line."""
    if isinstance(value, (tuple, list)) and any(isinstance(part, rushlight.Tensor) for part in value):
        return "; ".join([_statistics(part) for part in value])
    if not isinstance(value, rushlight.Tensor):
        text = repr(value)
        return text if len(text) <= 80 else text[:77] + "..."
    text = f"{value.dtype} {list(value.shape)}"
    if value.numel() == 0 or not value.dtype.is_floating_point:
        return text
    nans, infinities = _counts(value)
    with no_grad():
        numbers = value.detach().double().flatten()
        finite = numbers[numbers.isfinite()]
        if finite.numel():
            text += f", min {finite.min().item():.6g}, max {finite.max().item():.6g}, mean {finite.mean().item():.6g}"
    return f"{text}, {nans} nan, {infinities} inf, of {value.numel()}"


def _counts(value: Any) -> tuple[int, int]:
    """How many elements are NaN, and how many infinite."""
    if not isinstance(value, rushlight.Tensor) or not (value.dtype.is_floating_point or value.dtype.is_complex):
        return 0, 0
    with no_grad():
        numbers = value.detach()
        return int(numbers.isnan().sum()), int(numbers.isinf().sum())
