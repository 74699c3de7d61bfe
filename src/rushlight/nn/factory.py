"""Keyword arguments of functions that make tensors, picked out of a module's own."""

from __future__ import annotations

from typing import Any

__all__ = ["factory_kwargs"]

_NAMES = ("device", "dtype", "memory_format")


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The `device`, `dtype` and `memory_format` of `kwargs` for functions such as `empty`.

    They may also stand in a dictionary under the key "factory_kwargs". A name given twice and any other name raise
    TypeError.
    """
    if kwargs is None:
        return {}
    unknown = set(kwargs) - {*_NAMES, "factory_kwargs"}
    if unknown:
        raise TypeError(f"unexpected kwargs {unknown}")
    chosen = dict(kwargs.get("factory_kwargs", {}))
    for name in _NAMES:
        if name in kwargs:
            if name in chosen:
                raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
            chosen[name] = kwargs[name]
    return chosen
