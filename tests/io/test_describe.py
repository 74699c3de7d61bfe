"""The listing of a file's tensors, which loads none of them."""

import zipfile

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.io import describe, npz, safetensors


def test_checkpoint(tmp_path):
    path = tmp_path / "m.pt"
    weight = torch.zeros(300, 2)
    torch.save({"model": {"weight": weight, "first": weight[0]}, "steps": [torch.tensor(3)], "epoch": 5}, path)
    lines = describe(path)
    assert lines[0].startswith(f"{path}: PyTorch zip checkpoint of ")
    assert lines[0].endswith("3 tensors, 603 numbers, 2.4 kB in 2 storages")
    assert [line.split() for line in lines[1:]] == [
        ["model.weight", "float32", "[300,", "2]", "2.4", "kB"],
        ["model.first", "float32", "[2]", "8", "B", "in", "the", "storage", "of", "model.weight"],
        ["steps.0", "int64", "[]", "8", "B"],
    ]


def test_a_single_tensor_and_none(tmp_path):
    path = tmp_path / "m.pt"
    torch.save(torch.ones(2, dtype=torch.bool), path)
    assert describe(path)[1].split() == ["(the", "object)", "bool", "[2]", "2", "B"]
    torch.save({"epoch": 1}, path)
    assert describe(path)[0].endswith("0 tensors, 0 numbers, 0 B in 0 storages")
    assert len(describe(path)) == 1


def test_legacy(tmp_path):
    path = tmp_path / "m.pt"
    torch.save([torch.ones(2, 2), torch.ones(1)], path, _use_new_zipfile_serialization=False)
    lines = describe(path)
    assert "PyTorch legacy checkpoint" in lines[0]
    assert [line.split()[:2] for line in lines[1:]] == [["0", "float32"], ["1", "float32"]]


def test_objects_of_unknown_classes(tmp_path):
    path = tmp_path / "m.pt"
    torch.save(nn.Linear(3, 2), path)
    lines = describe(path)
    assert [line.split()[0] for line in lines[1:3]] == ["_parameters.weight", "_parameters.bias"]
    assert lines[3] == "mentions classes that load() refuses unless allowed: torch.nn.modules.linear.Linear"


def test_no_numbers_are_read(tmp_path):
    """With every number of the file overwritten, the listing is the same."""
    path = tmp_path / "m.pt"
    torch.save({"a": torch.arange(1000.0)}, path)
    before, raw = describe(path), bytearray(path.read_bytes())
    at = raw.index(np.arange(1000, dtype=np.float32).tobytes())
    raw[at : at + 4000] = b"\xff" * 4000
    path.write_bytes(raw)
    assert describe(path) == before
    with pytest.raises(RuntimeError, match="checksum"):
        torch.load(path)


def test_safetensors(tmp_path):
    pytest.importorskip("safetensors", reason="the package that writes the format")
    path = tmp_path / "m.safetensors"
    safetensors.save_file({"a": torch.zeros(2, 3), "b": torch.zeros(4, dtype=torch.bfloat16)}, path)
    lines = describe(path)
    assert "safetensors file" in lines[0]
    assert {tuple(line.split()[:2]) for line in lines[1:]} == {("a", "float32"), ("b", "bfloat16")}


def test_npz(tmp_path):
    path = tmp_path / "m.npz"
    npz.save_file({"a": torch.zeros(2, 3)}, path)
    assert "NumPy archive" in describe(path)[0]
    assert describe(path)[1].split() == ["a", "float32", "[2,", "3]", "24", "B"]


def test_dtypes_that_are_not_here(tmp_path):
    """A file may hold dtypes that cannot be loaded; they are listed all the same."""
    pickled = (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v3\n((X\x07\x00\x00\x00storagectorch.storage\nUntypedStorage\n"
        b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQK\x00K\x04\x85K\x01\x85\x89N"
        b"ctorch\nfloat8_e4m3fnuz\ntR."
    )
    path = tmp_path / "m.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/data.pkl", pickled)
        archive.writestr("m/data/0", b"1234")
    assert describe(path)[1].split() == ["(the", "object)", "float8_e4m3fnuz", "[4]", "4", "B"]


def test_other_files(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a checkpoint")
    with pytest.raises(Exception, match="not a checkpoint") as caught:
        describe(path)
    assert str(path) in str(caught.value)
    with pytest.raises(FileNotFoundError):
        describe(tmp_path / "absent")
