"""PyTorch's format of before 1.6: five pickles, then the raw storages one after the other.

The pickles are a magic number, the protocol, the machine's sizes, the object, and the order of the storages; each
storage is its number of elements in 64 bits and then the elements, least significant byte first.
"""

from __future__ import annotations

import pickle
import sys
from io import BytesIO
from typing import TYPE_CHECKING, Any

from . import memory
from .pickler import CheckpointPickler, Name, StorageReference
from .torch_names import ITEM_SIZES, item_width
from .unpickler import Unpickler
from .world import CheckpointWorld, StorageType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .location import Restorer
    from .source import Source

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
SYSTEM_INFO = {
    "protocol_version": PROTOCOL_VERSION,
    "little_endian": sys.byteorder == "little",
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}
FIRST_WINDOW = 1 << 16


class LegacyPickler(CheckpointPickler):
    """The pickler of the legacy format, in which a storage could be a view of another."""

    def storage_id(self, kind: Name, key: str, tag: str, numel: int) -> tuple[Any, ...]:
        return "storage", kind, key, tag, numel, None


def pickle_for_legacy(obj: object, protocol: int) -> tuple[bytes, dict[str, StorageReference]]:
    """The five pickles for ``obj``, and the storages that have to follow them."""
    buffer = BytesIO()
    for value in (MAGIC_NUMBER, PROTOCOL_VERSION, SYSTEM_INFO):
        pickle.dump(value, buffer, protocol=protocol)
    pickler = LegacyPickler(buffer, protocol)
    pickler.dump(obj)
    pickle.dump(list(pickler.storages), buffer, protocol=protocol)
    return buffer.getvalue(), pickler.storages


def write_legacy(write: Callable[[Any], object], pickled: bytes, storages: Mapping[str, StorageReference]) -> None:
    """Write the pickles and then the storages, straight from their memory."""
    write(pickled)
    for storage, dtype in storages.values():
        view = memory.as_bytes(storage)
        write((len(view) // ITEM_SIZES[dtype or "uint8"]).to_bytes(8, "little"))
        write(view)


class LegacyStorages:
    """The storages of a legacy file: made when the pickle mentions them, filled once it has been read."""

    def __init__(self, source: Source, restore: Restorer) -> None:
        self._source = source
        self._restore = restore
        self._made: dict[str, tuple[Any, StorageType, int]] = {}
        self._views: dict[str, Any] = {}
        self._promised = 0

    def load(self, storage_type: StorageType, key: str, tag: str, numel: int, rest: Any) -> Any:
        if key not in self._made:
            self._make(storage_type, key, tag, numel)
        elif self._made[key][1:] != (storage_type, numel):
            raise RuntimeError(f"{self._source.name}: storage {key!r} is described in two ways")
        view = rest[0] if rest else None
        return self._made[key][0] if view is None else self._view(key, view)

    def _make(self, storage_type: StorageType, key: str, tag: str, numel: int) -> None:
        nbytes = numel * ITEM_SIZES[storage_type.dtype or "uint8"]
        self._promised += 8 + nbytes
        if self._promised > self._source.size:
            raise RuntimeError(
                f"{self._source.name}: storage {key!r} of {nbytes} bytes cannot be in a file of "
                f"{self._source.size} bytes"
            )
        self._made[key] = self._restore(memory.allocate(nbytes), tag), storage_type, numel

    def _view(self, key: str, view: Any) -> Any:
        """A part of a storage as a storage, as files of before 0.4 have them."""
        storage, storage_type, numel = self._made[key]
        if type(view) is not tuple or len(view) != 3 or type(view[0]) is not str:
            raise RuntimeError(f"{self._source.name}: storage {key!r} has a view that is not described by three parts")
        name, offset, size = view
        if type(offset) is not int or type(size) is not int or not 0 <= offset <= offset + size <= numel:
            raise RuntimeError(f"{self._source.name}: a view of storage {key!r} lies outside of it")
        if name not in self._views:
            item_size = ITEM_SIZES[storage_type.dtype or "uint8"]
            self._views[name] = memory.from_buffer(memory.as_bytes(storage), offset * item_size, size * item_size)
        return self._views[name]

    def fill(self, keys: Any, position: int) -> int:
        """Read all storages, in the order of ``keys``, from ``position`` on, and hold on to none.

        Returns the position after them.
        """
        if type(keys) is not list or sorted(map(str, keys)) != sorted(self._made):
            raise RuntimeError(f"{self._source.name}: the list of storages does not match the pickle")
        for key in keys:
            storage, storage_type, numel = self._made[key]
            found = int.from_bytes(self._source.read_at(position, 8), "little", signed=True)
            if found != numel:
                raise RuntimeError(
                    f"{self._source.name}: storage has wrong byte size: storage {key!r} has {found} elements in the "
                    f"file, expected {numel}"
                )
            memory.populate(storage)
            view = memory.as_bytes(storage)
            if self._source.read_into(position + 8, view) != len(view):
                raise RuntimeError(f"{self._source.name}: unexpected EOF, the file ends inside of storage {key!r}")
            if sys.byteorder == "big":
                memory.swap_bytes(storage, item_width(storage_type.dtype or "uint8"))
            position += 8 + len(view)
        self._made, self._views = {}, {}
        return position


class LegacyCheckpoint:
    """A checkpoint in the legacy format, opened for reading.

    Raises ``RuntimeError`` for other files, ``EOFError`` and ``pickle.UnpicklingError`` for damaged ones.
    """

    def __init__(self, source: Source, world: CheckpointWorld, encoding: str = "utf-8") -> None:
        self._source = source
        self._machine = Unpickler(
            source.read_at(0, FIRST_WINDOW),
            world,
            source.name,
            encoding=encoding,
            limit=source.size,
            longer=lambda count: source.read_at(0, count),
        )
        if self._magic_number() != MAGIC_NUMBER:
            raise RuntimeError(f"{source.name}: Invalid magic number; corrupt file?")
        if (version := self._machine.load()) != PROTOCOL_VERSION:
            raise RuntimeError(f"{source.name}: Invalid protocol version: {version!r}")
        self._machine.load()  # the sizes of the writer's C types, which nothing depends on

    def _magic_number(self) -> Any:
        try:
            return self._machine.load()
        except pickle.UnpicklingError as error:
            begin = self._source.read_at(0, 12)
            raise pickle.UnpicklingError(
                f"{self._source.name}: Weights only load failed. The file is not a checkpoint: it is neither a zip "
                f"archive nor a pickle, and begins with {begin!r}."
            ) from error

    def unpickle(self) -> tuple[Any, Any, int]:
        """The object, the keys of its storages in their order, and the position where the storages begin."""
        result = self._machine.load()
        keys = self._machine.load()
        return result, keys, self._machine.position
