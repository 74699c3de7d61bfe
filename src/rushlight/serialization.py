"""Saving and loading objects that hold tensors, in the file formats of PyTorch (``torch.serialization``).

A file is never a program here: `load` builds tensors, containers and classes that the caller has allowed, whatever
``weights_only`` says. The formats themselves are in ``rushlight.io``.
"""

from __future__ import annotations

import mmap as _mmap
import os
import pickle
import sys
import warnings
from enum import Enum
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from .io.atomic_file import ReplacingOutput, atomic_output, get_sync_options, set_sync_options
from .io.inspect import UnknownGlobals
from .io.legacy_checkpoint import LegacyCheckpoint, LegacyStorages, pickle_for_legacy, write_legacy
from .io.location import default_restore_location, location_tag, register_package, restorer
from .io.safe_globals import add_safe_globals, allowed_objects, clear_safe_globals, get_safe_globals, safe_globals
from .io.source import PathSource, StreamSource, display_name
from .io.world import CheckpointWorld
from .io.zip_checkpoint import ZipCheckpoint, ZipStorages, pickle_for_zip, write_zip
from .io.zip_format import LOCAL_SIGNATURE

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType, TracebackType

    from . import device
    from .io.source import Source

    FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
    MapLocation: TypeAlias = Callable[[Any, str], Any] | device | str | dict[str, str] | None

__all__ = [
    "LoadEndianness",
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_sync_options",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "set_sync_options",
]

DEFAULT_PROTOCOL = 2
_TAR_MARK_OFFSET = 257


class LoadEndianness(Enum):
    """The byte order to assume for files that do not record theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Options:
    """What the functions below set for the whole process."""

    checksums = True
    endianness: LoadEndianness | None = None
    mmap_flags = getattr(_mmap, "MAP_PRIVATE", None)


def get_crc32_options() -> bool:
    """Whether `save` computes a checksum for each record."""
    return _Options.checksums


def set_crc32_options(compute_crc32: bool) -> None:
    """Choose whether `save` computes a checksum for each record; without, other zip tools may refuse the file."""
    _Options.checksums = compute_crc32


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order assumed for files that do not record theirs; None means this machine's."""
    return _Options.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order assumed for files that do not record theirs."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _Options.endianness = endianness


def get_default_mmap_options() -> int | None:
    """How `load` maps files: ``mmap.MAP_PRIVATE`` or ``mmap.MAP_SHARED``."""
    return _Options.mmap_flags


