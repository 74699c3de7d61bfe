"""safetensors files, through the ``safetensors`` package: its names, its checks, this package's tensors.

The package validates and writes; the numbers are read straight into the memory of the tensors, which its interface
for NumPy cannot do for bfloat16.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import rushlight

from . import memory, rebuild
from .atomic_file import atomic_path
from .inspect import StorageInfo, TensorInfo
from .source import PathSource, StreamSource
from .torch_names import ITEM_SIZES

if TYPE_CHECKING:
    from .source import Source

# The format's limit for its header.
LARGEST_HEADER = 100_000_000

DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "F16": "float16",
    "BF16": "bfloat16",
    "U32": "uint32",
    "I32": "int32",
    "F32": "float32",
    "U64": "uint64",
    "I64": "int64",
    "F64": "float64",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
}


class Entry(NamedTuple):
    """A tensor of the file, and where its numbers begin."""

    info: TensorInfo
    offset: int


def save_file(
    tensors: dict[str, rushlight.Tensor], filename: str | os.PathLike[str], metadata: dict[str, str] | None = None
) -> None:
    """Save tensors by name, atomically.

    Raises ``ValueError`` for a tensor that is not a tensor or not contiguous, ``RuntimeError`` for tensors that share
    memory and ``safetensors.SafetensorError`` for a file that cannot be written, as ``safetensors.torch.save_file``
    does; an existing file is left as it was.
    """
    from safetensors import SafetensorError, serialize_file

    views: list[Any] = []
    specs = _specs(tensors, views)
    try:
        with atomic_path(filename) as temporary:
            serialize_file(specs, temporary, metadata=metadata)
    except SafetensorError as error:
        raise SafetensorError(f"{os.fspath(filename)}: {error}") from error


def save(tensors: dict[str, rushlight.Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file with ``tensors`` in it; raises what `save_file` raises."""
    from safetensors import serialize

    views: list[Any] = []
    return bytes(serialize(_specs(tensors, views), metadata=metadata))


def load_file(filename: str | os.PathLike[str], device: str = "cpu") -> dict[str, rushlight.Tensor]:
    """The tensors of a safetensors file by name.

    Raises ``safetensors.SafetensorError``, naming the file, for one that is damaged or lists a name twice.
    """
    from safetensors import SafetensorError, safe_open

    with open(filename, "rb", buffering=0) as file:
        source = PathSource(file, os.fspath(filename))
        try:
            with safe_open(filename, framework="np"):
                header = read_header(source)
        except SafetensorError as error:
            raise SafetensorError(f"{source.name}: {error}") from error
        except RuntimeError as error:
            raise SafetensorError(str(error)) from error
        return _load(source, header, device)


def load(data: bytes) -> dict[str, rushlight.Tensor]:
    """The tensors in the bytes of a safetensors file by name; raises what `load_file` raises."""
    import io

    from safetensors import SafetensorError, deserialize

    deserialize(data)  # type: ignore[no-untyped-call]
    source = StreamSource(io.BytesIO(data), "<bytes>")
    try:
        header = read_header(source)
    except RuntimeError as error:
        raise SafetensorError(str(error)) from error
    return _load(source, header, "cpu")


def _load(source: Source, header: dict[str, Entry], device: str) -> dict[str, rushlight.Tensor]:
    tensors = {}
    for name, (info, offset) in header.items():
        dtype = getattr(rushlight, info.dtype, None)
        if dtype is None:
            raise NotImplementedError(f"{source.name}: the dtype {info.dtype} of {name!r} is not in rushlight")
        tensor = rushlight.empty(info.shape, dtype=dtype)
        memory.populate(tensor.untyped_storage())
        view = memory.as_bytes(tensor.untyped_storage())
        if source.read_into(offset, view) != len(view):
            raise RuntimeError(f"{source.name}: the file ends inside of the tensor {name!r}")
        tensors[name] = tensor if device == "cpu" else tensor.to(device)
    return tensors


def _specs(tensors: dict[str, rushlight.Tensor], views: list[Any]) -> dict[str, Any]:
    """What the package needs to write ``tensors`` from where they are, as long as ``views`` are kept."""
    import numpy
    from safetensors import TensorSpec

    specs: dict[str, Any] = {}
    owners: dict[int, str] = {}
    for name, tensor in tensors.items():
        _check_tensor(name, tensor)
        storage = tensor.untyped_storage()
        if tensor.numel() and owners.setdefault(storage._identity(), name) != name:
            raise RuntimeError(
                f"Some tensors share memory, this will lead to duplicate memory on disk and potential differences "
                f"when loading them again: {sorted((owners[storage._identity()], name))}."
            )
        view = numpy.frombuffer(memory.as_bytes(storage), dtype=numpy.uint8)
        views.append(view)
        specs[name] = TensorSpec(
            dtype=str(tensor.dtype).rpartition(".")[2],
            shape=list(tensor.shape),
            data_ptr=view.__array_interface__["data"][0] + tensor.storage_offset() * tensor.element_size(),
            data_len=tensor.numel() * tensor.element_size(),
        )
    return specs


def _check_tensor(name: str, tensor: Any) -> None:
    if not isinstance(tensor, rushlight.Tensor):
        raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}")
    if not tensor.is_contiguous():
        raise ValueError(
            f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It either means you "
            "are trying to save tensors which are reference of each other in which case it's recommended to save "
            "only the full tensors, and reslice at load time, or simply call `.contiguous()` on your tensor to "
            "pack it before saving."
        )


def looks_like_safetensors(source: Source) -> bool:
    """Whether the file begins as a safetensors file does: the length of the header, then the header's brace."""
    head = source.read_at(0, 9)
    return (
        len(head) == 9 and head[8:] == b"{" and int.from_bytes(head[:8], "little") <= max(LARGEST_HEADER, source.size)
    )


def read_header(source: Source) -> dict[str, Entry]:
    """The tensors that the header lists, by name and in the order of the file.

    Raises ``RuntimeError`` for a header that is too large, is not JSON, lists a name twice, or describes tensors that
    are not in the file.
    """
    length = int.from_bytes(source.read_at(0, 8), "little")
    if length > LARGEST_HEADER or 8 + length > source.size:
        raise RuntimeError(f"{source.name}: header too large: {length} bytes in a file of {source.size}")
    try:
        listed = json.loads(source.read_at(8, length), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise RuntimeError(f"{source.name}: invalid header: {error}") from error
    if not isinstance(listed, dict):
        raise RuntimeError(f"{source.name}: invalid header: not an object")
    entries = {
        name: _entry(source, name, value, 8 + length) for name, value in listed.items() if name != "__metadata__"
    }
    return dict(sorted(entries.items(), key=lambda item: item[1].offset))


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"duplicate keys {sorted({name for name in names if names.count(name) > 1})}")
    return result


def _entry(source: Source, name: str, value: Any, base: int) -> Entry:
    try:
        dtype = DTYPES[value["dtype"]]
        begin, end = rebuild.check_sizes("data_offsets", value["data_offsets"])
        info = TensorInfo(dtype, rebuild.check_sizes("shape", value["shape"]), StorageInfo(name, end - begin))
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise RuntimeError(
            f"{source.name}: invalid header: the entry of {name!r} does not make sense ({error})"
        ) from error
    if info.nbytes != end - begin or base + end > source.size:
        raise RuntimeError(
            f"{source.name}: invalid header: {name!r} of {info.numel} numbers of {ITEM_SIZES[dtype]} bytes cannot be "
            f"the bytes {begin} to {end} of {source.size - base}"
        )
    return Entry(info, base + begin)
