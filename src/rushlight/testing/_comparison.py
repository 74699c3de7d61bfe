"""``assert_close``: structures are paired off first, then every pair of leaves is compared."""

from __future__ import annotations

import cmath
import dataclasses
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import rushlight

if TYPE_CHECKING:
    from rushlight import Tensor

__all__ = ["assert_allclose", "assert_close", "default_tolerances"]

Message = Callable[[str], str]

# (rtol, atol); what is not here is compared exactly
_TOLERANCES = {
    rushlight.float16: (1e-3, 1e-5),
    rushlight.bfloat16: (1.6e-2, 1e-5),
    rushlight.float32: (1.3e-6, 1e-5),
    rushlight.float64: (1e-7, 1e-7),
    rushlight.complex64: (1.3e-6, 1e-5),
    rushlight.complex128: (1e-7, 1e-7),
}
_ALLCLOSE_TOLERANCES = {
    rushlight.float16: (1e-3, 1e-3),
    rushlight.float32: (1e-4, 1e-5),
    rushlight.float64: (1e-5, 1e-8),
}
_DTYPES_OF_NUMBERS = {int: rushlight.int64, float: rushlight.float64, complex: rushlight.complex128}


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Message | None = None,
) -> None:
    """Raise unless ``|actual - expected| <= atol + rtol * |expected|`` holds everywhere.

    Args:
        actual: tensors, things ``as_tensor`` takes, numbers, booleans, None, or sequences and mappings of these.
        expected: the same structure.
        allow_subclasses: leaves may be of types of which one derives from the other; else their types must be equal.
        rtol: relative tolerance; by default the larger one of the two dtypes' (float16 1e-3, bfloat16 1.6e-2, float32
            and complex64 1.3e-6, float64 and complex128 1e-7, others 0).
        atol: absolute tolerance; by default likewise (1e-5; float64 and complex128 1e-7; others 0).
        equal_nan: NaN counts as equal to NaN.
        check_device: devices must be equal.
        check_dtype: dtypes (of numbers: types) must be equal; else both are promoted to a common one.
        check_layout: layouts must be equal.
        check_stride: strides must be equal.
        msg: the message of the error, or a function that makes it from the default one.

    Raises:
        AssertionError: values, attributes, lengths or keys differ. Infinite values must be equal.
        TypeError: leaves of types that cannot be compared.
        ValueError: only one of `rtol` and `atol` is given.
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    rules = _Rules(rtol, atol, equal_nan, allow_subclasses, check_device, check_dtype, check_layout, check_stride)
    for difference, where in list(_pair_off(actual, expected, rules, "")):
        message = difference()
        if message is not None:
            raise AssertionError(_final_message(message + where, msg))


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Compare as :func:`assert_close` does, whatever the dtypes; kept for old programs.

    Args:
        actual: a tensor, or what ``tensor`` takes.
        expected: the same; it is converted to the dtype of `actual` unless it is a tensor.
        rtol: relative tolerance (float16 1e-3, float32 1e-4, float64 1e-5, others 0).
        atol: absolute tolerance (float16 1e-3, float32 1e-5, float64 1e-8, others 0).
        equal_nan: NaN counts as equal to NaN.
        msg: the message of the error.
    """
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated. Please use `torch.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=2,
    )
    if not isinstance(actual, rushlight.Tensor):
        actual = rushlight.tensor(actual)
    if not isinstance(expected, rushlight.Tensor):
        expected = rushlight.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(actual.dtype, expected.dtype, dtype_precisions=_ALLCLOSE_TOLERANCES)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def default_tolerances(
    *inputs: Any, dtype_precisions: dict[Any, tuple[float, float]] | None = None
) -> tuple[float, float]:
    """Return the larger `rtol` and `atol` of some tensors or dtypes.

    Args:
        inputs: tensors or dtypes.
        dtype_precisions: a pair of tolerances per dtype, in the place of :func:`assert_close`'s.
    """
    table = _TOLERANCES if dtype_precisions is None else dtype_precisions
    dtypes = [x.dtype if isinstance(x, rushlight.Tensor) else x for x in inputs]
    rtols, atols = zip(*(table.get(dtype, (0.0, 0.0)) for dtype in dtypes), strict=True)
    return max(rtols), max(atols)


@dataclasses.dataclass(frozen=True, slots=True)
class _Rules:
    """What :func:`assert_close` was asked to check."""

    rtol: float | None
    atol: float | None
    equal_nan: bool
    allow_subclasses: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool

    def tolerances(self, *dtypes: Any) -> tuple[float, float]:
        if self.rtol is None or self.atol is None:
            return default_tolerances(*dtypes)
        return self.rtol, self.atol


def _final_message(message: str, msg: str | Message | None) -> str:
    if callable(msg):
        return msg(message)
    return msg if isinstance(msg, str) else message


# --- structures -----------------------------------------------------------------------------------------------------

# A comparison of two leaves: its call returns the message of a difference, or None.
Difference = Callable[[], str | None]


def _pair_off(actual: Any, expected: Any, rules: _Rules, path: str) -> Iterator[tuple[Difference, str]]:
    """Yield the comparison of every pair of leaves, and the end of the message that tells where they stand."""
    where = f"\n\nThe failure occurred for item {path}" if path else ""
    if _are(Sequence, actual, expected) and not isinstance(actual, str) and not isinstance(expected, str):
        if len(actual) != len(expected):
            raise AssertionError(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{where}")
        for index, (a, b) in enumerate(zip(actual, expected, strict=True)):
            yield from _pair_off(a, b, rules, f"{path}[{index}]")
    elif _are(Mapping, actual, expected):
        for key in _common_keys(actual, expected, where):
            yield from _pair_off(actual[key], expected[key], rules, f"{path}[{key!r}]")
    else:
        difference = _leaf_comparison(actual, expected, rules)
        if difference is None:
            types = f"{type(actual)} and {type(expected)}"
            raise TypeError(f"No comparison pair was able to handle inputs of type {types}.{where}")
        yield difference, where


def _are(types: Any, actual: Any, expected: Any) -> bool:
    return isinstance(actual, types) and isinstance(expected, types)


def _common_keys(actual: Mapping[Any, Any], expected: Mapping[Any, Any], where: str) -> list[Any]:
    """Return the keys, sorted where they can be; they must be the same in both."""
    missing, additional = expected.keys() - actual.keys(), actual.keys() - expected.keys()
    if missing or additional:
        raise AssertionError(
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {_sorted(missing)}\n"
            f"Additional keys in the actual mapping: {_sorted(additional)}{where}"
        )
    return _sorted(actual.keys())


def _sorted(keys: Any) -> list[Any]:
    try:
        return sorted(keys)
    except TypeError:  # keys of several types
        return list(keys)


def _leaf_comparison(actual: Any, expected: Any, rules: _Rules) -> Difference | None:
    """Return the comparison for two leaves, or None when there is none for their types."""
    if actual is None or expected is None:
        return partial(_identity_difference, "None", actual, expected)
    if _are((bool, np.bool_), actual, expected):
        return partial(_identity_difference, "Booleans", bool(actual), bool(expected))
    if _are((int, float, complex, np.number, np.bool_), actual, expected):
        return partial(_number_difference, _as_number(actual), _as_number(expected), rules)
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if not (related if rules.allow_subclasses else type(actual) is type(expected)):
        return None
    try:
        pair = _as_tensor(actual), _as_tensor(expected)
    except (TypeError, ValueError, RuntimeError):
        return None
    return partial(_tensor_difference, *pair, rules)


def _as_number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _as_tensor(value: Any) -> Tensor:
    tensor: Tensor = value if isinstance(value, rushlight.Tensor) else rushlight.as_tensor(value)
    return tensor.detach()


# --- leaves ---------------------------------------------------------------------------------------------------------


def _identity_difference(kind: str, actual: Any, expected: Any) -> str | None:
    return None if actual is expected else f"{kind} mismatch: {actual} is not {expected}"


def _number_difference(actual: Any, expected: Any, rules: _Rules) -> str | None:
    if rules.check_dtype and type(actual) is not type(expected):
        return f"The (d)types do not match: {type(actual)} != {type(expected)}."
    rtol, atol = rules.tolerances(*(_DTYPES_OF_NUMBERS.get(type(x), rushlight.bool) for x in (actual, expected)))
    if actual == expected or (rules.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return None
    difference = abs(actual - expected)
    if math.isfinite(difference) and difference <= atol + rtol * abs(expected):
        return None
    return _scalar_message(actual, expected, rtol, atol)


def _tensor_difference(actual: Tensor, expected: Tensor, rules: _Rules) -> str | None:
    message = _attribute_difference(actual, expected, rules)
    if message is not None or actual.is_meta or expected.is_meta:
        return message
    rtol, atol = rules.tolerances(actual.dtype, expected.dtype)
    actual, expected = _with_common_dtype(actual, expected)
    matches = rushlight.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=rules.equal_nan)
    if matches.all():
        return None
    if actual.ndim == 0:
        return _scalar_message(actual.item(), expected.item(), rtol, atol)
    return _tensor_message(actual, expected, matches, rtol, atol)


def _attribute_difference(actual: Tensor, expected: Tensor, rules: _Rules) -> str | None:
    checks = (
        (True, "shape", actual.shape, expected.shape),
        (rules.check_layout, "layout", actual.layout, expected.layout),
        (rules.check_stride, "stride()", actual.stride(), expected.stride()),
        (rules.check_device, "device", actual.device, expected.device),
        (rules.check_dtype, "dtype", actual.dtype, expected.dtype),
    )
    for checked, name, a, b in checks:
        if checked and a != b:
            return f"The values for attribute '{name}' do not match: {a} != {b}."
    return None


def _with_common_dtype(actual: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
    """Promote both; integers to int64, where their differences have room and a sign."""
    dtype = rushlight.promote_types(actual.dtype, expected.dtype)
    if not dtype.is_floating_point and not dtype.is_complex and dtype != rushlight.bool:
        dtype = rushlight.int64
    return actual.to(dtype), expected.to(dtype)


# --- messages -------------------------------------------------------------------------------------------------------


def _scalar_message(actual: Any, expected: Any, rtol: float, atol: float) -> str:
    difference = abs(actual - expected)
    relative = difference / abs(expected) if expected != 0 else math.inf
    exact = rtol == 0 and atol == 0
    return (
        f"{_headline('Scalars', exact)}"
        f"Expected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{_allowed(atol, exact)}\n"
        f"Relative difference: {relative}{_allowed(rtol, exact)}"
    )


def _tensor_message(actual: Tensor, expected: Tensor, matches: Tensor, rtol: float, atol: float) -> str:
    if actual.dtype == rushlight.bool:  # they cannot be subtracted
        actual, expected = actual.to(rushlight.int64), expected.to(rushlight.int64)
    mismatched, total = int((~matches).sum()), matches.numel()
    difference = abs(actual - expected)
    relative = difference / abs(expected)
    exact = rtol == 0 and atol == 0
    return (
        f"{_headline('Tensor-likes', exact)}"
        f"Mismatched elements: {mismatched} / {total} ({mismatched / total:.1%})\n"
        f"Greatest absolute difference: {_greatest(difference, matches)}{_allowed(atol, exact)}\n"
        f"Greatest relative difference: {_greatest(relative, matches)}{_allowed(rtol, exact)}"
    )


def _headline(kind: str, exact: bool) -> str:
    return f"{kind} are not {'equal' if exact else 'close'}!\n\n"


def _allowed(tolerance: float, exact: bool) -> str:
    return "" if exact else f" (up to {tolerance} allowed)"


def _greatest(differences: Tensor, matches: Tensor) -> str:
    """Return the greatest of the differences that do not match, the first NaN if there is one, and its index."""
    flat = differences.masked_fill(matches, 0).flatten()
    position = int(flat.argmax())
    index = tuple(int(i) for i in np.unravel_index(position, tuple(differences.shape)))
    return f"{flat[position].item()} at index {index}"
