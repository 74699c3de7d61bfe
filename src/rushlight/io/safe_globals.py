"""The classes and functions that the caller allows checkpoints to mention, beyond tensors and containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .torch_names import to_torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    SafeGlobal = Callable[..., Any] | tuple[Callable[..., Any], str]

_allowed: dict[str, SafeGlobal] = {}


def _names(entry: SafeGlobal) -> list[str]:
    """The names in files that ``entry`` answers to; this package's classes go by PyTorch's names too."""
    if isinstance(entry, tuple):
        if len(entry) != 2 or not callable(entry[0]) or not isinstance(entry[1], str):
            raise ValueError(f"Expected a callable and its name in files, but got {entry!r}")
        return [entry[1]]
    module, name = getattr(entry, "__module__", None), getattr(entry, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        raise TypeError(f"a class or function is needed, or one and its name, but got {type(entry).__name__}")
    return list(dict.fromkeys((f"{module}.{name}", f"{to_torch(module)}.{name}")))


def add_safe_globals(safe_globals: Sequence[SafeGlobal]) -> None:
    """Let checkpoints mention these classes and functions; whoever can write a file can then call them.

    Each item is a class or function, or a tuple of one and the full name that files use for it.
    """
    new = {name: entry for entry in safe_globals for name in _names(entry)}
    _allowed.update(new)


def clear_safe_globals() -> None:
    """Forget everything that `add_safe_globals` added."""
    _allowed.clear()


def get_safe_globals() -> list[SafeGlobal]:
    """What `add_safe_globals` has added and nothing has cleared."""
    return list({id(entry): entry for entry in _allowed.values()}.values())


def allowed_objects() -> dict[str, Any]:
    """The allowed classes and functions by each name that files use for them."""
    return {name: entry[0] if isinstance(entry, tuple) else entry for name, entry in _allowed.items()}


class safe_globals:
    """A context in which checkpoints may mention the given classes and functions (see `add_safe_globals`)."""

    def __init__(self, safe_globals: Sequence[SafeGlobal]) -> None:
        self._safe_globals = safe_globals
        self._before: list[dict[str, SafeGlobal]] = []

    def __enter__(self) -> None:
        self._before.append(dict(_allowed))
        add_safe_globals(self._safe_globals)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _allowed.clear()
        _allowed.update(self._before.pop())
