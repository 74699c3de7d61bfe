"""Checksums of large buffers, computed beside the thread that reads or writes them."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor
    from types import TracebackType

SMALL = 1 << 20  # below, handing over costs more than the sum


def crc32(*parts: bytes | memoryview) -> int:
    """The CRC-32 of the concatenation of ``parts``."""
    crc = 0
    for part in parts:
        if part:  # zlib takes an empty buffer without an address for a new beginning
            crc = zlib.crc32(part, crc)
    return crc


class Checksums:
    """A context in which checksums are computed in the background.

    Checksum and copy each use one core and let the other thread run, so together they take the time of the slower.
    """

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None

    def __enter__(self) -> Checksums:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)

    def submit(self, *parts: bytes | memoryview) -> Callable[[], int]:
        """A function that waits for the checksum of ``parts`` and returns it."""
        if sum(map(len, parts)) < SMALL:
            crc = crc32(*parts)
            return lambda: crc
        if self._executor is None:
            from concurrent.futures import ThreadPoolExecutor

            self._executor = ThreadPoolExecutor(1, "checksum")
        future = self._executor.submit(crc32, *parts)
        # Whoever waits for a sum that has not begun computes it instead of waiting.
        return lambda: crc32(*parts) if future.cancel() else future.result()
