"""What is saved comes back: values, dtypes, strides, shared memory, containers; in every format and protocol."""

import collections
import copy
import io
import pickle
import struct
import sys
import warnings
import zipfile

import pytest

import rushlight as torch
from rushlight import nn

FORMATS = [pytest.param(True, id="zip"), pytest.param(False, id="legacy")]
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]


def saved(value, **options):
    stream = io.BytesIO()
    torch.save(value, stream, **options)
    stream.seek(0)
    return stream


def round_trip(value, load=None, **options):
    return torch.load(saved(value, **options), **(load or {}))


def storage_of(tensor):
    return tensor.untyped_storage().data_ptr()


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride() and a.tolist() == b.tolist()


@pytest.mark.parametrize("zipped", FORMATS)
@pytest.mark.parametrize("name", DTYPES + COMPLEX)
def test_dtypes(name, zipped):
    dtype = getattr(torch, name)
    tensor = torch.tensor([[0, 1, 2], [3, 0, 1]]).to(dtype)
    assert same(round_trip(tensor, _use_new_zipfile_serialization=zipped), tensor)


@pytest.mark.parametrize("zipped", FORMATS)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 4)])
def test_shapes(shape, zipped):
    tensor = torch.arange(24)[: torch.ones(shape).numel()].reshape(shape)
    assert same(round_trip(tensor, _use_new_zipfile_serialization=zipped), tensor)


@pytest.mark.parametrize("zipped", FORMATS)
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t(),
        lambda x: x[1],
        lambda x: x[:, 1:3],
        lambda x: x[::2, ::3],
        lambda x: x[1, 2],
        lambda x: x[:1].expand(5, 4),
        lambda x: x.reshape(2, 3, 2).permute(2, 0, 1),
        lambda x: x[1:1],
    ],
    ids=["transposed", "row", "columns", "steps", "number", "expanded", "permuted", "empty"],
)
def test_views_keep_their_strides(view, zipped):
    tensor = view(torch.arange(12.0).reshape(3, 4))
    loaded = round_trip(tensor, _use_new_zipfile_serialization=zipped)
    assert same(loaded, tensor)
    assert loaded.storage_offset() == tensor.storage_offset()


@pytest.mark.parametrize("zipped", FORMATS)
def test_shared_memory_is_shared_again(zipped):
    base = torch.arange(10.0)
    state = {"whole": base, "part": base[2:5], "again": base, "other": torch.arange(10.0)}
    loaded = round_trip(state, _use_new_zipfile_serialization=zipped)
    assert loaded["again"] is loaded["whole"]
    assert storage_of(loaded["part"]) == storage_of(loaded["whole"]) != storage_of(loaded["other"])
    loaded["whole"][3] = 100.0
    assert loaded["part"].tolist() == [2.0, 100.0, 4.0]
    assert base[3] == 3.0


def test_shared_memory_is_stored_once():
    base = torch.arange(1000.0)
    single = len(saved([base]).getvalue())
    assert len(saved([base, base[1:], base[::2]]).getvalue()) < single + 1000


def test_a_view_of_other_dtype_is_refused():
    base = torch.ones(4)
    with pytest.raises(RuntimeError, match="Cannot save multiple tensors or storages that view the same data as diff"):
        saved([base, base.view(torch.int32)])


