"""The checksum of zip archives, at the speed of memory."""

from __future__ import annotations

import rushlight


def crc32(*parts: bytes | bytearray | memoryview) -> int:
    """The CRC-32 of the concatenation of ``parts``."""
    crc = 0
    for part in parts:
        crc = extended(crc, part)
    return crc


def extended(crc: int, part: bytes | bytearray | memoryview) -> int:
    """The CRC-32 of bytes whose checksum is ``crc`` followed by ``part``."""
    result: int = rushlight._C._crc32(part, crc)
    return result
