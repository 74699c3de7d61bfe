"""Functions written in Python whose calls arguments may take over (``__torch_function__``), as they may operators'.

A public module offers the functions that it shows, those that it loads on first use included. An object of the core
(core/python/offered.cpp) then stands for the function, in the module that defines it as well.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

from . import _C


def offer(module: str, sources: tuple[str, ...]) -> None:
    """Offer the public functions that ``module`` shows, where they are defined in a module of these prefixes."""
    namespace = vars(sys.modules[module])
    for name, value in list(namespace.items()):
        if type(value) is FunctionType and name[0] != "_":
            namespace[name] = offered(value, sources)


def offered(value: Any, sources: tuple[str, ...]) -> Any:
    """What stands for a function of these modules; anything else as it is."""
    if type(value) is not FunctionType or not value.__module__.startswith(sources):
        return value
    home = vars(sys.modules[value.__module__])
    name = value.__name__
    if home.get(name) is value:
        home[name] = _C._offered(value)
    return home[name] if home.get(name) == value else _C._offered(value)
