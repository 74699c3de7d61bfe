"""Being told of tensors that are about to change in place, for several who want to know.

The core calls one hook, ``_C._set_before_mutation_hook(hook)``, before each in-place or ``out=`` operation on any
thread; here it is shared.
"""

from collections.abc import Callable

from rushlight import _C, Tensor

__all__ = ["unwatch", "watch"]

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
