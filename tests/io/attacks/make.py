"""Makes the attack files of this folder: `python tests/io/attacks/make.py` writes them all again.

Each is a small file that a reader could be harmed or misled by. What must happen to each stands in test_attacks.py.
"""

import io
import json
import pathlib
import pickle
import struct
import tarfile
import zipfile

FOLDER = pathlib.Path(__file__).parent

MAGIC = 0x1950A86A20F9469CFC6C
NUMBERS = struct.pack("<10f", *range(10))


# Pickles, put together by hand.


def dumped(value):
    """The instructions that make a plain value, without the frame around them."""
    return pickle.dumps(value, 2)[2:-1]


def named(module, name):
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


def program(*instructions):
    return b"\x80\x02" + b"".join(instructions) + b"."


def storage(kind="FloatStorage", key="0", location="cpu", numel=10, extra=b""):
    return (
        b"(" + dumped("storage") + named("torch", kind) + dumped(key) + dumped(location) + dumped(numel) + extra + b"tQ"
    )


def tensor(size=(10,), stride=(1,), offset=0, **of_storage):
    return (
        named("torch._utils", "_rebuild_tensor_v2")
        + b"("
        + storage(**of_storage)
        + dumped(offset)
        + dumped(size)
        + dumped(stride)
        + b"\x89"
        + named("collections", "OrderedDict")
        + b")RtR"
    )


def nested_pairs(depth):
    """A tuple with 2**depth leaves in a few bytes, as the key of a dictionary."""
    return b"}" + b")" + b"".join(b"q\x00h\x00\x86" for _ in range(depth)) + b"K\x01s"


