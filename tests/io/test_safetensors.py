"""safetensors files, through their package."""

import pytest

import rushlight as torch
from rushlight.io import safetensors

package = pytest.importorskip("safetensors", reason="the package that reads and writes the format")

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]


def state():
    tensors = {name: torch.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(torch, name)) for name in DTYPES}
    return {**tensors, "number": torch.tensor(3.5), "empty": torch.zeros(0, 3), "one": torch.ones(1)}


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()


def test_files(tmp_path):
    path, tensors = tmp_path / "m.safetensors", state()
    safetensors.save_file(tensors, path, {"made": "by a test"})
    loaded = safetensors.load_file(path)
    assert loaded.keys() == tensors.keys()
    assert all(same(loaded[name], tensors[name]) for name in tensors)
    with package.safe_open(path, framework="np") as opened:
        assert opened.metadata() == {"made": "by a test"}
        assert opened.get_tensor("int16").tolist() == [[0, 1, 2], [3, 4, 5]]


def test_bytes():
    tensors = state()
    loaded = safetensors.load(safetensors.save(tensors))
    assert all(same(loaded[name], tensors[name]) for name in tensors)
    with pytest.raises(package.SafetensorError):
        safetensors.load(b"123")


def test_files_of_the_package_for_numpy(tmp_path):
    import numpy as np
    from safetensors.numpy import save_file

    save_file({"a": np.arange(6.0).reshape(2, 3)}, tmp_path / "m.safetensors")
    assert safetensors.load_file(tmp_path / "m.safetensors")["a"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_loaded_tensors_own_their_memory(tmp_path):
    path = tmp_path / "m.safetensors"
    safetensors.save_file({"a": torch.zeros(3)}, path)
    before = path.read_bytes()
    safetensors.load_file(path)["a"].add_(1)
    assert path.read_bytes() == before


def test_refusals(tmp_path):
    path, base = tmp_path / "m.safetensors", torch.arange(6.0)
    with pytest.raises(ValueError, match="non contiguous tensor: `t`"):
        safetensors.save_file({"t": base.reshape(2, 3).t()}, path)
    with pytest.raises(RuntimeError, match=r"Some tensors share memory.*\['a', 'b'\]"):
        safetensors.save_file({"a": base, "b": base[:2]}, path)
    with pytest.raises(ValueError, match=r"Key `a` is invalid, expected torch.Tensor but received <class 'int'>"):
        safetensors.save_file({"a": 3}, path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        safetensors.load_file(path)


def test_an_error_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.safetensors"
    safetensors.save_file({"a": torch.zeros(3)}, path)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        safetensors.save_file({"a": torch.ones(3)}, path, {"metadata": 3})
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.safetensors"]
    path.chmod(0o600)
    safetensors.save_file({"a": torch.ones(3)}, path)
    assert path.stat().st_mode & 0o777 == 0o600
