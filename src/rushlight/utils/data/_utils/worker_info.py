"""What a worker of a loader knows about itself."""

from __future__ import annotations

from typing import Any


class WorkerInfo:
    """What a worker knows about itself: ``id``, ``num_workers``, ``seed`` and its copy of ``dataset``."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    _fixed = False

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)
        self._names = tuple(attributes)
        self._fixed = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._fixed:
            raise RuntimeError(f"Cannot assign attributes to {type(self).__name__} objects")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)}' for name in self._names)})"


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker of a loader, what it knows about itself; None anywhere else."""
    return _worker_info


def set_worker_info(info: WorkerInfo) -> None:
    """Make this process a worker."""
    global _worker_info
    _worker_info = info