PICKLES = {
    "forbidden_function": program(named("posix", "system"), dumped("true"), b"\x85R"),
    "forbidden_builtin": program(named("builtins", "eval"), dumped("1"), b"\x85R"),
    "forbidden_by_stack": b"\x80\x04" + dumped("builtins") + dumped("exec") + b"\x93" + dumped("1") + b"\x85R.",
    "forbidden_in_allowed_module": program(named("collections", "namedtuple"), dumped(("x", "y")), b"R"),
    "forbidden_attribute": program(named("torch._utils", "_rebuild_tensor_v2.__globals__")),
    "forbidden_torch_function": program(named("torch.serialization", "load"), dumped("x"), b"\x85R"),
    "instruction_inst": program(b"(" + dumped("true") + b"iposix\nsystem\n"),
    "instruction_obj": program(b"(", named("builtins", "set"), b"o"),
    "instruction_ext": program(b"\x82\x01"),
    "instruction_buffer": b"\x80\x05\x97.",
    "instruction_unknown": program(b"\xff"),
    "call_of_a_number": program(b"K\x01)R"),
    "call_of_a_dictionary": program(b"})R"),
    "call_without_tuple": program(named("builtins", "set"), b"K\x01R"),
    "new_of_a_function": program(named("torch._utils", "_rebuild_tensor_v2"), b")\x81"),
    "state_of_a_function": program(
        named("torch._utils", "_rebuild_tensor_v2"), b"N", dumped({"__code__": 1}), b"\x86b"
    ),
    "state_of_a_list": program(b"]", dumped({"append": 1}), b"b"),
    "item_of_a_list": program(b"]K\x00K\x01s"),
    "append_to_a_dictionary": program(b"}K\x01a"),
    "append_to_a_number": program(b"K\x05(K\x01e"),
    "memo_never_stored": program(b"h\x05"),
    "memo_of_four_billion": program(b"Nr\xff\xff\xff\xff", b"0h\x00"),
    "stack_underflow": program(b"R"),
    "mark_never_set": program(b"t"),
    "values_left_over": program(b"K\x01K\x02"),
    "string_too_long": program(b"X\xff\xff\xff\x7fabc"),
    "bytes_too_long": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 62) + b"x.",
    "frame_too_long": b"\x80\x04\x95" + struct.pack("<Q", 1 << 62) + b"N.",
    "integer_negative_length": program(b"\x8b" + struct.pack("<i", -4)),
    "protocol_unknown": b"\x80\x09N.",
    "ends_early": b"\x80\x02}q\x00(X\x01\x00\x00\x00a",
    "empty_pickle": b"",
    "goes_on_after_its_end": program(b"N") + b"cposix\nsystem\n.",
    "bytearray_of_a_number": program(named("builtins", "bytearray"), dumped(1 << 45), b"\x85R"),
    "codec_that_decompresses": program(named("_codecs", "encode"), dumped("x"), dumped("zlib_codec"), b"\x86R"),
    "set_of_a_tensor": program(named("builtins", "set"), tensor(), b"\x85R"),
    "key_not_hashable": program(b"}]K\x01s"),
    "key_exponential": program(nested_pairs(60)),
    "keys_twice": program(b"}(" + dumped("a") + b"K\x01" + dumped("a") + b"K\x02u"),
    "reference_not_a_tuple": program(b"K\x01Q"),
    "reference_as_text": program(b"P0\n"),
    "reference_of_wrong_types": program(b"(" + dumped("storage") + dumped("torch.FloatStorage") + b"K\x00K\x00K\x00tQ"),
    "device_unknown": program(named("torch", "device"), dumped("abacus"), b"\x85R"),
    "size_negative": program(tensor(size=(-1,))),
    "size_beyond_storage": program(tensor(size=(11,))),
    "size_overflowing": program(tensor(size=(1 << 40, 1 << 40), stride=(0, 0))),
    "size_beyond_64_bits": program(tensor(size=(1 << 70,))),
    "size_a_string": program(tensor(size="abc")),
    "size_of_a_bool": program(tensor(size=(True,))),
    "size_made_negative": program(named("torch", "Size"), dumped((-3,)), b"\x85R"),
    "stride_negative": program(tensor(stride=(-1,))),
    "stride_overflowing": program(tensor(size=(3,), stride=((1 << 62) - 1,))),
    "stride_count": program(tensor(stride=(1, 1))),
    "offset_negative": program(tensor(offset=-1)),
    "offset_beyond_storage": program(tensor(offset=5)),
    "offset_overflowing": program(tensor(offset=1 << 62)),
    "storage_missing": program(tensor(key="7")),
    "storage_elsewhere": program(tensor(key="../../../etc/passwd")),
    "storage_longer_than_record": program(tensor(numel=20)),
    "storage_shorter_than_record": program(tensor(numel=5)),
    "storage_negative": program(tensor(numel=-1)),
    "storage_of_exabytes": program(tensor(numel=1 << 62)),
    "storage_on_cuda": program(tensor(location="cuda:0")),
    "storage_on_nothing": program(tensor(location="abacus")),
    "storage_quantized": program(tensor(kind="QInt8Storage")),
    "storage_with_two_dtypes": program(b"(", tensor(), tensor(kind="IntStorage"), b"t"),
    "tensor_of_a_list": program(
        named("torch._utils", "_rebuild_tensor_v2"), b"(]", dumped(0), dumped((1,)), dumped((1,)), b"\x89NtR"
    ),
    "tensor_sparse": program(named("torch._utils", "_rebuild_sparse_tensor"), b"NN\x86R"),
    "tensor_of_a_class": program(
        named("torch._tensor", "_rebuild_from_type_v2"),
        b"(" + named("torch._utils", "_rebuild_tensor_v2") + named("builtins", "set") + b")NtR",
    ),
    "parameter_of_a_number": program(named("torch._utils", "_rebuild_parameter"), b"K\x01\x88N\x87R"),
}


# Archives.


