"""What a loader asks of its workers, and how they answer when it is not with a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Assignment(NamedTuple):
    """What a worker is started with."""

    worker_id: int
    num_workers: int
    dataset: Any
    iterable: bool
    auto_collation: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    base_seed: int
    init_fn: Callable[[int], None] | None


class Ended(NamedTuple):
    """The answer of a worker whose dataset has no more samples."""

    worker_id: int


class Resumed(NamedTuple):
    """The answer of a worker that starts another epoch: what it sent before belongs to the last one."""

    worker_id: int


class Fetch(NamedTuple):
    """The request for a batch; ``returned`` are blocks that the loader no longer reads."""

    task: int
    index: Any
    returned: Sequence[int]


class Resume(NamedTuple):
    """The request to start another epoch."""


class Stop(NamedTuple):
    """The request to end."""


Request = Fetch | Resume | Stop
