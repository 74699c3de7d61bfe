"""The one door between a storage's bytes and the files it is read from and written to.

Everything in this package that moves a tensor's numbers goes through these functions, so that no other file
has to know how a storage owns its memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rushlight

if TYPE_CHECKING:
    from rushlight import UntypedStorage


def allocate(nbytes: int) -> UntypedStorage:
    """A new storage of ``nbytes`` bytes whose contents are not defined."""
    return rushlight.empty(nbytes, dtype=rushlight.uint8).untyped_storage()


def populate(storage: UntypedStorage) -> None:
    """Have the memory of a new ``storage`` at once, since all of it is about to be filled from a file.

    It gets small pages: in virtual machines, to have huge ones may take several times as long as filling them, and what
    of the last one is not needed would count as used.
    """
    storage._populate()


def from_buffer(buffer: Any, offset: int, nbytes: int) -> UntypedStorage:
    """A storage over ``nbytes`` bytes of ``buffer`` from ``offset`` on, which shares its memory and keeps it alive."""
    if nbytes == 0:
        return allocate(0)
    return rushlight.frombuffer(buffer, dtype=rushlight.uint8, count=nbytes, offset=offset).untyped_storage()


def over_shared(buffer: Any) -> UntypedStorage:
    """A storage over a buffer that other processes see, which it keeps alive."""
    return rushlight._C._storage_from_buffer(buffer, True)


def as_bytes(storage: UntypedStorage) -> memoryview:
    """The bytes of ``storage`` as a writable view of its memory."""
    return memoryview(storage)


def move_to(storage: UntypedStorage, buffer: Any) -> None:
    """Move the bytes of ``storage`` into a buffer of the same size that other processes see, for every tensor over it."""
    storage._move_to(buffer)


def swap_bytes(storage: UntypedStorage, width: int) -> None:
    """Reverse the bytes of every number of ``width`` bytes in ``storage``, in place."""
    if width > 1:
        import numpy

        numpy.frombuffer(as_bytes(storage), dtype=f"u{width}").byteswap(inplace=True)


def tensor_over(storage: UntypedStorage, dtype: Any, offset: int, size: Any, stride: Any) -> rushlight.Tensor:
    """A tensor that views ``storage``; the caller has checked that the view lies inside."""
    return rushlight.empty(0, dtype=dtype).set_(storage, offset, size, stride)