def archive(pickled, records=None, name="archive"):
    """A checkpoint in PyTorch's zip format with the given pickle and other records."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as zipped:
        contents = {"data.pkl": pickled, "data/0": NUMBERS, "version": b"3\n", **(records or {})}
        for record, data in contents.items():
            if data is not None:
                zipped.writestr(zipfile.ZipInfo(f"{name}/{record}"), data)
    return out.getvalue()


def zip_of(*entries):
    """An archive with exactly these (name, data) records."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as zipped:
        for name, data in entries:
            zipped.writestr(zipfile.ZipInfo(name), data)
    return out.getvalue()


def patched(data, position, value):
    return data[:position] + value + data[position + len(value) :]


def central(data, record):
    """Where the directory's entry of a record begins."""
    at = data.index(b"PK\x01\x02")
    while True:
        length = struct.unpack_from("<H", data, at + 28)[0]
        if data[at + 46 : at + 46 + length].endswith(record):
            return at
        at = data.index(b"PK\x01\x02", at + 46)


def local(data, record):
    """Where the local header of a record begins."""
    return struct.unpack_from("<I", data, central(data, record) + 42)[0]


VALID = archive(program(tensor()))


def bomb():
    """Sixty megabytes of zeros, deflated a thousandfold."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as zipped:
        plain = zipfile.ZipInfo("archive/data.pkl")
        plain.compress_type = zipfile.ZIP_STORED
        zipped.writestr(plain, program(tensor(size=(15 << 20,), numel=15 << 20)))
        packed = zipfile.ZipInfo("archive/data/0")
        packed.compress_type = zipfile.ZIP_DEFLATED
        zipped.writestr(packed, bytes(60 << 20))
    return out.getvalue()


def deflated(claimed):
    """A compressed storage whose directory says that it has ``claimed`` bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as zipped:
        zipped.writestr(zipfile.ZipInfo("archive/data.pkl"), program(tensor(size=(claimed // 4,), numel=claimed // 4)))
        packed = zipfile.ZipInfo("archive/data/0")
        packed.compress_type = zipfile.ZIP_DEFLATED
        zipped.writestr(packed, NUMBERS)
    data = out.getvalue()
    data = patched(data, central(data, b"data/0") + 24, struct.pack("<I", claimed))
    return patched(data, local(data, b"data/0") + 22, struct.pack("<I", claimed))


def overlapping():
    """A record whose data are those of another."""
    at = central(VALID, b"version")
    return patched(VALID, at + 42, struct.pack("<I", local(VALID, b"data/0") + 2))


END = VALID.rindex(b"PK\x05\x06")
ARCHIVES = {
    "cut_off_directory": VALID[:-60],
    "cut_in_half": VALID[: len(VALID) // 2],
    "signature_only": b"PK\x03\x04",
    "end_record_only": b"PK\x03\x04" + VALID[END:],
    "wrong_magic": b"QK" + VALID[2:],
    "text": b"this is not a checkpoint\n",
    "empty": b"",
    "page": b"<html><body>404 Not Found</body></html>",
    "no_pickle": zip_of(("archive/data/0", NUMBERS), ("archive/version", b"3\n")),
    "torchscript": archive(program(b"N"), {"constants.pkl": program(b")")}),
    "version_of_the_future": archive(program(b"N"), {"version": b"99\n"}),
    "version_not_a_number": archive(program(b"N"), {"version": b"three"}),
    "byteorder_unknown": archive(program(tensor()), {"byteorder": b"middle"}),
    "byteorder_of_a_megabyte": archive(program(tensor()), {"byteorder": b"little" * 1000}),
    "records_twice": zip_of(
        ("archive/data.pkl", program(tensor())), ("archive/data/0", NUMBERS), ("archive/data/0", NUMBERS[::-1])
    ),
    "record_above_the_folder": archive(program(tensor()), {"../../escaped": b"x"}),
    "record_absolute": zip_of(("/archive/data.pkl", program(b"N"))),
    "record_with_backslash": archive(program(tensor()), {"..\\escaped": b"x"}),
    "record_not_utf8": patched(VALID, central(VALID, b"version") + 46, b"\xff\xfe"),
    "records_overlapping": overlapping(),
    "record_outside": patched(VALID, central(VALID, b"data/0") + 42, struct.pack("<I", 1 << 30)),
    "record_longer_than_file": patched(VALID, central(VALID, b"data/0") + 20, struct.pack("<II", 1 << 31, 1 << 31)),
    "record_of_two_sizes": patched(VALID, central(VALID, b"data/0") + 24, struct.pack("<I", 41)),
    "record_without_header": patched(VALID, local(VALID, b"data/0"), b"XX"),
    "record_of_another_name": patched(VALID, local(VALID, b"data/0") + 30, b"X"),
    "record_of_another_method": patched(VALID, local(VALID, b"data/0") + 8, b"\x08\x00"),
    "record_running_over": patched(VALID, local(VALID, b"data/0") + 28, struct.pack("<H", 4000)),
    "record_encrypted": patched(VALID, central(VALID, b"data/0") + 8, b"\x01\x00"),
    "record_of_unknown_method": patched(VALID, central(VALID, b"data/0") + 10, b"\x0c\x00"),
    "record_with_wrong_checksum": patched(VALID, central(VALID, b"data/0") + 16, b"\x01\x02\x03\x04"),
    "record_with_a_bit_flipped": patched(VALID, VALID.index(NUMBERS) + 7, b"\x41"),
    "record_beyond_32_bits": patched(VALID, central(VALID, b"data/0") + 42, b"\xff\xff\xff\xff"),
    "directory_outside": patched(VALID, END + 16, struct.pack("<I", 1 << 30)),
    "directory_too_long": patched(VALID, END + 12, struct.pack("<I", 1 << 30)),
    "directory_of_many": patched(VALID, END + 8, struct.pack("<HH", 60000, 60000)),
    "directory_elsewhere": patched(VALID, END + 16, struct.pack("<I", 1)),
    "directory_64_missing": patched(VALID, END + 8, b"\xff\xff\xff\xff"),
    "disk_of_several": patched(VALID, END + 4, b"\x01\x00\x01\x00"),
    "bomb": bomb(),
    "bomb_by_its_word": deflated(1 << 30),
    "deflated_too_short": deflated(80),
    "deflated_too_long": deflated(20),
}


# The format of before 1.6, and the one before that.


def legacy(pickled, keys=("0",), tail=None, magic=MAGIC, protocol=1001):
    tail = struct.pack("<q", 10) + NUMBERS if tail is None else tail
    header = [pickle.dumps(value, 2) for value in (magic, protocol, {"little_endian": True})]
    return b"".join(header) + pickled + pickle.dumps(list(keys), 2) + tail


def old_tensor(**of_storage):
    return tensor(**{"extra": b"N", **of_storage})


def tarred():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        entry = tarfile.TarInfo("pickle")
        entry.size = 3
        tar.addfile(entry, io.BytesIO(b"abc"))
    return out.getvalue()


LEGACY = {
    "legacy_wrong_magic": legacy(program(old_tensor()), magic=MAGIC + 1),
    "legacy_wrong_protocol": legacy(program(old_tensor()), protocol=7),
    "legacy_forbidden_function": legacy(PICKLES["forbidden_function"]),
    "legacy_cut_in_pickle": legacy(program(old_tensor()))[:150],
    "legacy_cut_in_storage": legacy(program(old_tensor()))[:-4],
    "legacy_storage_longer_than_file": legacy(program(old_tensor(numel=1 << 40))),
    "legacy_storage_of_other_length": legacy(program(old_tensor()), tail=struct.pack("<q", 11) + NUMBERS + b"1234"),
    "legacy_storage_of_negative_length": legacy(program(old_tensor()), tail=struct.pack("<q", -1) + NUMBERS),
    "legacy_keys_missing": legacy(program(old_tensor()), keys=()),
    "legacy_keys_twice": legacy(program(old_tensor()), keys=("0", "0")),
    "legacy_keys_not_strings": legacy(program(old_tensor()), keys=(["0"],)),
    "legacy_keys_not_a_list": legacy(program(old_tensor())).replace(pickle.dumps(["0"], 2), pickle.dumps("0", 2)),
    "legacy_view_outside": legacy(program(old_tensor(extra=dumped(("v", 5, 6))))),
    "legacy_view_negative": legacy(program(old_tensor(extra=dumped(("v", -5, 6))))),
    "legacy_view_of_nothing": legacy(program(old_tensor(extra=dumped("v")))),
    "legacy_module": legacy(program(b"(" + dumped("module") + b"NNNt" + b"Q")),
    "older_tar": tarred(),
}


# Other formats.


def safetensors(header, numbers=NUMBERS, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + numbers


def entry(dtype="F32", shape=(10,), begin=0, end=40):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


SAFETENSORS = {
    "header_of_a_gigabyte": safetensors({"a": entry()}, length=1 << 30),
    "header_longer_than_file": safetensors({"a": entry()}, length=5000),
    "header_not_json": safetensors(b"{not json"),
    "header_a_list": safetensors(b"[]"),
    "header_nested_deeply": safetensors(b'{"a":' * 5000 + b"1" + b"}" * 5000),
    "header_keys_twice": safetensors(
        b'{"a":{"dtype":"F32","shape":[10],"data_offsets":[0,40]},"a":{"dtype":"F32","shape":[10],"data_offsets":[0,40]}}'
    ),
    "tensor_beyond_file": safetensors({"a": entry(shape=(20,), end=80)}),
    "tensor_of_other_length": safetensors({"a": entry(shape=(11,))}),
    "tensor_backwards": safetensors({"a": entry(begin=40, end=0)}),
    "tensor_negative": safetensors({"a": entry(shape=(-10,), end=-40)}),
    "tensor_overflowing": safetensors({"a": entry(shape=(1 << 40, 1 << 40))}),
    "tensor_of_unknown_dtype": safetensors({"a": entry(dtype="F31")}),
    "tensors_overlapping": safetensors({"a": entry(), "b": entry()}),
    "tensor_without_shape": safetensors({"a": {"dtype": "F32", "data_offsets": [0, 40]}}),
}


def npy(header, numbers=NUMBERS):
    text = header.encode()
    text += b" " * (-(10 + len(text) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + numbers


NPZ = {
    "array_of_objects": zip_of(("a.npy", npy("{'descr': '|O', 'fortran_order': False, 'shape': (5,)}"))),
    "array_longer_than_record": zip_of(
        ("a.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,)}"))
    ),
    "array_of_exabytes": zip_of(
        ("a.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}"))
    ),
    "array_negative": zip_of(("a.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-10,)}"))),
    "array_with_code_in_header": zip_of(
        ("a.npy", npy("{'descr': __import__('os'), 'fortran_order': False, 'shape': ()}"))
    ),
    "array_of_records": zip_of(("a.npy", npy("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (10,)}"))),
    "array_without_magic": zip_of(("a.npy", NUMBERS)),
    "array_empty": zip_of(("a.npy", b"")),
    "array_with_wrong_checksum": None,
}
_SOUND = zip_of(("a.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (10,)}")))
NPZ["array_with_wrong_checksum"] = patched(_SOUND, _SOUND.index(NUMBERS) + 3, b"\x42")


def files():
    """Every attack: the name of its file, and its bytes."""
    made = {f"{name}.pt": archive(pickled) for name, pickled in PICKLES.items()}
    made |= {f"{name}.pt": data for name, data in {**ARCHIVES, **LEGACY}.items()}
    made |= {f"{name}.safetensors": data for name, data in SAFETENSORS.items()}
    made |= {f"{name}.npz": data for name, data in NPZ.items()}
    return made


if __name__ == "__main__":
    for name, data in files().items():
        (FOLDER / name).write_bytes(data)
    print(f"{len(files())} files, {sum(map(len, files().values()))} bytes")
