"""Anonymous files whose contents several processes map: memory that leaves no name behind."""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class SharedFile:
    """A file without a name; sent to another process, it is the same file there.

    Where the system has ``memfd_create``, its size is limited by memory only, however small ``/dev/shm`` is.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        self.descriptor = _anonymous_file() if descriptor is None else descriptor

    def __reduce__(self) -> tuple[Callable[[Any], SharedFile], tuple[Any]]:
        from multiprocessing.reduction import DupFd

        return _receive, (DupFd(self.descriptor),)

    def __del__(self) -> None:
        self.close()

    def map(self, offset: int, length: int) -> mmap.mmap:
        """A part of the file as memory; ``offset`` is a multiple of the page size."""
        return mmap.mmap(self.descriptor, length, offset=offset)

    def grow(self, size: int) -> None:
        os.ftruncate(self.descriptor, size)

    def identity(self) -> tuple[int, int]:
        """What is equal for the same file however often it was sent."""
        status = os.fstat(self.descriptor)
        return status.st_dev, status.st_ino

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def _receive(sent: Any) -> SharedFile:
    return SharedFile(sent.detach())


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("rushlight")
    import tempfile

    descriptor, path = tempfile.mkstemp(prefix="rushlight-")
    os.unlink(path)
    return descriptor
