"""Changes in place: being told of them before they happen, and refusing saved tensors that have changed.

The core calls one hook, ``_C._set_before_mutation_hook(hook)``, before each in-place or ``out=`` operation on any
thread; here it is shared.
"""

from collections.abc import Callable
from typing import NoReturn

from rushlight import _C, Tensor

__all__ = ["check_version", "fail_version", "unwatch", "watch"]

_watchers: list[Callable[[Tensor], None]] = []


def watch(watcher: Callable[[Tensor], None]) -> None:
    """From now on call ``watcher(tensor)`` before each change."""
    _watchers.append(watcher)
    _C._set_before_mutation_hook(_tell)


def unwatch(watcher: Callable[[Tensor], None]) -> None:
    """No longer do so."""
    _watchers.remove(watcher)
    if not _watchers:
        _C._set_before_mutation_hook(None)


def _tell(tensor: Tensor) -> None:
    for watcher in list(_watchers):
        watcher(tensor)


def check_version(tensor: Tensor, expected: int) -> None:
    """Raise RuntimeError, as backward does, where the tensor has changed since it was at the expected version."""
    if tensor._version != expected:
        fail_version(tensor, tensor._version, expected)


def fail_version(tensor: Tensor, found: int, expected: int) -> NoReturn:
    raise RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{tensor.type()} {list(tensor.shape)}] is at version {found}; expected version {expected} instead."
    )