@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("zipped", FORMATS)
def test_containers_and_plain_values(protocol, zipped):
    value = {
        "none": None,
        "truth": [True, False],
        "integers": [0, -1, 255, 256, 65536, -(2**31), 2**31, 2**63, -(2**100), 7**500],
        "floats": [0.0, -0.0, 1.5, float("inf"), 1e-310],
        "strings": ["", "x" * 300, "\u00e9\u4e2d\U0001f600", "line\nbreak", "\ud800", "'\"\\"],
        "bytes": [b"", b"\x00\xff" * 200, bytearray(b"abc")],
        "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ((), ((),))],
        "sets": [set(), {1, 2}, frozenset({"a"})],
        "complex": 1 - 2j,
        "ordered": collections.OrderedDict([("b", 1), ("a", 2)]),
        "counter": collections.Counter("hello"),
        "keys": {1: "a", (2, "b"): "c", None: "d", 2.5: "e", frozenset({3}): "f"},
        "size": torch.Size([2, 3]),
        "dtype": [torch.float16, torch.int64, torch.bool],
        "device": torch.device("cpu"),
        "layout": torch.strided,
        "nested": [[[[[]]]]],
    }
    loaded = round_trip(value, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
    assert loaded == value
    assert [type(v) for v in loaded.values()] == [type(v) for v in value.values()]
    assert type(loaded["bytes"][2]) is bytearray
    assert str(loaded["floats"]) == str(value["floats"])
    assert type(loaded["sets"][2]) is frozenset
    assert loaded["dtype"][0] is torch.float16


def test_not_a_number_and_cycles():
    cycle = [float("nan")]
    cycle.append(cycle)
    loaded = round_trip({"cycle": cycle, "again": cycle})
    assert loaded["cycle"][0] != loaded["cycle"][0]
    assert loaded["cycle"][1] is loaded["cycle"] is loaded["again"]


def test_a_hundred_levels():
    value = current = []
    for _ in range(100):
        current.append([])
        current = current[0]
    assert round_trip(value) == value


def test_attributes_of_a_state_dict_come_along():
    state = collections.OrderedDict(weight=torch.ones(2))
    state._metadata = {"": {"version": 1}}
    assert round_trip(state)._metadata == {"": {"version": 1}}


@pytest.mark.parametrize("zipped", FORMATS)
def test_parameters_and_leaves(zipped):
    value = {
        "parameter": nn.Parameter(torch.ones(3)),
        "frozen": nn.Parameter(torch.ones(3), requires_grad=False),
        "leaf": torch.ones(2, requires_grad=True),
        "plain": torch.ones(2),
        "computed": torch.ones(2, requires_grad=True) * 2,
    }
    loaded = round_trip(value, _use_new_zipfile_serialization=zipped)
    assert [type(v) for v in loaded.values()] == [nn.Parameter, nn.Parameter] + [torch.Tensor] * 3
    assert [v.requires_grad for v in loaded.values()] == [True, False, True, False, True]
    assert loaded["computed"].is_leaf
    assert loaded["parameter"].tolist() == [1.0] * 3


def test_attributes_of_tensors():
    tensor, parameter = torch.ones(2), nn.Parameter(torch.ones(2))
    tensor.note, parameter.note = "a tensor", {"of": torch.zeros(1)}
    loaded = round_trip([tensor, parameter, nn.Buffer(torch.ones(2), persistent=False)])
    assert loaded[0].note == "a tensor"
    assert type(loaded[1]) is nn.Parameter
    assert loaded[1].note["of"].tolist() == [0.0]
    assert isinstance(loaded[2], nn.Buffer)
    assert loaded[2].persistent is False


def test_hooks_are_not_saved_and_say_so():
    tensor = torch.ones(2, requires_grad=True)
    tensor.register_hook(lambda grad: grad)
    with pytest.warns(UserWarning, match="will not be serialized"):
        stream = saved(tensor)
    assert torch.load(stream).tolist() == [1.0, 1.0]


def test_a_model_and_its_optimizer():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()
    loaded = round_trip({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3})
    fresh = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    fresh.load_state_dict(loaded["model"])
    other = torch.optim.Adam(fresh.parameters())
    other.load_state_dict(loaded["optimizer"])
    for network, stepper in ((model, optimizer), (fresh, other)):
        stepper.zero_grad()
        network(torch.ones(3, 4)).sum().backward()
        stepper.step()
    assert all(same(a, b) for a, b in zip(model.state_dict().values(), fresh.state_dict().values(), strict=True))


def test_storages():
    storage = torch.arange(3.0).untyped_storage()
    loaded = round_trip([storage, storage])
    assert loaded[0] is loaded[1]
    assert bytes(memoryview(loaded[0])) == struct.pack("=3f", 0, 1, 2)


# The archive itself.


def test_layout_of_the_archive(tmp_path):
    path = tmp_path / "model.v2.pt"
    torch.save({"a": torch.arange(100.0), "b": torch.zeros(0), "c": torch.ones(3, dtype=torch.int8)}, path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert {name.partition("/")[0] for name in names} == {"model.v2"}
        assert all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())
        assert archive.read("model.v2/byteorder").decode() == sys.byteorder
        assert archive.read("model.v2/version") == b"3\n"
        assert archive.read("model.v2/data/0") == struct.pack("=100f", *range(100))
        assert len(archive.read("model.v2/.data/serialization_id")) == 40
        assert names[0] == "model.v2/data.pkl"
        raw = path.read_bytes()
        for info in archive.infolist():
            name_length, extra_length = struct.unpack_from("<HH", raw, info.header_offset + 26)
            assert (info.header_offset + 30 + name_length + extra_length) % 64 == 0


def test_equal_contents_are_equal_bytes():
    state = {"a": torch.arange(10), "b": [1, "x"]}
    assert saved(state).getvalue() == saved(copy.deepcopy(state)).getvalue()
    assert saved(state).getvalue() != saved({**state, "b": [2, "x"]}).getvalue()


@pytest.mark.parametrize(
    ("name", "folder"),
    [("m.pt", "m"), ("m", "m"), (".pt", ".pt"), ("...pt", "archive"), ("\u00fc.pt", "archive"), ("a..b.pt", "a..b")],
)
def test_name_of_the_folder(tmp_path, name, folder):
    torch.save([1], tmp_path / name)
    assert zipfile.ZipFile(tmp_path / name).namelist()[0] == f"{folder}/data.pkl"
    assert torch.load(tmp_path / name) == [1]


def test_without_checksums_and_byteorder():
    try:
        torch.serialization.set_crc32_options(False)
        assert torch.serialization.get_crc32_options() is False
        stream = saved(torch.arange(4), _disable_byteorder_record=True)
    finally:
        torch.serialization.set_crc32_options(True)
    with zipfile.ZipFile(io.BytesIO(stream.getvalue())) as archive:
        assert {info.CRC for info in archive.infolist()} == {0}
        assert "archive/byteorder" not in archive.namelist()
    assert torch.load(stream).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", ["int16", "float32", "float64", "complex64", "bool"])
def test_the_other_byte_order(dtype):
    """A file of a machine of the other byte order, made by turning every number around."""
    tensor = torch.tensor([1, 2, 3]).to(getattr(torch, dtype))
    width = tensor.element_size() // (2 if dtype.startswith("complex") else 1)
    other = "big" if sys.byteorder == "little" else "little"
    out = io.BytesIO()
    with zipfile.ZipFile(saved(tensor)) as archive, zipfile.ZipFile(out, "w") as turned:
        for name in archive.namelist():
            data = archive.read(name)
            if name == "archive/data/0":
                data = b"".join(data[i : i + width][::-1] for i in range(0, len(data), width))
            turned.writestr(name, other.encode() if name == "archive/byteorder" else data)
    out.seek(0)
    assert same(torch.load(out), tensor)


def test_default_byte_order_of_files_without_one():
    stream = saved(torch.tensor([1], dtype=torch.int16), _disable_byteorder_record=True)
    endianness = torch.serialization.LoadEndianness
    try:
        torch.serialization.set_default_load_endianness(
            endianness.BIG if sys.byteorder == "little" else endianness.LITTLE
        )
        assert torch.load(stream).tolist() == [256]
        torch.serialization.set_default_load_endianness(endianness.NATIVE)
        stream.seek(0)
        assert torch.load(stream).tolist() == [1]
    finally:
        torch.serialization.set_default_load_endianness(None)
    assert torch.serialization.get_default_load_endianness() is None
    with pytest.raises(TypeError, match="Invalid argument type"):
        torch.serialization.set_default_load_endianness("big")


@pytest.mark.parametrize("size", [10, 1 << 22])
def test_compressed_again_by_another_tool(size):
    """Archives that were unpacked and packed again, with compression, are still read."""
    tensor = torch.arange(size, dtype=torch.int32)
    out = io.BytesIO()
    with zipfile.ZipFile(saved(tensor)) as archive, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in archive.namelist():
            packed.writestr(name, archive.read(name))
    out.seek(0)
    assert torch.equal(torch.load(out), tensor)


def test_archives_beyond_32_bits(monkeypatch):
    """With the limit of 32 bits drawn at a few hundred bytes, the fields for larger archives are written and read."""
    from rushlight.io import zip_format

    value = {"a": torch.arange(300.0), "b": torch.arange(3)}
    plain = saved(value).getvalue()
    monkeypatch.setattr(zip_format, "LIMIT32", 600)
    monkeypatch.setattr(zip_format, "LIMIT16", 5)
    wide = saved(value).getvalue()
    assert zip_format.END64_SIGNATURE in wide
    assert zip_format.END64_SIGNATURE not in plain
    loaded = torch.load(io.BytesIO(wide))
    assert loaded["a"].tolist() == value["a"].tolist()
    assert loaded["b"].tolist() == [0, 1, 2]


# Streams.


class OnlyWrite:
    def __init__(self):
        self.parts = []

    def write(self, data):
        self.parts.append(bytes(data))


class OnlyReadAndSeek:
    def __init__(self, data):
        self._stream = io.BytesIO(data)
        self.read, self.seek, self.tell = self._stream.read, self._stream.seek, self._stream.tell
        self.readline = self._stream.readline


@pytest.mark.parametrize("zipped", FORMATS)
def test_streams_need_no_more_than_write_and_read(zipped):
    value = {"a": torch.arange(50), "b": torch.ones(2, 2)}
    out = OnlyWrite()
    torch.save(value, out, _use_new_zipfile_serialization=zipped)
    loaded = torch.load(OnlyReadAndSeek(b"".join(out.parts)))
    assert same(loaded["a"], value["a"])
    assert same(loaded["b"], value["b"])


@pytest.mark.parametrize("zipped", FORMATS)
def test_streams_that_begin_in_the_middle(zipped):
    stream = io.BytesIO()
    stream.write(b"something else")
    torch.save([torch.arange(3)], stream, _use_new_zipfile_serialization=zipped)
    stream.seek(len(b"something else"))
    assert torch.load(stream)[0].tolist() == [0, 1, 2]


def test_legacy_files_one_after_the_other():
    stream = io.BytesIO()
    for i in range(3):
        torch.save(torch.full((2,), i), stream, _use_new_zipfile_serialization=False)
    stream.seek(0)
    assert [torch.load(stream).tolist() for _ in range(3)] == [[0, 0], [1, 1], [2, 2]]
    assert stream.read() == b""


def test_large_pickles_in_legacy_files():
    """The pickle is longer than what the reader looks at first."""
    value = [[str(i) * 10 for i in range(20_000)], torch.arange(3)]
    loaded = round_trip(value, _use_new_zipfile_serialization=False)
    assert loaded[0] == value[0]
    assert loaded[1].tolist() == [0, 1, 2]


# Refusals of arguments.


def test_save_refuses_what_cannot_be_written_to():
    for target in (3, None, object()):
        with pytest.raises(
            AttributeError, match="expected 'f' to be string, path, or a file-like object with a 'write'"
        ):
            torch.save([1], target)


def test_save_refuses_other_picklers_and_protocols():
    with pytest.raises(ValueError, match="pickle protocol must be <= 5"):
        saved([1], pickle_protocol=6)
    with pytest.raises(ValueError, match="protocol 0"):
        saved([1], pickle_protocol=0)
    with pytest.raises(NotImplementedError, match="pickle_module=json"):
        saved([1], pickle_module=__import__("json"))


def test_save_raises_what_pickling_raises():
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        saved(lambda: 1)


def test_load_refuses_what_cannot_be_read():
    with pytest.raises(AttributeError, match=r"You can only torch.load from a file that is seekable"):
        torch.load(3)

    class Pipe(io.RawIOBase):
        def readable(self):
            return True

    with pytest.raises(io.UnsupportedOperation, match=r"You can only torch.load from a file that is seekable"):
        torch.load(Pipe())


def test_load_refuses_other_picklers_and_arguments():
    stream = saved([1])
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module is specified"):
        torch.load(stream, pickle_module=pickle, weights_only=True)
    with pytest.raises(RuntimeError, match="pickle_module=json would execute"):
        torch.load(stream, pickle_module=__import__("json"))
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        torch.load(stream, foo=1)
    assert torch.load(stream, pickle_module=pickle, weights_only=False) == [1]


def test_strings_of_python_2():
    """Strings in pickles of Python 2 are bytes, which ``encoding`` says how to read."""
    pickled = b"\x80\x02]q\x00U\x03ab\xe9q\x01a."
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
    for encoding, expected in (("latin1", ["ab\xe9"]), ("bytes", [b"ab\xe9"])):
        out.seek(0)
        assert torch.load(out, encoding=encoding) == expected
    out.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="pass encoding='latin1'"):
        torch.load(out)
    with pytest.raises(TypeError, match="encoding must be a string"):
        torch.load(out, encoding=3)


def test_loading_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert round_trip({"a": torch.ones(2)}, pickle_protocol=5)["a"].tolist() == [1.0, 1.0]
