"""Random access to the bytes of a file, be it a path or an object with ``read`` and ``seek``."""

from __future__ import annotations

import os
from typing import IO, Any, Protocol


class Source(Protocol):
    """Bytes that can be read at any offset; ``name`` is what error messages call them."""

    name: str
    size: int

    def read_at(self, offset: int, count: int) -> bytes:
        """Up to ``count`` bytes from ``offset`` on; fewer only at the end."""

    def read_into(self, offset: int, view: memoryview) -> int:
        """Fill ``view`` from ``offset`` on and return how many bytes there were."""


class PathSource:
    """A file that this process opened, read by position so that several threads may read at once."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.name = name
        self._descriptor = file.fileno()
        self.size = os.fstat(self._descriptor).st_size

    def read_at(self, offset: int, count: int) -> bytes:
        return os.pread(self._descriptor, count, offset)

    def read_into(self, offset: int, view: memoryview) -> int:
        done = 0
        while done < len(view):
            count = os.preadv(self._descriptor, [view[done:]], offset + done)
            if count == 0:
                break
            done += count
        return done


class StreamSource:
    """A file-like object of the caller's, read from the position at which it was handed over."""

    def __init__(self, stream: Any, name: str) -> None:
        self.name = name
        self._stream = stream
        self._readinto = getattr(stream, "readinto", None)
        self._base = stream.tell()
        self.size = stream.seek(0, os.SEEK_END) - self._base
        stream.seek(self._base)

    def read_at(self, offset: int, count: int) -> bytes:
        self._stream.seek(self._base + offset)
        parts: list[bytes] = []
        while count > 0:
            part = self._stream.read(count)
            if not part:
                break
            parts.append(part)
            count -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_into(self, offset: int, view: memoryview) -> int:
        if self._readinto is None:
            data = self.read_at(offset, len(view))
            view[: len(data)] = data
            return len(data)
        self._stream.seek(self._base + offset)
        done = 0
        while done < len(view):
            count = self._readinto(view[done:])
            if not count:
                break
            done += count
        return done


def display_name(file: Any) -> str:
    """What messages call ``file``: its path, the name it carries, or its type."""
    if isinstance(file, (str, os.PathLike)):
        return os.fspath(file)
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else f"<{type(file).__name__}>"
