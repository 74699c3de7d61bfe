"""A listing of the tensors in a file, for ``rushlight info FILE``: nothing but headers and the pickle is read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from .inspect import InspectingWorld, TensorInfo, tensors_in
from .legacy_checkpoint import LegacyCheckpoint
from .source import PathSource
from .torch_names import ITEM_SIZES
from .zip_checkpoint import ZipCheckpoint
from .zip_format import LOCAL_SIGNATURE
from .zip_reader import ZipReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .source import Source

UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


class Contents(NamedTuple):
    """What a file holds: its format, its tensors by name, and the classes it mentions that are not built here."""

    kind: str
    tensors: Sequence[tuple[str, TensorInfo]]
    unknown: Sequence[str] = ()


def describe(path: str | os.PathLike[str]) -> list[str]:
    """Lines that list the tensors of a file with their dtypes, shapes and sizes, after a line on the whole.

    Reads checkpoints of PyTorch's formats, safetensors files and ``.npz`` archives, without loading any tensor.
    Raises what loading the file would raise when it is damaged.
    """
    with open(path, "rb", buffering=0) as file:
        source = PathSource(file, os.fspath(path))
        contents = _contents(source)
    return _lines(source, contents)


def _contents(source: Source) -> Contents:
    from .safetensors import looks_like_safetensors, read_header

    if source.read_at(0, len(LOCAL_SIGNATURE)) == LOCAL_SIGNATURE:
        return _zip_contents(source)
    if looks_like_safetensors(source):
        return Contents("safetensors file", [(name, entry.info) for name, entry in read_header(source).items()])
    if source.size == 0:
        raise EOFError(f"{source.name}: Ran out of input: the file is empty")
    world = InspectingWorld(
        source.name, lambda storage_type, key, numel: numel * ITEM_SIZES[storage_type.dtype or "uint8"]
    )
    value = LegacyCheckpoint(source, world).unpickle()[0]
    return Contents("PyTorch legacy checkpoint", list(tensors_in(value)), world.unknown)


def _zip_contents(source: Source) -> Contents:
    from .npz import read_headers

    reader = ZipReader(source)
    if reader.records and all(name.endswith(".npy") for name in reader.records):
        return Contents("NumPy archive", [(name, array.info) for name, array in read_headers(reader).items()])
    checkpoint = ZipCheckpoint(source)
    world = InspectingWorld(
        source.name, lambda storage_type, key, numel: checkpoint.storage_record(storage_type, key, numel).size
    )
    value = checkpoint.unpickle(world)
    return Contents("PyTorch zip checkpoint", list(tensors_in(value)), world.unknown)


def _lines(source: Source, contents: Contents) -> list[str]:
    tensors = contents.tensors
    numbers = sum(info.numel for _, info in tensors)
    storages = {info.storage for _, info in tensors if info.storage is not None}
    nbytes = sum(storage.nbytes for storage in storages)
    lines = [
        f"{source.name}: {contents.kind} of {_size(source.size)}, {len(tensors)} tensors, {numbers:,} numbers, "
        f"{_size(nbytes)} in {len(storages)} storages"
    ]
    rows = [(name or "(the object)", info.dtype, str(list(info.shape)), _size(info.nbytes)) for name, info in tensors]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    owners: dict[object, str] = {}
    for row, (name, info) in zip(rows, tensors, strict=True):
        owner = owners.setdefault(info.storage, name) if info.storage is not None else name
        shared = "" if owner == name else f"  in the storage of {owner}"
        cells = [row[0].ljust(widths[0]), row[1].ljust(widths[1]), row[2].ljust(widths[2]), row[3].rjust(widths[3])]
        lines.append("  " + "  ".join(cells) + shared)
    if contents.unknown:
        lines.append(
            f"mentions classes that load() refuses unless allowed: {', '.join(dict.fromkeys(contents.unknown))}"
        )
    return lines


def _size(nbytes: int) -> str:
    for factor, unit in UNITS:
        if nbytes >= factor:
            return f"{nbytes / factor:.1f} {unit}"
    return f"{nbytes} B"
