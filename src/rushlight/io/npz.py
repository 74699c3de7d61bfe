"""State dicts as NumPy's ``.npz`` archives, which any program with NumPy opens."""

from __future__ import annotations

import io
import os
import sys
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import rushlight

from . import memory, zip_format
from .atomic_file import atomic_output
from .inspect import StorageInfo, TensorInfo
from .source import PathSource
from .torch_names import ITEM_SIZES, item_width
from .zip_reader import ZipReader
from .zip_writer import ZipWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .zip_reader import Record

ENDING = ".npy"
LARGEST_ARRAY_HEADER = 10_000  # NumPy's own limit for headers that it evaluates
PREFIX = 12  # magic, version, and at most four bytes of length before the header


class ArrayHeader(NamedTuple):
    """What the header of an array in the archive says, and how many bytes it takes."""

    info: TensorInfo
    fortran_order: bool
    byteorder: str
    length: int
    record: Record


def save_file(tensors: Mapping[str, rushlight.Tensor], filename: str | os.PathLike[str]) -> None:
    """Save tensors by name as a ``.npz`` archive, atomically.

    Raises ``TypeError`` for values that are no tensors and for dtypes that NumPy does not have.
    """
    import numpy

    arrays = {}
    for name, tensor in tensors.items():
        if not isinstance(tensor, rushlight.Tensor):
            raise TypeError(f"{name!r} is a {type(tensor).__name__}, expected a tensor; nested state needs save()")
        if tensor.dtype == rushlight.bfloat16:
            raise TypeError(f"{name!r} is bfloat16, which NumPy does not have; use save() or safetensors")
        arrays[name] = numpy.asarray(tensor.detach().numpy(), order="C")
    with atomic_output(filename) as file:
        writer = ZipWriter(file.write)
        for name, array in arrays.items():
            header = io.BytesIO()
            numpy.lib.format.write_array_header_1_0(header, numpy.lib.format.header_data_from_array_1_0(array))
            writer.add(name + ENDING, header.getvalue(), array.reshape(-1).view(numpy.uint8).data)
        writer.close()


def load_file(filename: str | os.PathLike[str]) -> dict[str, rushlight.Tensor]:
    """The arrays of a ``.npz`` archive as tensors by name.

    Raises ``RuntimeError`` for a damaged archive, and ``ValueError`` for arrays of objects or of records.
    """
    with open(filename, "rb", buffering=0) as file:
        reader = ZipReader(PathSource(file, os.fspath(filename)))
        return {name: _load(reader, header) for name, header in read_headers(reader).items()}


def _load(reader: ZipReader, header: ArrayHeader) -> rushlight.Tensor:
    info = header.info
    storage = memory.allocate(info.nbytes)
    if header.record.method == zip_format.STORED:
        memory.populate(storage)
    reader.read_into(header.record, memoryview(bytearray(header.length)), memory.as_bytes(storage))
    if header.byteorder != sys.byteorder:
        memory.swap_bytes(storage, item_width(info.dtype))
    shape = info.shape[::-1] if header.fortran_order else info.shape
    stride = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
    tensor = memory.tensor_over(storage, getattr(rushlight, info.dtype), 0, shape, stride)
    return tensor.permute(*reversed(range(len(shape)))) if header.fortran_order else tensor


def read_headers(reader: ZipReader) -> dict[str, ArrayHeader]:
    """The arrays that the archive lists, by name; raises what `load_file` raises."""
    return {
        name.removesuffix(ENDING): _read_header(reader, record)
        for name, record in reader.records.items()
        if name.endswith(ENDING)
    }


def _read_header(reader: ZipReader, record: Record) -> ArrayHeader:
    import numpy.lib.format as npy

    stream = io.BytesIO(reader.peek(record, LARGEST_ARRAY_HEADER + PREFIX))
    where = f"{reader.source.name}: the array {record.name.removesuffix(ENDING)!r}"
    try:
        version = npy.read_magic(stream)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran_order, dtype = read(stream, max_header_size=LARGEST_ARRAY_HEADER)
    except Exception as error:  # the header is a Python literal, and its parsers have many ways to refuse one
        raise RuntimeError(f"{where} has an invalid header: {error}") from error
    if dtype.hasobject:
        raise ValueError(f"{where}: Object arrays cannot be loaded when allow_pickle=False")
    if dtype.name not in ITEM_SIZES or not hasattr(rushlight, dtype.name):
        raise ValueError(f"{where} has the dtype {dtype}, which tensors do not have")
    length = stream.tell()
    info = TensorInfo(dtype.name, tuple(shape), StorageInfo(record.name, record.size - length))
    if min(shape, default=0) < 0 or info.nbytes != record.size - length:
        raise RuntimeError(
            f"{where} of shape {list(shape)} and dtype {dtype.name} needs {info.nbytes} bytes, but the archive has "
            f"{record.size - length}"
        )
    byteorder = {"<": "little", ">": "big"}.get(dtype.byteorder, sys.byteorder)
    return ArrayHeader(info, fortran_order, byteorder, length, record)
