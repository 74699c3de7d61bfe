"""Files that PyTorch writes are read here, and files written here are read by PyTorch: every format and protocol."""

import collections
import inspect
import io
import pickle
import zipfile

import numpy as np
import pytest

import rushlight
import rushlight.io.safetensors

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
DTYPES += ["complex64", "complex128"]
FORMATS = [pytest.param(zipped, id="zip" if zipped else "legacy") for zipped in (True, False)]
BOTH = [pytest.param((torch, rushlight), id="theirs"), pytest.param((rushlight, torch), id="ours")]


def through(ways, value, load=None, **options):
    """``value`` saved by one library and loaded by the other."""
    writer, reader = ways
    stream = io.BytesIO()
    writer.save(value, stream, **options)
    stream.seek(0)
    return reader.load(stream, **{"weights_only": reader is rushlight, **(load or {})})


def array(tensor):
    tensor = tensor.detach().resolve_conj() if hasattr(tensor, "resolve_conj") else tensor.detach()
    return (tensor.float() if str(tensor.dtype).endswith("bfloat16") else tensor).numpy()


def same(a, b):
    return (
        str(a.dtype) == str(b.dtype)
        and tuple(a.shape) == tuple(b.shape)
        and tuple(a.stride()) == tuple(b.stride())
        and a.storage_offset() == b.storage_offset()
        and a.requires_grad == b.requires_grad
        and np.array_equal(array(a), array(b), equal_nan=a.dtype.is_floating_point)
    )


def values(library, dtypes=DTYPES):
    """One object with everything that a checkpoint may hold, made by a library."""
    base = library.arange(24.0).reshape(2, 3, 4)
    state = collections.OrderedDict(
        (name, library.tensor([[0, 1], [2, 3]]).to(getattr(library, name))) for name in dtypes
    )
    state._metadata = collections.OrderedDict({"": {"version": 1}})
    parameter, tensor = library.nn.Parameter(library.ones(3)), library.ones(2)
    parameter.note, tensor.note = "p", ["t", library.zeros(1)]
    return {
        "state": state,
        "views": [base, base[1], base[:, 1:], base.permute(2, 0, 1), base[0, 0, 0], base[:1].expand(5, 3, 4)],
        "special": library.tensor([float("nan"), float("inf"), -0.0]),
        "empty": [library.zeros(0), library.zeros(2, 0, 3)],
        "number": library.tensor(7),
        "parameters": [parameter, library.nn.Parameter(library.ones(1), requires_grad=False)],
        "leaf": library.ones(2, requires_grad=True),
        "noted": tensor,
        "buffer": library.nn.Buffer(library.ones(2), persistent=False),
        "size": library.Size([2, 3]),
        "device": library.device("cpu"),
        "dtypes": [library.float32, library.int8],
        "layout": library.strided,
        "plain": [None, True, 1, -(2**80), 2.5, "text \u00e9", b"bytes", bytearray(b"x"), 1 - 2j, {1, 2}],
        "tuples": ((), (1,), (1, (2, [3]))),
        "counter": collections.Counter("abca"),
    }


def check(a, b):
    """``a`` of one library is ``b`` of the other."""
    if hasattr(a, "untyped_storage"):
        assert same(a, b), (a, b)
        assert type(a).__name__ == type(b).__name__
        assert a.__dict__.keys() == b.__dict__.keys()
        for name in a.__dict__:
            check(a.__dict__[name], b.__dict__[name])
    elif isinstance(a, dict):
        assert type(a) is type(b)
        assert list(a) == list(b)
        for key in a:
            check(a[key], b[key])
    elif isinstance(a, (list, tuple)) and type(a).__name__ != "Size":
        assert type(a) is type(b)
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            check(x, y)
    elif type(a).__module__.partition(".")[0] in ("torch", "rushlight", "builtins") and type(a).__name__ != "type":
        assert str(a) == str(b)
        assert type(a).__name__ == type(b).__name__
    else:
        assert a == b