class set_default_mmap_options:
    """Set how `load` maps files, for good or as a context.

    With ``mmap.MAP_PRIVATE``, the default, writing to a loaded tensor changes only memory; with ``mmap.MAP_SHARED`` it
    changes the file.
    """

    def __init__(self, flags: int) -> None:
        if flags not in (_mmap.MAP_PRIVATE, _mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self._before = _Options.mmap_flags
        _Options.mmap_flags = flags

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _Options.mmap_flags = self._before


def save(
    obj: object,
    f: FileLike,
    pickle_module: ModuleType = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Save ``obj`` to a path or to an object with ``write``, in a format that PyTorch reads.

    Tensors that share memory share it in the file. A path is written atomically: the old file stays until the new
    one is whole (and on the disk, with `set_sync_options`).

    Raises ``RuntimeError`` when the file cannot be written or ``obj`` holds tensors that view the same memory with
    different dtypes, ``AttributeError`` when ``f`` is neither path nor file, and whatever pickling ``obj`` raises; in
    every case an existing file is left as it was.
    """
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if pickle_module is not pickle:
        raise NotImplementedError(
            f"save with pickle_module={getattr(pickle_module, '__name__', pickle_module)} is not in rushlight; "
            "the standard library's pickle is what its checkpoints are written with"
        )
    if pickle_protocol == 0:
        raise ValueError("pickle protocol 0 cannot refer to storages; use a protocol from 1 to 5")
    output = atomic_output(f) if isinstance(f, (str, os.PathLike)) else _StreamOutput(f)
    if _use_new_zipfile_serialization:
        pickled, storages = pickle_for_zip(obj, pickle_protocol)
        with output as file:
            if isinstance(file, ReplacingOutput):
                file.reserve(len(pickled) + sum(reference.storage.nbytes() for reference in storages.values()))
            write_zip(
                file.write,
                _folder_name(f),
                pickled,
                storages,
                checksums=_Options.checksums,
                byteorder_record=not _disable_byteorder_record,
            )
    else:
        pickled, storages = pickle_for_legacy(obj, pickle_protocol)
        with output as file:
            write_legacy(file.write, pickled, storages)


class _StreamOutput:
    """The caller's own file as an output: written in order, flushed, left open."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __enter__(self) -> Any:
        return self._stream

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and hasattr(self._stream, "flush"):
            self._stream.flush()


def _folder_name(f: Any) -> str:
    """The folder of an archive's records: the file's name without its ending, as PyTorch has it."""
    if not isinstance(f, (str, os.PathLike)):
        return "archive"
    base = os.path.basename(os.fspath(f))
    stem = base.rpartition(".")[0] or base
    return stem if stem.isascii() and stem.strip(".") and "\\" not in stem else "archive"


def load(
    f: FileLike,
    map_location: MapLocation = None,
    pickle_module: ModuleType | None = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load what `save` or ``torch.save`` wrote to a path or to an object with ``read``, ``seek`` and ``tell``.

    Nothing in a file is ever executed: tensors, containers and the classes allowed by `add_safe_globals` are built,
    with ``weights_only=False`` too. ``mmap=True`` maps the file instead of reading it, so that only what is used is
    read. ``map_location`` says where storages go, as in PyTorch. Every size and position is compared with the file
    before memory is asked for.

    Raises ``RuntimeError`` for a damaged archive, a storage that is missing or too small or a device that is not
    here, ``NotImplementedError`` for tensors of a kind that is not here, ``pickle.UnpicklingError`` for a pickle that
    is invalid or mentions a class that is not allowed, ``EOFError`` for one that ends early, ``ValueError`` for an
    unknown order of bytes, and ``OSError`` for a file that cannot be opened; each names the file.
    """
    encoding = _check_load_arguments(pickle_module, weights_only, pickle_load_args)
    advice = _NEVER_EXECUTED if weights_only is False else _CHECKPOINT_ADVICE
    restore = restorer(map_location)
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb", buffering=0) as file:
            source: Source = PathSource(file, os.fspath(f))
            mapping = _map(file, source) if mmap else None
            return _load(source, restore, mapping, encoding, advice)[0]
    if mmap:
        raise ValueError("f must be a file path in order to use the mmap argument")
    stream = _seekable_source(f)
    start = f.tell()
    result, length = _load(stream, restore, None, encoding, advice)
    f.seek(start + length)
    return result


_NEVER_EXECUTED = (
    " rushlight never executes code from a file, not with weights_only=False either: save the state_dict() instead of "
    "the object, or allow the class with rushlight.serialization.add_safe_globals if you trust it."
)
_CHECKPOINT_ADVICE = " Save tensors and containers, for example a state_dict(), to have a file that loads anywhere."


def _check_load_arguments(
    pickle_module: ModuleType | None, weights_only: bool | None, pickle_load_args: dict[str, Any]
) -> str:
    """Refuse what would let a file choose what is executed; returns the encoding for strings of Python 2."""
    if pickle_module is not None:
        if weights_only:
            raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
        if pickle_module is not pickle:
            raise RuntimeError(
                f"load with pickle_module={getattr(pickle_module, '__name__', pickle_module)} would execute what the "
                "file says; rushlight reads checkpoints with its own unpickler, which executes nothing"
            )
    encoding = pickle_load_args.pop("encoding", "utf-8")
    pickle_load_args.pop("fix_imports", None)
    if errors := pickle_load_args.pop("errors", None):
        warnings.warn(f"load ignores errors={errors!r}; strings that do not decode are refused", stacklevel=3)
    if pickle_load_args:
        raise TypeError(f"load() got an unexpected keyword argument {next(iter(pickle_load_args))!r}")
    if not isinstance(encoding, str):
        raise TypeError(f"encoding must be a string, not {type(encoding).__name__}")
    return encoding


def _map(file: Any, source: Source) -> _mmap.mmap:
    """The file as memory."""
    if source.read_at(0, len(LOCAL_SIGNATURE)) != LOCAL_SIGNATURE:
        raise RuntimeError(
            f"{source.name}: mmap can only be used with files saved with "
            f"`torch.save({source.name}, _use_new_zipfile_serialization=True), "
            "please torch.save your checkpoint with this option in order to use mmap."
        )
    access = _mmap.ACCESS_WRITE if _Options.mmap_flags == _mmap.MAP_SHARED else _mmap.ACCESS_COPY
    if access == _mmap.ACCESS_WRITE:
        with open(source.name, "r+b") as writable:
            return _mmap.mmap(writable.fileno(), 0, access=access)
    return _mmap.mmap(file.fileno(), 0, access=access)


def _seekable_source(f: Any) -> StreamSource:
    try:
        source = StreamSource(f, display_name(f))
        f.read  # noqa: B018 - asked for, so that its absence is reported here
    except (OSError, AttributeError) as error:
        raise type(error)(
            f"{error}. You can only torch.load from a file that is seekable. "
            "Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
        ) from error
    return source


def _load(source: Source, restore: Any, mapping: _mmap.mmap | None, encoding: str, advice: str) -> tuple[Any, int]:
    """The object in ``source`` and how many bytes it takes."""
    allowed = allowed_objects()
    if _kind(source) == "zip":
        checkpoint = ZipCheckpoint(source, _default_byteorder())
        with ZipStorages(checkpoint, restore, mapping) as storages:
            world = CheckpointWorld(source.name, storages.load, allowed, advice=advice)
            return checkpoint.unpickle(world, encoding), source.size
    legacy_storages = LegacyStorages(source, restore)
    world = CheckpointWorld(source.name, legacy_storages.load, allowed, advice=advice)
    result, keys, position = LegacyCheckpoint(source, world, encoding).unpickle()
    return result, legacy_storages.fill(keys, position)


def _kind(source: Source) -> str:
    """Which of PyTorch's formats the file has, by its first bytes."""
    head = source.read_at(0, _TAR_MARK_OFFSET + 5)
    if not head:
        raise EOFError(f"{source.name}: Ran out of input: the file is empty")
    if head.startswith(LOCAL_SIGNATURE):
        return "zip"
    if head.endswith(b"ustar"):
        raise RuntimeError(
            f"{source.name}: Cannot use ``weights_only=True`` with files saved in the legacy .tar format. "
            "Load the file with a PyTorch of that time and save it again."
        )
    return "legacy"


def _default_byteorder() -> str:
    if _Options.endianness in (None, LoadEndianness.NATIVE):
        return sys.byteorder
    return "little" if _Options.endianness is LoadEndianness.LITTLE else "big"


def get_unsafe_globals_in_checkpoint(f: FileLike) -> list[str]:
    """The names that the checkpoint mentions and that `load` would refuse as things stand, in order.

    Raises what `load` raises for files that are damaged.
    """
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb", buffering=0) as file:
            return _unsafe_globals(PathSource(file, os.fspath(f)))
    start = f.tell()
    names = _unsafe_globals(_seekable_source(f))
    f.seek(start)
    return names


def _unsafe_globals(source: Source) -> list[str]:
    world = UnknownGlobals(source.name, allowed_objects())
    if _kind(source) == "zip":
        ZipCheckpoint(source).unpickle(world)
    else:
        LegacyCheckpoint(source, world).unpickle()
    return list(dict.fromkeys(world.unknown))
