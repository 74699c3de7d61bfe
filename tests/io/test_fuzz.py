"""Mutated files load, or are refused with one of the documented errors: nothing else happens, and nothing is slow."""

import collections
import io
import os
import pickle
import random
import struct
import zipfile

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.io import describe, npz, safetensors

MUTATIONS = int(os.environ.get("RUSHLIGHT_FUZZ", 1000))  # of each kind of file
DOCUMENTED = (RuntimeError, pickle.UnpicklingError, EOFError)
LARGEST_READ = 1 << 20  # numbers; a tensor may be expanded to any size without any memory

EXTREMES = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 62, (1 << 64) - 1]


def state():
    base = torch.arange(12.0)
    ordered = collections.OrderedDict(weight=base.reshape(3, 4).t(), part=base[2:5], half=torch.ones(3).half())
    ordered._metadata = {"": {"version": 1}}
    return {
        "model": ordered,
        "parameter": nn.Parameter(torch.ones(2, 2)),
        "step": 5,
        "others": [
            b"bytes",
            2.5,
            "text",
            (1, None, True),
            {1, 2},
            torch.Size([2]),
            torch.int64,
            torch.device("cpu"),
            1j,
        ],
    }


def tensors():
    return {"a": torch.arange(6.0).reshape(2, 3), "b": torch.arange(4), "c": torch.ones(1, dtype=torch.bool)}


def checkpoint(**options):
    stream = io.BytesIO()
    torch.save(state(), stream, **options)
    return stream.getvalue()


def packed(data, method=zipfile.ZIP_DEFLATED, change=None):
    """The archive again: compressed, or with its pickle changed, all checksums right."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(out, "w", method) as other:
        for name in archive.namelist():
            contents = archive.read(name)
            other.writestr(name, change(contents) if change and name.endswith("data.pkl") else contents)
    return out.getvalue()


def compressed_arrays():
    out = io.BytesIO()
    np.savez_compressed(
        out, a=np.arange(6.0).reshape(2, 3), b=np.asfortranarray(np.arange(8, dtype=">i2").reshape(2, 4))
    )
    return out.getvalue()


def mutated(data, rng):
    """``data`` with one to four changes of the kinds that accidents and attackers make."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(8)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1 and data:
            data[at % len(data)] = rng.randrange(256)
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at : at + rng.randrange(1, 20)]
        elif kind == 4:
            data[at:at] = rng.randbytes(rng.randrange(1, 20))
        elif kind == 5:
            begin = rng.randrange(len(data) + 1)
            data[at:at] = data[begin : begin + rng.randrange(1, 60)]
        else:
            width = rng.choice((1, 2, 4, 8))
            value = rng.choice(EXTREMES) & ((1 << 8 * width) - 1)
            data[at : at + width] = value.to_bytes(width, "little")
    return bytes(data)


def read_all(value):
    """Look at every number and attribute that a loaded value has."""
    pending, seen = [value], set()
    while pending:
        item = pending.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, torch.Tensor):
            if item.numel() <= LARGEST_READ:
                item.detach().clone().tolist()
        elif isinstance(item, dict):
            pending += [*item.keys(), *item.values()]
        elif isinstance(item, (list, tuple, set, frozenset)):
            pending += item


def load_stream(data):
    return torch.load(io.BytesIO(data))


def load_mapped(path):
    read_all(torch.load(path, mmap=path.read_bytes().startswith(b"PK\x03\x04")))


KINDS = {
    "zip": (checkpoint, mutated, load_stream),
    "zip_protocol_4": (lambda: checkpoint(pickle_protocol=4), mutated, load_stream),
    "zip_compressed": (lambda: packed(checkpoint()), mutated, load_stream),
    "pickle": (
        checkpoint,
        lambda data, rng: packed(data, zipfile.ZIP_STORED, lambda pickled: mutated(pickled, rng)),
        load_stream,
    ),
    "pickle_protocol_5": (
        lambda: checkpoint(pickle_protocol=5),
        lambda data, rng: packed(data, zipfile.ZIP_STORED, lambda pickled: mutated(pickled, rng)),
        load_stream,
    ),
    "legacy": (lambda: checkpoint(_use_new_zipfile_serialization=False), mutated, load_stream),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_checkpoints(kind, tmp_path):
    make, mutate, load = KINDS[kind]
    original, path = make(), tmp_path / "m.pt"
    read_all(load(original))
    outcomes = collections.Counter()
    for seed in range(MUTATIONS):
        data = mutate(original, random.Random(f"{kind} {seed}"))
        try:
            read_all(load(data))
            outcomes["loaded"] += 1
        except DOCUMENTED as error:
            outcomes[type(error).__name__] += 1
            assert "BytesIO" in str(error)
        if seed % 5 == 0:
            path.write_bytes(data)
            for use in (describe, load_mapped):
                try:
                    use(path)
                except DOCUMENTED as error:
                    assert str(path) in str(error)
    assert outcomes["loaded"] < MUTATIONS / 2
    assert outcomes["RuntimeError"] + outcomes["UnpicklingError"] > MUTATIONS / 10


@pytest.mark.filterwarnings("ignore")
def test_safetensors():
    package = pytest.importorskip("safetensors", reason="the package that reads the format")
    original, outcomes = safetensors.save(tensors()), collections.Counter()
    for seed in range(MUTATIONS):
        try:
            read_all(safetensors.load(mutated(original, random.Random(seed))))
            outcomes["loaded"] += 1
        except (package.SafetensorError, *DOCUMENTED) as error:
            outcomes[type(error).__name__] += 1
    assert 0 < outcomes["loaded"] < MUTATIONS / 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["stored", "compressed"])
def test_npz(kind, tmp_path):
    path, outcomes = tmp_path / "m.npz", collections.Counter()
    npz.save_file(tensors(), path)
    original = path.read_bytes() if kind == "stored" else compressed_arrays()
    for seed in range(MUTATIONS // 2):
        path.write_bytes(mutated(original, random.Random(seed)))
        try:
            read_all(npz.load_file(path))
            outcomes["loaded"] += 1
        except (*DOCUMENTED, ValueError) as error:
            outcomes[type(error).__name__] += 1
            assert str(path) in str(error)
    assert 0 < outcomes["loaded"] < MUTATIONS / 2


def test_headers_of_zip_fields():
    """Every 16- and 32-bit field of the directory and of the end record, set to every extreme."""
    original = checkpoint()
    end = original.rindex(b"PK\x05\x06")
    begin = struct.unpack_from("<I", original, end + 16)[0]
    refused = 0
    for at in range(begin, len(original) - 3, 5):
        for value in (0, 0xFFFFFFFF, 0x7FFFFFFF):
            data = original[:at] + struct.pack("<I", value) + original[at + 4 :]
            try:
                read_all(load_stream(data))
            except DOCUMENTED as error:
                refused += 1
                assert "BytesIO" in str(error)
    assert refused > 100