@pytest.mark.parametrize("ways", BOTH)
@pytest.mark.parametrize("zipped", FORMATS)
@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5])
def test_everything(ways, zipped, protocol):
    value = values(ways[0])
    loaded = through(ways, value, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
    check(value, loaded)
    assert loaded["state"]._metadata == value["state"]._metadata
    storages = {view.untyped_storage().data_ptr() for view in loaded["views"]}
    assert len(storages) == 1
    assert len({view.untyped_storage().data_ptr() for view in value["views"]}) == 1


@pytest.mark.parametrize("zipped", FORMATS)
def test_protocol_0(zipped):
    """PyTorch writes it, and reads it only without ``weights_only``; the references to storages in it nobody can read."""
    value = {"a": 1, "b": [1.5, None, True, "x\n\u00e9", 2**70], "c": collections.OrderedDict(d=(1, ()))}
    options = {"pickle_protocol": 0, "_use_new_zipfile_serialization": zipped}
    assert through((torch, rushlight), value, **options) == value
    with pytest.raises(pickle.UnpicklingError, match="A reference to a storage was expected"):
        through((torch, rushlight), torch.ones(2), **options)
    with pytest.raises(ValueError, match="pickle protocol 0 cannot refer to storages"):
        rushlight.save(value, io.BytesIO(), **options)


def test_our_files_need_no_trust():
    """PyTorch loads what is saved here with ``weights_only=True``, protocol 2 being what that reads."""
    value = values(rushlight)
    value["plain"].remove({1, 2})
    check(value, through((rushlight, torch), value, load={"weights_only": True}))


@pytest.mark.parametrize("ways", BOTH)
def test_mapped(ways, tmp_path):
    writer, reader = ways
    value = {"a": writer.arange(1000.0), "b": writer.ones(3, 3).t()}
    writer.save(value, tmp_path / "m.pt")
    loaded = reader.load(tmp_path / "m.pt", mmap=True)
    check(value, loaded)
    loaded["a"].add_(1)
    check(value, reader.load(tmp_path / "m.pt"))


@pytest.mark.parametrize("ways", BOTH)
def test_whole_modules(ways):
    writer, reader = ways
    model = writer.nn.Sequential(writer.nn.Linear(3, 4), writer.nn.ReLU(), writer.nn.Linear(4, 2))
    with reader.serialization.safe_globals([reader.nn.Sequential, reader.nn.Linear, reader.nn.ReLU, set]):
        loaded = through(ways, model, load={"weights_only": True})
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    assert np.allclose(array(model(writer.tensor(x))), array(loaded(reader.tensor(x))), atol=1e-6)
    assert str(model) == str(loaded)


@pytest.mark.parametrize("reader", [torch, rushlight], ids=["theirs", "ours"])
def test_whole_modules_in_the_legacy_format_are_refused(reader):
    """Such files carry source code, for a comparison that nobody makes without trusting them."""
    with (
        reader.serialization.safe_globals([reader.nn.Linear]),
        pytest.raises(pickle.UnpicklingError, match="Only persistent_load of storage is allowed, but got"),
    ):
        through((torch, reader), torch.nn.Linear(3, 4), {"weights_only": True}, _use_new_zipfile_serialization=False)


@pytest.mark.parametrize("view", ["conj", "imag"])
def test_numbers_that_pytorch_turns_when_read(view):
    """PyTorch keeps conjugates and negatives as flags beside the numbers."""
    z = torch.tensor([1 + 2j, 3 - 4j])
    tensor = z.conj() if view == "conj" else z.conj().imag
    loaded = through((torch, rushlight), tensor)
    assert loaded.tolist() == tensor.tolist()
    ours = rushlight.tensor([1 + 2j, 3 - 4j])
    ours = ours.conj() if view == "conj" else ours.conj().imag
    assert through((rushlight, torch), ours).tolist() == tensor.tolist()


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64", "float8_e5m2"])
def test_dtypes_without_a_storage_class(dtype):
    tensor = torch.tensor([1, 2, 3]).to(getattr(torch, dtype))
    if hasattr(rushlight, dtype):
        assert through((torch, rushlight), tensor).tolist() == tensor.tolist()
    else:
        with pytest.raises(NotImplementedError, match=f"the dtype torch.{dtype} is not in rushlight"):
            through((torch, rushlight), tensor)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torch.eye(3).to_sparse(), "sparse tensors"),
        (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "quantized tensors"),
        (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "nested tensors"),
    ],
    ids=["sparse", "quantized", "nested"],
)
def test_tensors_of_other_kinds_are_refused_by_name(make, words):
    with pytest.raises(NotImplementedError, match=words):
        through((torch, rushlight), make())


def test_files_without_checksums():
    torch.serialization.set_crc32_options(False)
    try:
        value = values(torch)
        check(value, through((torch, rushlight), value))
    finally:
        torch.serialization.set_crc32_options(True)


def test_files_without_byte_order():
    value = torch.arange(5)
    assert through((torch, rushlight), value, _disable_byteorder_record=True).tolist() == [0, 1, 2, 3, 4]
    ours = rushlight.arange(5)
    assert through((rushlight, torch), ours, _disable_byteorder_record=True).tolist() == [0, 1, 2, 3, 4]


def test_the_archives_have_the_same_records(tmp_path):
    names = []
    for library in (torch, rushlight):
        library.save({"a": library.ones(3), "b": library.zeros(2)}, tmp_path / "model.pt")
        with zipfile.ZipFile(tmp_path / "model.pt") as archive:
            names.append(archive.namelist())
            pickled = archive.read("model/data.pkl")
            names.append(pickled)
    assert names[0] == names[2]
    assert names[1] == names[3]  # the pickles are equal, byte for byte


def test_the_legacy_files_have_the_same_pickles():
    """Up to the keys of storages, which are addresses in PyTorch."""
    seen = []
    for library in (torch, rushlight):
        stream = io.BytesIO()
        library.save([1, "x", None], stream, _use_new_zipfile_serialization=False)
        seen.append(stream.getvalue())
    assert seen[0] == seen[1]


