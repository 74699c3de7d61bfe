"""The words for how a loss is reduced, and the older pair of flags that they replaced."""

from __future__ import annotations

import warnings

_ENUM = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number that native kernels know a reduction by: ``none`` 0, ``mean`` 1, ``sum`` 2, else ``ValueError``."""
    try:
        return _ENUM[reduction]
    except (KeyError, TypeError):
        pass
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=3)
        return 1
    raise ValueError(f"{reduction} is not a valid value for reduction")


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The reduction that the deprecated flags ``size_average`` and ``reduce`` (both true by default) stand for."""
    if reduce is not None and not reduce:
        name = "none"
    elif size_average is not None and not size_average:
        name = "sum"
    else:
        name = "mean"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.", stacklevel=3
        )
    return name


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """:func:`get_enum` of :func:`legacy_get_string`."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
