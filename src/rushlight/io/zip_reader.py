"""Reading zip archives that may be damaged or hostile: every number is checked against the file before it is used."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from . import zip_format as fmt
from .checksum import crc32, extended

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .source import Source

CHUNK = 1 << 20
# PyTorch stores records as they are; compressed ones come from tools that packed a checkpoint again. Beyond this size
# a record may grow by no more than this factor: zeros deflate a thousandfold, numbers do not.
COMPRESSED_SIZE_FREE = 16 << 20
COMPRESSED_GROWTH_LIMIT = 200


class Record(NamedTuple):
    """One entry of the directory, with all positions known to lie inside the file."""

    name: str
    header_offset: int
    stored_size: int
    size: int
    crc: int
    method: int
    limit: int  # where the next record's header, or the directory, begins


class ZipReader:
    """The records of a zip archive by name, in the order of the directory.

    Raises ``RuntimeError``, naming the file and the record, for anything that does not hold together: no directory,
    sizes or offsets outside the file, overlapping or duplicate records, unsafe names, encryption, a wrong checksum.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.records: dict[str, Record] = {}
        self._names: set[str] = set()
        self._read_directory()

    def fail(self, problem: str) -> NoReturn:
        """Raise the error for an archive that cannot be read, in the words that programs look for."""
        raise RuntimeError(
            f"{self.source.name}: PytorchStreamReader failed reading zip archive: {problem}. "
            "The file is corrupted: it was cut short or changed after it was written, or is not a checkpoint."
        )

    def record(self, name: str) -> Record:
        found = self.records.get(name)
        if found is None:
            raise RuntimeError(
                f"{self.source.name}: PytorchStreamReader failed locating file {name}: file not found. "
                "The archive's directory does not list it."
            )
        return found

    def data_offset(self, record: Record) -> int:
        """Where the record's data begins, after its local header has been compared with the directory."""
        expected = record.name.encode()
        header = self.source.read_at(record.header_offset, fmt.LOCAL_HEADER.size + len(expected))
        if len(header) < fmt.LOCAL_HEADER.size or not header.startswith(fmt.LOCAL_SIGNATURE):
            self.fail(f"record {record.name!r} has no local header at offset {record.header_offset}")
        fields = fmt.LOCAL_HEADER.unpack_from(header)
        method, name_length, extra_length = fields[3], fields[9], fields[10]
        if method != record.method:
            self.fail(f"record {record.name!r} has method {method} in its header and {record.method} in the directory")
        name = header[fmt.LOCAL_HEADER.size :]
        if name_length != len(expected) or name != expected:
            self.fail(f"record {record.name!r} has another name in its own header")
        begin = record.header_offset + fmt.LOCAL_HEADER.size + name_length + extra_length
        if begin + record.stored_size > record.limit:
            self.fail(
                f"record {record.name!r} of {record.stored_size} bytes at offset {begin} runs into the next one "
                f"at offset {record.limit}"
            )
        return int(begin)

    def read(self, record: Record) -> bytes:
        """The record's data."""
        data = bytearray(record.size)
        self.read_into(record, memoryview(data))
        return bytes(data)

    def peek(self, record: Record, count: int) -> bytes:
        """The first bytes of the record's data, about ``count`` of them, without looking at the checksum."""
        begin = self.data_offset(record)
        if record.method == fmt.STORED:
            return self.source.read_at(begin, min(count, record.size))
        return next(self._inflate(record, begin, count), b"")

    def read_into(self, record: Record, *views: memoryview) -> None:
        """Fill ``views``, together as long as the record, with the record's data, and compare the checksum.

        A checksum of zero counts as not recorded: writers that were told not to compute any leave it so.
        """
        position = self.data_offset(record)
        fill = self._fill if record.method == fmt.STORED else self._fill_inflated
        crc = fill(record, position, views)
        if record.crc not in (0, crc):
            self.fail(f"record {record.name!r} has checksum {crc:08x}, expected {record.crc:08x}")

    def _fill(self, record: Record, position: int, views: Sequence[memoryview]) -> int:
        """Read a stored record in pieces, each of which is summed while the cache still has it; gives the checksum."""
        crc = 0
        for view in views:
            for at in range(0, len(view), CHUNK):
                piece = view[at : at + CHUNK]
                if self.source.read_into(position, piece) != len(piece):
                    self.fail(f"record {record.name!r} ends early")
                position += len(piece)
                if record.crc:
                    crc = extended(crc, piece)
        return crc

    def _fill_inflated(self, record: Record, position: int, views: Sequence[memoryview]) -> int:
        _scatter(self._inflate(record, position), tuple(views))
        return crc32(*views)

    def _inflate(self, record: Record, begin: int, chunk: int = CHUNK) -> Iterator[bytes]:
        """The data of a compressed record in pieces, exactly as much as the directory promised."""
        decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
        position, end, left = begin, begin + record.stored_size, record.size
        packed = b""
        try:
            while left:
                if not packed and position < end:
                    packed = self.source.read_at(position, min(chunk, end - position))
                    position += len(packed)
                piece = decompressor.decompress(packed, min(left, chunk))
                if not piece and (decompressor.eof or position == end or not packed):
                    self.fail(f"record {record.name!r} decompresses to {record.size - left} bytes of {record.size}")
                packed = decompressor.unconsumed_tail
                left -= len(piece)
                if piece:
                    yield piece
        except zlib.error as error:
            self.fail(f"record {record.name!r} does not decompress ({error})")

    def _read_directory(self) -> None:
        count, size, offset = self._find_directory()
        directory = self.source.read_at(offset, size)
        if len(directory) != size:
            self.fail(f"the directory of {size} bytes at offset {offset} ends early")
        entries = [self._check(*entry) for entry in self._entries(directory, count)]
        entries.sort(key=lambda entry: entry[1])
        limits = [*(entry[1] for entry in entries[1:]), offset][: len(entries)]
        next_header = {entry[0]: limit for entry, limit in zip(entries, limits, strict=True)}
        for name, header_offset, stored_size, full_size, crc, method in entries:
            limit = next_header[name]
            if header_offset + fmt.LOCAL_HEADER.size + stored_size > limit:
                self.fail(f"record {name!r} of {stored_size} bytes at offset {header_offset} overlaps another")
            self.records[name] = Record(name, header_offset, stored_size, full_size, crc, method, limit)

    def _find_directory(self) -> tuple[int, int, int]:
        """Number of records, size and offset of the directory, from the end record."""
        size = self.source.size
        tail_length = min(size, fmt.END_RECORD.size + fmt.LONGEST_COMMENT)
        tail = self.source.read_at(size - tail_length, tail_length)
        at = tail.rfind(fmt.END_SIGNATURE)
        if at < 0 or len(tail) - at < fmt.END_RECORD.size:
            self.fail("failed finding central directory")
        _, disk, directory_disk, _, count, directory_size, directory_offset, _ = fmt.END_RECORD.unpack_from(tail, at)
        end = size - tail_length + at
        if fmt.LIMIT16 in (count, disk) or fmt.LIMIT32 in (directory_size, directory_offset):
            count, directory_size, directory_offset, end = self._read_end64(end)
        elif disk or directory_disk:
            self.fail("it is one disk of several")
        if directory_offset + directory_size > end:
            self.fail(f"its directory ({directory_size} bytes at offset {directory_offset}) lies outside of the file")
        if count * fmt.CENTRAL_HEADER.size > directory_size:
            self.fail(f"{count} records cannot fit into a directory of {directory_size} bytes")
        return count, directory_size, directory_offset

    def _read_end64(self, end: int) -> tuple[int, int, int, int]:
        locator_at = end - fmt.LOCATOR64.size
        locator = self.source.read_at(locator_at, fmt.LOCATOR64.size) if locator_at >= 0 else b""
        if not locator.startswith(fmt.LOCATOR64_SIGNATURE):
            self.fail("failed finding central directory: its 64-bit locator is missing")
        end64 = fmt.LOCATOR64.unpack(locator)[2]
        record = self.source.read_at(end64, fmt.END64_RECORD.size) if end64 < locator_at else b""
        if len(record) < fmt.END64_RECORD.size or not record.startswith(fmt.END64_SIGNATURE):
            self.fail("failed finding central directory: its 64-bit end record is missing")
        _, _, _, _, _, _, _, count, directory_size, directory_offset = fmt.END64_RECORD.unpack(record)
        return count, directory_size, directory_offset, end64

    def _entries(self, directory: bytes, count: int) -> Iterator[tuple[bytes, bytes, tuple[int, ...]]]:
        """Name, extra field and numbers of each entry of the directory."""
        at = 0
        for _ in range(count):
            if len(directory) - at < fmt.CENTRAL_HEADER.size:
                self.fail("its directory ends early")
            signature, *numbers = fmt.CENTRAL_HEADER.unpack_from(directory, at)
            if signature != fmt.CENTRAL_SIGNATURE:
                self.fail(f"its directory has no entry at offset {at}")
            name_length, extra_length, comment_length = numbers[9:12]
            at += fmt.CENTRAL_HEADER.size
            name = directory[at : at + name_length]
            extra = directory[at + name_length : at + name_length + extra_length]
            at += name_length + extra_length + comment_length
            if at > len(directory):
                self.fail(f"its directory ends early, in the entry {name!r}")
            yield name, extra, tuple(numbers)

    def _check(self, raw_name: bytes, extra: bytes, numbers: tuple[int, ...]) -> tuple[str, int, int, int, int, int]:
        _, _, flags, method, _, _, crc, stored_size, size = numbers[:9]
        header_offset = numbers[15]
        name = self._check_name(raw_name)
        if flags & fmt.FLAG_ENCRYPTED:
            self.fail(f"record {name!r} is encrypted")
        if method not in (fmt.STORED, fmt.DEFLATED):
            self.fail(f"record {name!r} is compressed by method {method}; only stored and deflated records are read")
        if fmt.LIMIT32 in (stored_size, size, header_offset):
            size, stored_size, header_offset = self._read_extra64(name, extra, size, stored_size, header_offset)
        if header_offset + stored_size > self.source.size:
            self.fail(
                f"record {name!r} ({stored_size} bytes at offset {header_offset}) lies outside the file "
                f"of {self.source.size} bytes"
            )
        if method == fmt.STORED and stored_size != size:
            self.fail(f"record {name!r} is stored, yet has {stored_size} bytes in the file and {size} outside")
        if size > max(COMPRESSED_SIZE_FREE, stored_size * COMPRESSED_GROWTH_LIMIT):
            self.fail(f"record {name!r} claims to decompress from {stored_size} to {size} bytes, as zip bombs do")
        return name, header_offset, stored_size, size, crc, method

    def _check_name(self, raw: bytes) -> str:
        try:
            name = raw.decode()
        except UnicodeDecodeError:
            self.fail(f"the record name {raw!r} is not UTF-8")
        if "\0" in name or "\\" in name or name.startswith("/") or ".." in name.split("/"):
            self.fail(f"the record name {name!r} leads out of the archive")
        if name in self._names:
            self.fail(f"it has two records called {name!r}")
        self._names.add(name)
        return name

    def _read_extra64(self, name: str, extra: bytes, *fields: int) -> list[int]:
        """``fields`` (size, stored size, offset), those at the 32-bit limit replaced from the 64-bit extra field."""
        at = 0
        while at + fmt.EXTRA_FIELD.size <= len(extra):
            kind, length = fmt.EXTRA_FIELD.unpack_from(extra, at)
            at += fmt.EXTRA_FIELD.size
            if kind == fmt.ZIP64_EXTRA:
                values = extra[at : at + length]
                wanted = sum(field == fmt.LIMIT32 for field in fields)
                if len(values) < 8 * wanted:
                    self.fail(f"record {name!r} has a 64-bit field of {len(values)} bytes, expected {8 * wanted}")
                numbers = (int.from_bytes(values[8 * i : 8 * i + 8], "little") for i in range(wanted))
                return [next(numbers) if field == fmt.LIMIT32 else field for field in fields]
            at += length
        return self.fail(f"record {name!r} has sizes beyond 32 bits and no 64-bit field")


def _scatter(pieces: Iterator[bytes], views: tuple[memoryview, ...]) -> None:
    """Fill ``views`` one after the other from ``pieces``, which are as long together."""
    rest = memoryview(b"")
    for view in views:
        filled = 0
        while filled < len(view):
            rest = rest or memoryview(next(pieces))
            count = min(len(rest), len(view) - filled)
            view[filled : filled + count] = rest[:count]
            filled, rest = filled + count, rest[count:]
