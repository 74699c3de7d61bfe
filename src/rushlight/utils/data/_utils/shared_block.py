"""Blocks of memory that a worker fills and the loader reads, used again and again.

Each worker shares one anonymous file with the loader. The worker writes the tensors of a batch into a block of it; the
loader's tensors view the block directly. When the last of them is gone the block goes back to the worker, so that in
the long run both work on the same few blocks of warm memory. The file has no name and no size limit of its own: nothing
is left behind by a killed process, and ``/dev/shm`` may be as small as it likes.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....multiprocessing.shared_file import SharedFile

ALIGNMENT = 64
MOST_LEASES = 64  # a loader whose batches are all kept copies the rest of them: every mapping costs a descriptor

_readers: weakref.WeakSet[BlockReader] = weakref.WeakSet()
_hook_registered = False


class Block(NamedTuple):
    """A part of the shared file."""

    offset: int
    capacity: int


def _aligned(size: int, unit: int) -> int:
    return -(-size // unit) * unit


class BlockWriter:
    """The worker's side: finds or makes a block for each batch."""

    def __init__(self, file: SharedFile) -> None:
        self._file = file
        self._end = 0
        self._mappings: dict[int, tuple[Block, mmap.mmap]] = {}
        self._free: list[Block] = []

    def release(self, offsets: Sequence[int]) -> None:
        """Take back blocks that the loader no longer reads."""
        self._free += [self._mappings[offset][0] for offset in offsets if offset in self._mappings]

    def write(self, parts: Sequence[memoryview]) -> tuple[Block, list[int]]:
        """Copy ``parts`` into a block; returns it and the offsets of blocks that were given up."""
        needed = sum(_aligned(len(part), ALIGNMENT) for part in parts)
        block, dropped = self._take(needed)
        with memoryview(self._mappings[block.offset][1]) as view:
            at = 0
            for part in parts:
                view[at : at + len(part)] = part
                at += _aligned(len(part), ALIGNMENT)
        return block, dropped

    def _take(self, needed: int) -> tuple[Block, list[int]]:
        fitting = [block for block in self._free if block.capacity >= needed]
        if fitting:
            block = min(fitting, key=lambda block: block.capacity)
            self._free.remove(block)
            return block, []
        # Batches have grown: what is free is too small for good, so its memory goes back to the system.
        dropped = [self._drop(block) for block in self._free]
        self._free = []
        block = Block(self._end, _aligned(needed + needed // 8, mmap.ALLOCATIONGRANULARITY))
        self._end += block.capacity
        self._file.grow(self._end)
        self._mappings[block.offset] = block, self._file.map(*block)
        return block, dropped

    def _drop(self, block: Block) -> int:
        _, mapping = self._mappings.pop(block.offset)
        if hasattr(mmap, "MADV_REMOVE"):
            mapping.madvise(mmap.MADV_REMOVE)
        mapping.close()
        return block.offset


class BlockReader:
    """The loader's side: lends the contents of blocks to tensors, and learns when they are done with them."""

    def __init__(self, file: SharedFile) -> None:
        self._file = file
        self._mappings: dict[int, mmap.mmap] = {}
        self._leases: dict[int, weakref.ref[Any]] = {}
        self._returned: deque[int] = deque()
        _readers.add(self)
        _register_hook()

    def open(self, block: Block, sizes: Sequence[int], dropped: Sequence[int]) -> list[memoryview]:
        """The parts that the worker wrote, as memory that stays valid as long as anything refers to it."""
        import numpy

        for offset in dropped:
            self._mappings.pop(offset, None)
        mapping = self._mappings.get(block.offset)
        if mapping is None:
            mapping = self._mappings[block.offset] = self._file.map(*block)
        # A new owner per batch: whatever is derived from its memory keeps it alive, and its end is the batch's end.
        owner = numpy.frombuffer(mapping, dtype=numpy.uint8)
        if len(self._leases) < MOST_LEASES:
            self._lend(owner, block.offset)
        else:
            owner = owner.copy()
            self._returned.append(block.offset)
        view, parts, at = owner.data, [], 0
        for size in sizes:
            parts.append(view[at : at + size])
            at += _aligned(size, ALIGNMENT)
        return parts

    def _lend(self, owner: Any, offset: int) -> None:
        leases, returned = self._leases, self._returned

        def end(reference: weakref.ref[Any]) -> None:
            if leases.get(offset) is reference:
                del leases[offset]
                returned.append(offset)

        leases[offset] = weakref.ref(owner, end)

    def take_returned(self) -> list[int]:
        """The offsets of blocks that nothing reads any more, each once."""
        offsets = []
        while self._returned:
            offsets.append(self._returned.popleft())
        return offsets

    def keep_lent(self) -> None:
        """Never use again what is lent now, because another process has come to see it."""
        self._leases.clear()


def _register_hook() -> None:
    global _hook_registered
    if not _hook_registered and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_parent=_keep_lent)
        _hook_registered = True


class forking_workers:
    """A context around the start of a loader's own workers, which never look at the batches of other loaders."""

    active = False

    def __enter__(self) -> None:
        forking_workers.active = True

    def __exit__(self, *error: object) -> None:
        forking_workers.active = False


def _keep_lent() -> None:
    if not forking_workers.active:
        for reader in list(_readers):
            reader.keep_lent()
