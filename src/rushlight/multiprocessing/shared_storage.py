"""Storages whose memory several processes see.

Small storages stand together in one shared file, so that sharing a model of a thousand tensors does not take a
thousand descriptors; a large one has a file of its own. A file goes when the last storage in it does, in every process.
"""

from __future__ import annotations

import mmap
import weakref
from typing import Any, NamedTuple

from ..io import memory
from .shared_file import SharedFile

SEGMENT_BYTES = 1 << 22
LARGE = 1 << 20
ALIGNMENT = 64


class Segment:
    """A shared file, mapped whole."""

    def __init__(self, file: SharedFile, size: int) -> None:
        self.file = file
        self.size = size
        self.mapping: mmap.mmap = file.map(0, size)
        self.used = 0

    @staticmethod
    def create(size: int) -> Segment:
        file = SharedFile()
        file.grow(size)
        return Segment(file, size)


class Place(NamedTuple):
    """Where a shared storage is."""

    segment: Segment
    offset: int
    nbytes: int


_places: dict[int, tuple[Place, weakref.ref[Any]]] = {}  # by address, while a storage is there
_received: weakref.WeakValueDictionary[tuple[int, int], Segment] = weakref.WeakValueDictionary()
_open_segment: Segment | None = None


def _reserve(nbytes: int) -> Place:
    global _open_segment
    if nbytes >= LARGE:
        size = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        return Place(Segment.create(size), 0, nbytes)
    segment = _open_segment
    if segment is None or segment.used + nbytes > segment.size:
        segment = _open_segment = Segment.create(SEGMENT_BYTES)
    place = Place(segment, segment.used, nbytes)
    segment.used += -(-nbytes // ALIGNMENT) * ALIGNMENT
    return place


def _owner_of(place: Place) -> Any:
    """A writable buffer over the place; whoever holds it keeps the place known."""
    import numpy

    owner = numpy.frombuffer(place.segment.mapping, dtype=numpy.uint8, count=place.nbytes, offset=place.offset)
    address = owner.__array_interface__["data"][0]

    def forget(reference: weakref.ref[Any]) -> None:
        if address in _places and _places[address][1] is reference:
            del _places[address]

    _places[address] = place, weakref.ref(owner, forget)
    return owner


def share(storage: Any) -> Any:
    """Move the storage's numbers into shared memory, for all tensors over it; returns the storage."""
    if storage.nbytes() and not storage.is_shared():
        owner = _owner_of(_reserve(storage.nbytes()))
        memory.move_to(storage, owner)
    return storage


def place_of(storage: Any) -> Place:
    """Where a storage that is shared has its memory."""
    return _places[storage.data_ptr()][0]


def storage_at(file: SharedFile, size: int, offset: int, nbytes: int) -> Any:
    """A storage over a place in a file that another process sent."""
    identity = file.identity()
    segment = _received.get(identity)
    if segment is None:
        segment = _received[identity] = Segment(file, size)
    place = Place(segment, offset, nbytes)
    return memory.over_shared(_owner_of(place))


def new_shared(nbytes: int) -> Any:
    """A storage of ``nbytes`` zero bytes in shared memory."""
    if nbytes == 0:
        return memory.allocate(0)
    return memory.over_shared(_owner_of(_reserve(nbytes)))
