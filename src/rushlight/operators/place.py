"""Where the package shows an operator: the names by which it is pickled."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .. import _C

_MODULES = ("rushlight", "rushlight.nn.functional", "rushlight.special")


def place_of(operator: Any) -> tuple[str, str]:
    """The module, and the dotted name in it, at which the operator is found."""
    name = operator.__name__
    for module in _MODULES:
        if getattr(import_module(module), name, None) is operator:
            return module, name
    if getattr(_C.Tensor, name, None) is operator:
        return "rushlight", f"Tensor.{name}"
    functional = import_module("rushlight.nn.functional")
    other = next((n for n in dir(functional) if getattr(functional, n, None) is operator), None)  # log_sigmoid
    return ("rushlight", name) if other is None else (functional.__name__, other)
