"""Writing zip archives as PyTorch's reader and ``mmap`` want them: stored records, data at multiples of 64 bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import zip_format as fmt
from .checksum import crc32, extended

if TYPE_CHECKING:
    from collections.abc import Callable

ALIGNMENT = 64
FIRST_DAY = 0x21  # the 1st of January 1980: archives of equal contents are equal byte for byte
VERSION_ZIP32 = 20
VERSION_ZIP64 = 45


class ZipWriter:
    """A zip archive written front to back, so that anything that has ``write`` can receive it.

    Sizes and offsets from 4 GiB on go into zip64 fields; smaller archives have none. Without ``checksums`` those are
    zero, which other tools may refuse.
    """

    def __init__(self, write: Callable[[Any], object], *, checksums: bool = True) -> None:
        self._write = write
        self._checksums = checksums
        self._position = 0
        self._central: list[bytes] = []
        self.checksum_of_all = 0

    def add(self, name: str, *data: bytes | memoryview) -> None:
        """Append the record ``name`` holding the parts of ``data``, whose bytes are written from where they are."""
        raw_name = name.encode()
        size = sum(map(len, data))
        crc = crc32(*data) if self._checksums else 0
        self.checksum_of_all = extended(self.checksum_of_all, crc.to_bytes(4, "little") + raw_name)
        offset = self._position
        local_extra = _zip64_extra(size, size) if size >= fmt.LIMIT32 else b""
        begin = offset + fmt.LOCAL_HEADER.size + len(raw_name) + len(local_extra) + fmt.EXTRA_FIELD.size
        padding = -begin % ALIGNMENT
        local_extra += fmt.EXTRA_FIELD.pack(fmt.PADDING_EXTRA, padding) + b"Z" * padding
        size32 = min(size, fmt.LIMIT32)
        version = VERSION_ZIP64 if max(size, offset) >= fmt.LIMIT32 else VERSION_ZIP32
        common = (version, fmt.FLAG_UTF8, fmt.STORED, 0, FIRST_DAY, crc, size32, size32, len(raw_name))
        self._put(fmt.LOCAL_HEADER.pack(fmt.LOCAL_SIGNATURE, *common, len(local_extra)) + raw_name + local_extra)
        for part in data:
            self._put(part)

        wide = [size, size] if size >= fmt.LIMIT32 else []
        wide += [offset] if offset >= fmt.LIMIT32 else []
        extra = _zip64_extra(*wide) if wide else b""
        header = fmt.CENTRAL_HEADER.pack(
            fmt.CENTRAL_SIGNATURE, 0, *common, len(extra), 0, 0, 0, 0, min(offset, fmt.LIMIT32)
        )
        self._central.append(header + raw_name + extra)

    def close(self) -> None:
        """Write the directory; the archive is complete after it."""
        offset, count = self._position, len(self._central)
        directory = b"".join(self._central)
        self._put(directory)
        size = len(directory)
        if count >= fmt.LIMIT16 or max(offset, size) >= fmt.LIMIT32:
            end64 = self._position
            version = VERSION_ZIP64
            rest = fmt.END64_RECORD.size - 12  # without the signature and this number itself
            self._put(
                fmt.END64_RECORD.pack(fmt.END64_SIGNATURE, rest, version, version, 0, 0, count, count, size, offset)
                + fmt.LOCATOR64.pack(fmt.LOCATOR64_SIGNATURE, 0, end64, 1)
            )
        count16 = min(count, fmt.LIMIT16)
        size32, offset32 = min(size, fmt.LIMIT32), min(offset, fmt.LIMIT32)
        self._put(fmt.END_RECORD.pack(fmt.END_SIGNATURE, 0, 0, count16, count16, size32, offset32, 0))

    def _put(self, data: bytes | memoryview) -> None:
        self._write(data)
        self._position += len(data)


def _zip64_extra(*numbers: int) -> bytes:
    return fmt.EXTRA_FIELD.pack(fmt.ZIP64_EXTRA, 8 * len(numbers)) + b"".join(n.to_bytes(8, "little") for n in numbers)
