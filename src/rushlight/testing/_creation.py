"""``make_tensor``: random tensors of every dtype and layout."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import rushlight

if TYPE_CHECKING:
    from rushlight import Tensor

__all__ = ["make_tensor"]

Number = int | float


def make_tensor(
    *shape: int | rushlight.Size | list[int] | tuple[int, ...],
    dtype: rushlight.dtype,
    device: str | rushlight.device,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: rushlight.memory_format | None = None,
) -> Tensor:
    """Return a tensor of numbers drawn uniformly from ``[low, high)``.

    Args:
        shape: sizes, or one sequence of sizes.
        dtype: any dtype.
        device: where the tensor is made.
        low: lower limit; by default 0 for bool and uint8, -9 for all others. Clamped to what `dtype` can hold.
        high: upper limit; by default 2 for bool, 10 for integers, 9 for others. Clamped likewise.
        requires_grad: let the tensor be a leaf that records; floating-point and complex dtypes only.
        noncontiguous: leave gaps between the numbers; of no effect below two elements.
        exclude_zero: replace zeros by one, or by the smallest normal number of a floating-point type.
        memory_format: order of the dimensions in memory; not together with `noncontiguous`.

    Raises:
        ValueError: empty interval, NaN limits, `requires_grad` for integers, or both of the last two.
        TypeError: `dtype` is no dtype.
    """
    if not isinstance(dtype, rushlight.dtype):
        raise TypeError(f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor().")
    floating = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not floating:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, "
            f"but got {noncontiguous=} and {memory_format=}"
        )
    sizes: Any = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    begin, end = _limits(dtype, low, high, floating)

    spread = noncontiguous and math.prod(sizes) > 1
    result = rushlight.empty((*sizes[:-1], 2 * sizes[-1]) if spread else sizes, dtype=dtype, device=device)
    if not floating:
        result.random_(begin, end)
    elif dtype.is_complex:
        _fill_uniform(rushlight.view_as_real(result), begin, end)
    else:
        _fill_uniform(result, begin, end)
    if exclude_zero:
        result[result == 0] = _smallest(dtype, floating)
    if spread:
        result = result[..., 1::2]
    if memory_format is not None:
        result = result.clone(memory_format=memory_format)
    return result.requires_grad_() if requires_grad else result


def _default_limits(dtype: rushlight.dtype, floating: bool) -> tuple[Number, Number]:
    if floating:
        return -9, 9
    if dtype == rushlight.bool:
        return 0, 2
    return (0, 10) if rushlight.iinfo(dtype).min == 0 else (-9, 10)


def _representable(dtype: rushlight.dtype, floating: bool) -> tuple[Number, Number]:
    """Return the lowest number of a dtype and the end of its numbers: for integers one past the highest."""
    if floating:
        info = rushlight.finfo(dtype)
        return info.min, info.max
    if dtype == rushlight.bool:
        return 0, 2
    limits = rushlight.iinfo(dtype)
    return limits.min, limits.max + 1


def _limits(dtype: rushlight.dtype, low: Any, high: Any, floating: bool) -> tuple[Any, Any]:
    """Return the interval to draw from, checked, clamped, and in whole numbers for integers."""
    default_low, default_high = _default_limits(dtype, floating)
    low = default_low if low is None else low
    high = default_high if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and floating:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated; "
            "use `torch.full` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    lowest, end = _representable(dtype, floating)
    if low != high and (low >= end or high < lowest or (high == lowest and not floating)):
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), "
            f"but {dtype} only supports [{lowest}, {end})"
        )
    low, high = (min(max(limit, lowest), end) for limit in (low, high))
    if floating:
        return low, high
    # The limits of random_ are int64 themselves, so that the highest int64 is never drawn.
    return math.ceil(low), min(math.ceil(high), 2**63 - 1)


def _fill_uniform(result: Tensor, low: float, high: float) -> None:
    if high - low >= rushlight.finfo(result.dtype).max:  # the width itself would overflow
        result.uniform_(low / 2, high / 2).mul_(2)
    else:
        result.uniform_(low, high)


def _smallest(dtype: rushlight.dtype, floating: bool) -> Any:
    if not floating:
        return 1
    tiny = rushlight.finfo(dtype).tiny
    return complex(tiny, tiny) if dtype.is_complex else tiny
