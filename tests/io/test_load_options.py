"""Loading onto devices, by mapping, and with classes that the caller allows."""

import collections
import io
import mmap
import pickle
import struct

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn


def saved(value, **options):
    stream = io.BytesIO()
    torch.save(value, stream, **options)
    stream.seek(0)
    return stream


def on_cuda(tensor):
    """A checkpoint that says its storage was on a GPU."""
    raw = saved(tensor, _use_new_zipfile_serialization=False).getvalue()
    return io.BytesIO(raw.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0"))


@pytest.mark.parametrize("where", ["cpu", b"cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda storage, tag: storage])
def test_map_location(where):
    assert torch.load(on_cuda(torch.arange(3)), map_location=where).tolist() == [0, 1, 2]


def test_map_location_that_leads_nowhere():
    for where in (None, "cuda", {"cpu": "cuda:0"}, lambda storage, tag: None):
        with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
            torch.load(on_cuda(torch.arange(3)), map_location=where)
    with pytest.raises(RuntimeError, match=r"don't know how to restore data location .* \(tagged with abacus\)"):
        torch.load(saved(torch.arange(3)), map_location="abacus")
    with pytest.raises(TypeError, match="'int' object is not callable"):
        torch.load(saved(torch.arange(3)), map_location=3)


def test_map_location_sees_every_storage_once():
    seen = []

    def where(storage, tag):
        seen.append((storage.nbytes(), tag))
        return storage

    base = torch.arange(4)
    torch.load(saved([base, base[1:], torch.ones(2)]), map_location=where)
    assert seen == [(32, "cpu"), (8, "cpu")]


def test_registered_packages():
    from rushlight.io import location

    before = list(location._packages)
    try:
        torch.serialization.register_package(
            5, lambda storage: "abacus:0", lambda storage, tag: storage if tag.startswith("abacus") else None
        )
        stream = saved(torch.arange(3))
        assert b"abacus:0" in stream.getvalue()
        assert torch.load(stream).tolist() == [0, 1, 2]
        assert torch.serialization.location_tag(torch.ones(1).untyped_storage()) == "abacus:0"
    finally:
        location._packages[:] = before
    stream.seek(0)
    with pytest.raises(RuntimeError, match="tagged with abacus:0"):
        torch.load(stream)


# Mapping.


def test_mapped_tensors_are_the_file(tmp_path):
    path = tmp_path / "m.pt"
    torch.save({"a": torch.arange(1000.0), "b": torch.ones(3, 3).t(), "none": torch.zeros(0)}, path)
    loaded = torch.load(path, mmap=True)
    assert loaded["a"].tolist() == list(map(float, range(1000)))
    assert loaded["b"].stride() == (1, 3)
    assert loaded["none"].shape == (0,)
    assert loaded["a"].data_ptr() % 64 == 0
    path.unlink()
    assert loaded["a"].sum() == 499500.0


def test_writing_to_mapped_tensors_leaves_the_file(tmp_path):
    path = tmp_path / "m.pt"
    torch.save(torch.zeros(5), path)
    before = path.read_bytes()
    torch.load(path, mmap=True).add_(1)
    assert path.read_bytes() == before


def test_writing_to_shared_mappings_changes_the_file(tmp_path):
    path = tmp_path / "m.pt"
    torch.save(torch.zeros(5), path)
    with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        assert torch.serialization.get_default_mmap_options() == mmap.MAP_SHARED
        loaded = torch.load(path, mmap=True)
    assert torch.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    loaded.fill_(7)
    assert struct.pack("=5f", *[7.0] * 5) in path.read_bytes()
    with pytest.raises(ValueError, match=r"expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got 77"):
        torch.serialization.set_default_mmap_options(77)


def test_what_cannot_be_mapped(tmp_path):
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        torch.load(saved([1]), mmap=True)
    torch.save([1], tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        torch.load(tmp_path / "old.pt", mmap=True)
    with pytest.raises(FileNotFoundError, match=r"absent.pt"):
        torch.load(tmp_path / "absent.pt", mmap=True)


# Classes that the caller allows.


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y)

    __hash__ = None


class Slotted:
    __slots__ = ("x",)


class Stateful:
    def __getstate__(self):
        return {"kept": self.value}

    def __setstate__(self, state):
        self.value = state["kept"]


class Names(list):
    pass


class Table(dict):
    pass


Pair = collections.namedtuple("Pair", "first second")


class Labelled(torch.Tensor):
    pass


def test_classes_are_refused_unless_allowed():
    stream = saved(Point(1, torch.ones(2)))
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed") as caught:
        torch.load(stream)
    name = f"{Point.__module__}.Point"
    assert f"Unsupported global: GLOBAL {name} was not an allowed global by default" in str(caught.value)
    assert f"torch.serialization.add_safe_globals([{name}])" in str(caught.value)
    stream.seek(0)
    assert torch.serialization.get_unsafe_globals_in_checkpoint(stream) == [name]
    with torch.serialization.safe_globals([Point]):
        assert torch.serialization.get_safe_globals() == [Point]
        assert torch.serialization.get_unsafe_globals_in_checkpoint(stream) == []
        assert torch.load(stream).y.tolist() == [1.0, 1.0]
    assert torch.serialization.get_safe_globals() == []


def test_allowing_for_good():
    try:
        torch.serialization.add_safe_globals([Point, (Pair, "elsewhere.Pair")])
        assert torch.serialization.get_safe_globals() == [Point, (Pair, "elsewhere.Pair")]
        assert torch.load(saved(Point(1, 2))) == Point(1, 2)
    finally:
        torch.serialization.clear_safe_globals()
    with pytest.raises(pickle.UnpicklingError):
        torch.load(saved(Point(1, 2)))


def test_allowing_what_is_no_class():
    with pytest.raises(TypeError, match="a class or function is needed"):
        torch.serialization.add_safe_globals([3])
    with pytest.raises(ValueError, match="Expected a callable and its name"):
        torch.serialization.add_safe_globals([(Point, 3)])
    assert torch.serialization.get_safe_globals() == []


@pytest.mark.parametrize("protocol", [2, 4])
def test_states_of_allowed_classes(protocol):
    slotted, stateful = Slotted(), Stateful()
    slotted.x, stateful.value = 5, 6
    names, table = Names(["a", "b"]), Table(k=1)
    names.note = "with an attribute"
    value = [slotted, stateful, names, table, Pair(1, 2)]
    with torch.serialization.safe_globals([Slotted, Stateful, Names, Table, Pair]):
        loaded = torch.load(saved(value, pickle_protocol=protocol))
    assert [type(v) for v in loaded] == [Slotted, Stateful, Names, Table, Pair]
    assert (loaded[0].x, loaded[1].value) == (5, 6)
    assert loaded[2] == ["a", "b"]
    assert loaded[2].note == "with an attribute"
    assert loaded[3] == {"k": 1}
    assert loaded[4] == (1, 2)


def test_whole_modules_once_their_classes_are_allowed():
    model = nn.Sequential(nn.Linear(3, 2), nn.Tanh())
    stream = saved(model)
    assert b"rushlight" not in stream.getvalue()  # PyTorch's names, for PyTorch to read
    with pytest.raises(pickle.UnpicklingError, match="save the state_dict"):
        torch.load(stream, weights_only=False)
    stream.seek(0)
    with torch.serialization.safe_globals([nn.Sequential, nn.Linear, nn.Tanh]):
        loaded = torch.load(stream)
    x = torch.ones(4, 3)
    assert torch.equal(loaded(x), model(x))


def test_subclasses_of_tensor():
    tensor = torch.arange(3.0).as_subclass(Labelled)
    tensor.label = "three"
    stream = saved(tensor)
    with pytest.raises(pickle.UnpicklingError, match="Labelled"):
        torch.load(stream)
    stream.seek(0)
    with torch.serialization.safe_globals([Labelled]):
        loaded = torch.load(stream)
    assert type(loaded) is Labelled
    assert loaded.label == "three"
    assert loaded.tolist() == [0.0, 1.0, 2.0]


def test_numbers_of_numpy():
    scalar = type(np.float64(1).__reduce__()[0])
    assert scalar is not None
    function = np.float64(1).__reduce__()[0]
    stream = saved({"loss": np.float64(2.5)})
    with pytest.raises(pickle.UnpicklingError, match=r"multiarray.scalar"):
        torch.load(stream)
    stream.seek(0)
    with torch.serialization.safe_globals([function, np.dtype, np.dtypes.Float64DType]):
        assert torch.load(stream) == {"loss": 2.5}


def test_errors_of_allowed_classes_are_their_own():
    class Error(Exception):
        pass

    def fail():
        raise Error("mine")

    pickled = b"\x80\x02cmine\nfail\n)R."
    import zipfile

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
    out.seek(0)
    with torch.serialization.safe_globals([(fail, "mine.fail")]), pytest.raises(Error, match="mine"):
        torch.load(out)
