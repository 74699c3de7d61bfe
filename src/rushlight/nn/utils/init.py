"""Modules without initial values."""

from __future__ import annotations

import inspect
from typing import Any

import rushlight

from ..modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """An instance of a module class whose parameters and buffers are not set, nor any random number drawn.

    The class must be a module's and take `device`, else a ``RuntimeError``.
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    state = rushlight.get_rng_state()
    try:
        module = module_cls(*args, device=device, **kwargs)
    finally:
        rushlight.set_rng_state(state)
    return module
