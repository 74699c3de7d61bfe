"""State dicts as NumPy archives."""

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.io import npz

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def test_there_and_back(tmp_path):
    path = tmp_path / "m.npz"
    tensors = {name: torch.tensor([[0, 1], [2, 3]]).to(getattr(torch, name)) for name in DTYPES}
    tensors |= {"number": torch.tensor(2.5), "empty": torch.zeros(2, 0), "turned": torch.arange(6).reshape(2, 3).t()}
    tensors["a.dotted/name"] = torch.ones(1)
    npz.save_file(tensors, path)
    loaded = npz.load_file(path)
    assert loaded.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype
        assert loaded[name].tolist() == tensor.tolist()
    with np.load(path) as archive:
        assert archive["turned"].tolist() == tensors["turned"].tolist()
        assert archive["float16"].dtype == np.float16


def test_a_state_dict(tmp_path):
    model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    npz.save_file(model.state_dict(), tmp_path / "m.npz")
    other.load_state_dict(npz.load_file(tmp_path / "m.npz"))
    assert torch.equal(model.weight, other.weight)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives_of_numpy(tmp_path, save):
    arrays = {
        "fortran": np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)),
        "big_endian": np.arange(5, dtype=">i4"),
        "big_endian_complex": np.array([1 + 2j, 3 - 4j], dtype=">c8"),
        "steps": np.arange(10)[::2],
        "scalar": np.float32(1.5),
        "large": np.random.default_rng(0).random(200_000),
    }
    save(tmp_path / "m.npz", **arrays)
    loaded = npz.load_file(tmp_path / "m.npz")
    for name, array in arrays.items():
        assert loaded[name].tolist() == array.tolist()
        assert tuple(loaded[name].shape) == array.shape


def test_refusals(tmp_path):
    path = tmp_path / "m.npz"
    with pytest.raises(TypeError, match="'state' is a dict, expected a tensor"):
        npz.save_file({"state": {}}, path)
    with pytest.raises(TypeError, match="'b' is bfloat16, which NumPy does not have"):
        npz.save_file({"a": torch.ones(1), "b": torch.ones(1, dtype=torch.bfloat16)}, path)
    assert list(tmp_path.iterdir()) == []
    np.savez(path, words=np.array(["a", "b"]))
    with pytest.raises(ValueError, match="the array 'words' has the dtype <U1, which tensors do not have"):
        npz.load_file(path)
