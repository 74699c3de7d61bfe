"""``multiprocessing`` with tensors that are shared instead of copied (``torch.multiprocessing``).

Everything of the standard library's module is here. A tensor that is put into a queue, sent over a pipe or given to a
process moves to shared memory first, so that both sides see the same numbers.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403 - this module stands for that one

from .reductions import init_reductions
from .spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
    *multiprocessing.__all__,  # type: ignore[attr-defined]  # it is assembled when the module is imported
]

_SHARING_STRATEGIES = frozenset({"file_descriptor", "file_system"})
_sharing_strategy = "file_descriptor"


def get_all_sharing_strategies() -> frozenset[str]:
    """The names that `set_sharing_strategy` accepts."""
    return _SHARING_STRATEGIES


def get_sharing_strategy() -> str:
    """The name last given to `set_sharing_strategy`."""
    return _sharing_strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Accept the name of one of PyTorch's ways to share memory.

    It changes nothing: shared memory here has no name to leave behind and many tensors to a descriptor, which is what
    the choice is about.
    """
    global _sharing_strategy
    if new_strategy not in _SHARING_STRATEGIES:
        raise AssertionError(f"sharing strategy {new_strategy!r} is not one of {sorted(_SHARING_STRATEGIES)}")
    _sharing_strategy = new_strategy


init_reductions()
