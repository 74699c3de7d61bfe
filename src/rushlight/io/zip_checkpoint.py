"""PyTorch's zip format: a pickle that refers to storages, and the storages as records beside it.

All records stand in one folder, named after the file: ``data.pkl``, ``data/0`` and so on, ``byteorder``, ``version``.
"""

from __future__ import annotations

import mmap
import sys
from io import BytesIO
from typing import TYPE_CHECKING, Any

from . import memory, zip_format
from .pickler import CheckpointPickler, Name, StorageReference
from .torch_names import ITEM_SIZES, item_width
from .unpickler import Unpickler
from .world import CheckpointWorld, StorageType
from .zip_reader import Record, ZipReader
from .zip_writer import ALIGNMENT, ZipWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from .location import Restorer
    from .source import Source

VERSION = "3\n"
NEWEST_VERSION = 10
LARGEST_SMALL_RECORD = 64  # byteorder, version and their like hold a word


class ZipPickler(CheckpointPickler):
    """The pickler of the zip format."""

    def storage_id(self, kind: Name, key: str, tag: str, numel: int) -> tuple[Any, ...]:
        return "storage", kind, key, tag, numel


def pickle_for_zip(obj: object, protocol: int) -> tuple[bytes, dict[str, StorageReference]]:
    """The pickle of ``obj`` and the storages that it refers to, by key."""
    buffer = BytesIO()
    pickler = ZipPickler(buffer, protocol)
    pickler.dump(obj)
    return buffer.getvalue(), pickler.storages


def write_zip(
    write: Callable[[Any], object],
    folder: str,
    pickled: bytes,
    storages: Mapping[str, StorageReference],
    *,
    checksums: bool,
    byteorder_record: bool,
) -> None:
    """Write a pickle and its storages, straight from their memory, as an archive."""
    writer = ZipWriter(write, checksums=checksums)

    def add(name: str, data: bytes | memoryview) -> None:
        writer.add(f"{folder}/{name}", data)

    add("data.pkl", pickled)
    add(".format_version", b"1")
    add(".storage_alignment", str(ALIGNMENT).encode())
    if byteorder_record:
        add("byteorder", sys.byteorder.encode())
    for key, reference in storages.items():
        add(f"data/{key}", memory.as_bytes(reference.storage))
    add("version", VERSION.encode())
    # PyTorch's identifier has forty digits too: of the names, then of the contents.
    add(".data/serialization_id", f"{len(storages):020d}{writer.checksum_of_all:020d}".encode())
    writer.close()


class ZipCheckpoint:
    """A checkpoint in PyTorch's zip format, opened for reading.

    Raises ``RuntimeError`` for an archive that does not hold together or is not a checkpoint, ``ValueError`` for an
    unknown order of bytes.
    """

    def __init__(self, source: Source, default_byteorder: str = sys.byteorder) -> None:
        self.source = source
        self.reader = ZipReader(source)
        first = next(iter(self.reader.records), "")
        self.folder = first.partition("/")[0]
        if f"{self.folder}/data.pkl" not in self.reader.records:
            raise RuntimeError(f"{source.name}: the archive has no record data.pkl; it is not a checkpoint of tensors")
        if f"{self.folder}/constants.pkl" in self.reader.records:
            raise RuntimeError(
                f"{source.name}: Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. "
                "The archive holds a program; only tensors are read from files."
            )
        self._check_version()
        self.byteorder = self._word("byteorder") or default_byteorder
        if self.byteorder not in ("little", "big"):
            raise ValueError(f"{source.name}: Unknown endianness type: {self.byteorder}")

    def _word(self, name: str) -> str:
        """The contents of a small record, empty if there is none."""
        record = self.reader.records.get(f"{self.folder}/{name}")
        if record is None:
            return ""
        if record.size > LARGEST_SMALL_RECORD:
            self.reader.fail(f"record {record.name!r} has {record.size} bytes, expected a word")
        return self.reader.read(record).decode("ascii", "replace").strip()

    def _check_version(self) -> None:
        version = self._word("version")
        if version and not (version.isdecimal() and 0 < int(version) <= NEWEST_VERSION):
            raise RuntimeError(
                f"{self.source.name}: Attempted to read a PyTorch file with version {version!r}, "
                f"but the maximum supported version for reading is {NEWEST_VERSION}."
            )

    def unpickle(self, world: CheckpointWorld, encoding: str = "utf-8") -> Any:
        """The object of the checkpoint, as ``world`` builds it."""
        pickled = self.reader.read(self.reader.record(f"{self.folder}/data.pkl"))
        machine = Unpickler(pickled, world, self.source.name, encoding=encoding)
        result = machine.load()
        if machine.position != len(pickled):
            machine.fail(f"{len(pickled) - machine.position} bytes follow its end")
        return result

    def storage_record(self, storage_type: StorageType, key: str, numel: int) -> Record:
        """The record of a storage, whose size is what the pickle says of it."""
        record = self.reader.record(f"{self.folder}/data/{key}")
        item_size = ITEM_SIZES[storage_type.dtype or "uint8"]
        if record.size != numel * item_size:
            raise RuntimeError(
                f"{self.source.name}: record size ({record.size} bytes) does not match expected size "
                f"({numel * item_size} bytes = {numel} elements * {item_size} bytes/element) for storage {key!r}"
            )
        return record


class ZipStorages:
    """Loads the storages of a checkpoint, each once, into memory of their own or out of a mapping of the file.

    A context, after which it holds on to no storage, whoever still refers to it.
    """

    def __init__(self, checkpoint: ZipCheckpoint, restore: Restorer, mapping: mmap.mmap | None) -> None:
        self._checkpoint = checkpoint
        self._restore = restore
        self._mapping = mapping
        self._loaded: dict[str, Any] = {}

    def __enter__(self) -> ZipStorages:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loaded = {}

    def load(self, storage_type: StorageType, key: str, tag: str, numel: int, rest: Any) -> Any:
        storage = self._loaded.get(key)
        if storage is None:
            record = self._checkpoint.storage_record(storage_type, key, numel)
            storage = self._loaded[key] = self._restore(self._read(record, storage_type), tag)
        return storage

    def _read(self, record: Record, storage_type: StorageType) -> Any:
        reader = self._checkpoint.reader
        width = item_width(storage_type.dtype or "uint8")
        foreign = self._checkpoint.byteorder != sys.byteorder
        if foreign and storage_type.dtype is None:
            raise NotImplementedError(
                f"{reader.source.name}: storages without a dtype from a machine of the other byte order are not read"
            )
        if self._mapping is not None and record.method == zip_format.STORED and not foreign:
            offset = reader.data_offset(record)
            if offset % width == 0:
                return memory.from_buffer(self._mapping, offset, record.size)
        storage = memory.allocate(record.size)
        if record.method == zip_format.STORED:  # others may lie about what they grow to
            memory.populate(storage)
        reader.read_into(record, memory.as_bytes(storage))
        if foreign:
            memory.swap_bytes(storage, width)
        return storage
