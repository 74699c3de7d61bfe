"""For tests of pending results: the same without deferral."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rushlight import _C

T = TypeVar("T")


def eagerly(function: Callable[[], T]) -> T:
    """What the function gives where nothing stays pending."""
    _C._set_deferral(False)
    try:
        return function()
    finally:
        _C._set_deferral(True)