@pytest.mark.parametrize("ways", BOTH)
def test_unsafe_globals(ways):
    writer, reader = ways

    stream = io.BytesIO()
    writer.save({"f": np.float64(1.5), "l": writer.nn.Linear(1, 1), "t": writer.ones(2)}, stream)
    stream.seek(0)
    theirs = torch.serialization.get_unsafe_globals_in_checkpoint(stream)
    stream.seek(0)
    assert sorted(rushlight.serialization.get_unsafe_globals_in_checkpoint(stream)) == sorted(theirs)


@pytest.mark.parametrize("ways", BOTH)
def test_safetensors(ways, tmp_path):
    import safetensors.torch

    writer, reader = ways
    path = tmp_path / "m.safetensors"
    tensors = {name: writer.tensor([[0, 1], [2, 3]]).to(getattr(writer, name)) for name in DTYPES[:-1]}
    tensors["empty"] = writer.zeros(0, 3)
    modules = {torch: safetensors.torch, rushlight: rushlight.io.safetensors}
    modules[writer].save_file(tensors, path)
    loaded = modules[reader].load_file(path)
    assert loaded.keys() == tensors.keys()
    assert all(same(tensors[name], loaded[name]) for name in tensors)


def refusal(library, make, **options):
    """The class of the exception with which a library refuses a file."""
    try:
        library.load(make(), **options)
    except Exception as error:
        return type(error)
    return None


def damaged(change):
    stream = io.BytesIO()
    torch.save({"a": torch.arange(100.0)}, stream)
    return lambda: io.BytesIO(change(stream.getvalue()))


def with_pickle(pickled):
    def make():
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("archive/data.pkl", pickled)
            archive.writestr("archive/version", "3\n")
        return io.BytesIO(out.getvalue())

    return make


def tensor_of(size, stride, offset, numel=10):
    class Tensor:
        def __reduce__(self):
            return torch._utils._rebuild_tensor_v2, (Storage(), offset, size, stride, False, collections.OrderedDict())

    class Storage:
        pass

    class Pickler(pickle._Pickler):
        def persistent_id(self, obj):
            return ("storage", torch.FloatStorage, "0", "cpu", numel) if isinstance(obj, Storage) else None

    out, buffer = io.BytesIO(), io.BytesIO()
    Pickler(buffer, 2).dump(Tensor())
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", buffer.getvalue())
        archive.writestr("archive/data/0", bytes(40))
        archive.writestr("archive/version", "3\n")
    return lambda: io.BytesIO(out.getvalue())


@pytest.mark.parametrize(
    "make",
    [
        damaged(lambda data: b""),
        damaged(lambda data: data[:-100]),
        damaged(lambda data: data[: len(data) // 2]),
        damaged(lambda data: data[:4]),
        damaged(lambda data: b'{"not": "a checkpoint"}'),
        with_pickle(b"\x80\x02cbuiltins\neval\n."),
        with_pickle(b"\x80\x02cposix\nsystem\n."),
        with_pickle(b"\x80\x02N"),
        with_pickle(b""),
        with_pickle(b"\x80\x02\xff."),
        with_pickle(b"\x80\x02(iposix\nsystem\n."),
        with_pickle(b"\x80\x02K\x01K\x02R."),
        with_pickle(b"\x80\x02X\xff\xff\xff\x7fabc."),
        tensor_of((11,), (1,), 0),
        tensor_of((1 << 40, 1 << 40), (1, 1), 0),
        tensor_of((-1,), (1,), 0),
        tensor_of((10,), (-1,), 0),
        tensor_of((10,), (1,), -1),
        tensor_of((10,), (1,), 1 << 62),
        tensor_of((10,), (1, 1), 0),
        tensor_of((10,), (1,), 0, numel=20),
        lambda: "/absent/checkpoint.pt",
        lambda: "/",
        lambda: 3,
    ],
)
def test_refusals_are_of_the_same_class(make):
    assert refusal(rushlight, make) is refusal(torch, make) is not None


@pytest.mark.parametrize(
    ("target", "options"),
    [("/absent/folder/m.pt", {}), ("/", {}), ("/dev/full", {}), (3, {}), (None, {"pickle_protocol": 9})],
)
def test_refusals_to_save_are_of_the_same_class(target, options):
    kinds = []
    for library in (torch, rushlight):
        with pytest.raises(Exception) as caught:
            library.save({"a": library.ones(100_000)}, io.BytesIO() if target is None else target, **options)
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]


def test_signatures():
    for name in ("save", "load", "add_safe_globals", "get_safe_globals", "get_unsafe_globals_in_checkpoint"):
        ours, theirs = (inspect.signature(getattr(library.serialization, name)) for library in (rushlight, torch))
        assert list(ours.parameters) == list(theirs.parameters)
        for parameter in ours.parameters.values():
            assert parameter.kind == theirs.parameters[parameter.name].kind
            if parameter.name != "pickle_module":
                assert parameter.default == theirs.parameters[parameter.name].default
