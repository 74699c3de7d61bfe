"""Every file of the folder `attacks` is refused: the right exception, naming the file and what is wrong with it."""

import importlib.util
import io
import os
import pathlib
import pickle
import resource

import pytest

import rushlight as torch
from rushlight.io import describe, npz, safetensors

FOLDER = pathlib.Path(__file__).parent / "attacks"
Unpickling = pickle.UnpicklingError

EXPECTED = {
    "append_to_a_dictionary.pt": (Unpickling, "Can only append to lists, but got builtins.dict"),
    "append_to_a_number.pt": (Unpickling, "Can only append to lists, but got builtins.int"),
    "array_empty.npz": (RuntimeError, "invalid header"),
    "array_longer_than_record.npz": (RuntimeError, "needs 4398046511104 bytes, but the archive has 40"),
    "array_negative.npz": (RuntimeError, r"shape \[-10\]"),
    "array_of_exabytes.npz": (RuntimeError, "needs 18446744073709551616 bytes"),
    "array_of_objects.npz": (ValueError, "Object arrays cannot be loaded when allow_pickle=False"),
    "array_of_records.npz": (ValueError, "which tensors do not have"),
    "array_with_code_in_header.npz": (RuntimeError, "invalid header"),
    "array_with_wrong_checksum.npz": (RuntimeError, "checksum"),
    "array_without_magic.npz": (RuntimeError, "magic string is not correct"),
    "bomb.pt": (RuntimeError, "as zip bombs do"),
    "bomb_by_its_word.pt": (RuntimeError, "as zip bombs do"),
    "bytearray_of_a_number.pt": (Unpickling, "bytearray of a int"),
    "byteorder_of_a_megabyte.pt": (RuntimeError, "byteorder' has 6000 bytes"),
    "byteorder_unknown.pt": (ValueError, "Unknown endianness type: middle"),
    "bytes_too_long.pt": (EOFError, "ends early"),
    "call_of_a_dictionary.pt": (Unpickling, "unrecognized function {}"),
    "call_of_a_number.pt": (Unpickling, "unrecognized function 1"),
    "call_without_tuple.pt": (Unpickling, "arguments are a int, not a tuple"),
    "codec_that_decompresses.pt": (Unpickling, "encoded as 'zlib_codec'"),
    "cut_in_half.pt": (RuntimeError, "failed finding central directory"),
    "cut_off_directory.pt": (RuntimeError, "failed finding central directory"),
    "deflated_too_long.pt": (RuntimeError, "checksum"),
    "deflated_too_short.pt": (RuntimeError, "decompresses to 40 bytes of 80"),
    "device_unknown.pt": (RuntimeError, "abacus"),
    "directory_64_missing.pt": (RuntimeError, "64-bit locator is missing"),
    "directory_elsewhere.pt": (RuntimeError, "no entry at offset 0"),
    "directory_of_many.pt": (RuntimeError, "60000 records cannot fit"),
    "directory_outside.pt": (RuntimeError, "lies outside of the file"),
    "directory_too_long.pt": (RuntimeError, "lies outside of the file"),
    "disk_of_several.pt": (RuntimeError, "one disk of several"),
    "empty.pt": (EOFError, "Ran out of input"),
    "empty_pickle.pt": (EOFError, "ends early, after 0 bytes"),
    "end_record_only.pt": (RuntimeError, "lies outside of the file"),
    "ends_early.pt": (EOFError, "ends early"),
    "forbidden_attribute.pt": (Unpickling, r"GLOBAL torch._utils._rebuild_tensor_v2.__globals__ was not an allowed"),
    "forbidden_builtin.pt": (Unpickling, r"Unsupported global: GLOBAL builtins.eval was not an allowed global"),
    "forbidden_by_stack.pt": (Unpickling, "Unsupported global: GLOBAL builtins.exec"),
    "forbidden_function.pt": (Unpickling, "GLOBAL posix.system whose module posix is blocked"),
    "forbidden_in_allowed_module.pt": (Unpickling, "Unsupported global: GLOBAL collections.namedtuple"),
    "forbidden_torch_function.pt": (Unpickling, "Unsupported global: GLOBAL torch.serialization.load"),
    "frame_too_long.pt": (EOFError, "ends early"),
    "goes_on_after_its_end.pt": (Unpickling, "15 bytes follow its end"),
    "header_a_list.safetensors": (None, "invalid JSON in header"),
    "header_keys_twice.safetensors": (None, r"duplicate keys \['a'\]"),
    "header_longer_than_file.safetensors": (None, "invalid header length"),
    "header_nested_deeply.safetensors": (None, "recursion limit exceeded"),
    "header_not_json.safetensors": (None, "invalid JSON in header"),
    "header_of_a_gigabyte.safetensors": (None, "header too large"),
    "instruction_buffer.pt": (Unpickling, "Unsupported operand 151"),
    "instruction_ext.pt": (Unpickling, "Unsupported operand 130"),
    "instruction_inst.pt": (Unpickling, "Unsupported operand 105"),
    "instruction_obj.pt": (Unpickling, "Unsupported operand 111"),
    "instruction_unknown.pt": (Unpickling, "Unsupported operand 255"),
    "integer_negative_length.pt": (Unpickling, "an integer has -4 bytes"),
    "item_of_a_list.pt": (Unpickling, "sets an item of a list"),
    "key_exponential.pt": (Unpickling, "a key has more than 10000 parts"),
    "key_not_hashable.pt": (Unpickling, "a list is used as a key"),
    "keys_twice.pt": (Unpickling, "duplicate keys"),
    "legacy_cut_in_pickle.pt": (EOFError, "ends early, after 150 bytes"),
    "legacy_cut_in_storage.pt": (RuntimeError, "unexpected EOF, the file ends inside of storage '0'"),
    "legacy_forbidden_function.pt": (Unpickling, "GLOBAL posix.system whose module posix is blocked"),
    "legacy_keys_missing.pt": (RuntimeError, "list of storages does not match"),
    "legacy_keys_not_a_list.pt": (RuntimeError, "list of storages does not match"),
    "legacy_keys_not_strings.pt": (RuntimeError, "list of storages does not match"),
    "legacy_keys_twice.pt": (RuntimeError, "list of storages does not match"),
    "legacy_module.pt": (Unpickling, "Only persistent_load of storage is allowed, but got 'module'"),
    "legacy_storage_longer_than_file.pt": (RuntimeError, "of 4398046511104 bytes cannot be in a file"),
    "legacy_storage_of_negative_length.pt": (RuntimeError, "-1 elements in the file, expected 10"),
    "legacy_storage_of_other_length.pt": (RuntimeError, "11 elements in the file, expected 10"),
    "legacy_view_negative.pt": (RuntimeError, "view of storage '0' lies outside"),
    "legacy_view_of_nothing.pt": (RuntimeError, "not described by three parts"),
    "legacy_view_outside.pt": (RuntimeError, "view of storage '0' lies outside"),
    "legacy_wrong_magic.pt": (RuntimeError, "Invalid magic number; corrupt file"),
    "legacy_wrong_protocol.pt": (RuntimeError, "Invalid protocol version: 7"),
    "mark_never_set.pt": (Unpickling, "a mark that was never set"),
    "memo_never_stored.pt": (Unpickling, "recalls value 5, which was never stored"),
    "memo_of_four_billion.pt": (Unpickling, "recalls value 0, which was never stored"),
    "new_of_a_function.pt": (Unpickling, "create new object for unrecognized class"),
    "no_pickle.pt": (RuntimeError, "no record data.pkl"),
    "offset_beyond_storage.pt": (RuntimeError, "needs 60 bytes, but its storage has 40"),
    "offset_negative.pt": (RuntimeError, r"storage offset \(-1,\)"),
    "offset_overflowing.pt": (RuntimeError, "but its storage has 40"),
    "older_tar.pt": (RuntimeError, "Cannot use ``weights_only=True`` with files saved in the legacy .tar format"),
    "page.pt": (Unpickling, "not a checkpoint"),
    "parameter_of_a_number.pt": (Unpickling, "a parameter of a int"),
    "protocol_unknown.pt": (Unpickling, "its protocol is 9"),
    "record_above_the_folder.pt": (RuntimeError, "leads out of the archive"),
    "record_absolute.pt": (RuntimeError, "leads out of the archive"),
    "record_beyond_32_bits.pt": (RuntimeError, "no 64-bit field"),
    "record_encrypted.pt": (RuntimeError, "is encrypted"),
    "record_longer_than_file.pt": (RuntimeError, "lies outside the file"),
    "record_not_utf8.pt": (RuntimeError, "is not UTF-8"),
    "record_of_another_method.pt": (RuntimeError, "method 8 in its header and 0 in the directory"),
    "record_of_another_name.pt": (RuntimeError, "another name in its own header"),
    "record_of_two_sizes.pt": (RuntimeError, "40 bytes in the file and 41 outside"),
    "record_of_unknown_method.pt": (RuntimeError, "compressed by method 12"),
    "record_outside.pt": (RuntimeError, "lies outside the file"),
    "record_running_over.pt": (RuntimeError, "runs into the next one"),
    "record_with_a_bit_flipped.pt": (RuntimeError, "has checksum 5c8d0447, expected e6a5e769"),
    "record_with_backslash.pt": (RuntimeError, "leads out of the archive"),
    "record_with_wrong_checksum.pt": (RuntimeError, "expected 04030201"),
    "record_without_header.pt": (RuntimeError, "no local header"),
    "records_overlapping.pt": (RuntimeError, "overlaps another"),
    "records_twice.pt": (RuntimeError, "two records called 'archive/data/0'"),
    "reference_as_text.pt": (Unpickling, "reference to a storage was expected"),
    "reference_not_a_tuple.pt": (Unpickling, "reference to a storage was expected"),
    "reference_of_wrong_types.pt": (Unpickling, "parts of the wrong types"),
    "set_of_a_tensor.pt": (Unpickling, "set of a Tensor"),
    "signature_only.pt": (RuntimeError, "failed finding central directory"),
    "size_a_string.pt": (Unpickling, "size is a str, expected a tuple"),
    "size_beyond_64_bits.pt": (RuntimeError, "negative or overflowing"),
    "size_beyond_storage.pt": (RuntimeError, "needs 44 bytes, but its storage has 40"),
    "size_made_negative.pt": (RuntimeError, "negative or overflowing"),
    "size_negative.pt": (RuntimeError, "negative or overflowing"),
    "size_of_a_bool.pt": (Unpickling, "has a bool in it"),
    "size_overflowing.pt": (RuntimeError, "numel: integer multiplication overflow"),
    "stack_underflow.pt": (Unpickling, "too few values on the stack"),
    "state_of_a_function.pt": (Unpickling, "Can only build Tensor, Parameter, OrderedDict"),
    "state_of_a_list.pt": (Unpickling, "Can only build Tensor, Parameter, OrderedDict"),
    "storage_elsewhere.pt": (RuntimeError, "failed locating file"),
    "storage_longer_than_record.pt": (
        RuntimeError,
        r"record size \(40 bytes\) does not match expected size \(80 bytes",
    ),
    "storage_missing.pt": (RuntimeError, "failed locating file archive/data/7: file not found"),
    "storage_negative.pt": (Unpickling, "has -1 elements"),
    "storage_of_exabytes.pt": (RuntimeError, "does not match expected size"),
    "storage_on_cuda.pt": (
        RuntimeError,
        r"Attempting to deserialize object on a CUDA device but torch.cuda.is_available",
    ),
    "storage_on_nothing.pt": (RuntimeError, r"don't know how to restore data location .* \(tagged with abacus\)"),
    "storage_quantized.pt": (NotImplementedError, "torch.QInt8Storage"),
    "storage_shorter_than_record.pt": (RuntimeError, "does not match expected size"),
    "storage_with_two_dtypes.pt": (Unpickling, "used with two dtypes"),
    "stride_count.pt": (RuntimeError, r"unequal size length \(1\) and stride length \(2\)"),
    "stride_negative.pt": (RuntimeError, "negative or overflowing"),
    "stride_overflowing.pt": (RuntimeError, "but its storage has 40"),
    "string_too_long.pt": (EOFError, "ends early"),
    "tensor_backwards.safetensors": (None, "invalid offset"),
    "tensor_beyond_file.safetensors": (None, "incomplete metadata, file not fully covered"),
    "tensor_negative.safetensors": (None, "expected usize"),
    "tensor_of_a_class.pt": (Unpickling, "unrecognized class builtins.set"),
    "tensor_of_a_list.pt": (Unpickling, "not a storage with a dtype"),
    "tensor_of_other_length.safetensors": (None, "invalid shape, data type, or offset"),
    "tensor_of_unknown_dtype.safetensors": (None, "unknown variant `F31`"),
    "tensor_overflowing.safetensors": (None, "overflow computing buffer size"),
    "tensor_sparse.pt": (NotImplementedError, "sparse tensors"),
    "tensor_without_shape.safetensors": (None, "missing field `shape`"),
    "tensors_overlapping.safetensors": (None, "invalid offset"),
    "text.pt": (Unpickling, "not a checkpoint"),
    "torchscript.pt": (RuntimeError, "Cannot use ``weights_only=True`` with TorchScript archives"),
    "values_left_over.pt": (Unpickling, "values left over or missing"),
    "version_not_a_number.pt": (RuntimeError, "version 'three'"),
    "version_of_the_future.pt": (RuntimeError, "maximum supported version for reading is 10"),
    "wrong_magic.pt": (Unpickling, "not a checkpoint"),
}

LOAD = {".pt": torch.load, ".npz": npz.load_file, ".safetensors": safetensors.load_file}
ZIPPED = [name for name in EXPECTED if name.endswith(".pt") and (FOLDER / name).read_bytes()[:4] == b"PK\x03\x04"]
# A listing reads no numbers and builds nothing: what these are refused for does not concern it.
LISTED = {
    "array_with_wrong_checksum.npz", "deflated_too_long.pt", "deflated_too_short.pt", "device_unknown.pt",
    "legacy_cut_in_storage.pt", "legacy_keys_missing.pt", "legacy_keys_not_a_list.pt", "legacy_keys_not_strings.pt",
    "legacy_keys_twice.pt", "legacy_storage_longer_than_file.pt", "legacy_storage_of_negative_length.pt",
    "legacy_storage_of_other_length.pt", "legacy_view_negative.pt", "legacy_view_of_nothing.pt",
    "legacy_view_outside.pt", "parameter_of_a_number.pt", "record_of_another_method.pt", "record_of_another_name.pt",
    "record_running_over.pt", "record_with_a_bit_flipped.pt", "record_with_wrong_checksum.pt",
    "record_without_header.pt", "set_of_a_tensor.pt", "storage_on_cuda.pt", "storage_on_nothing.pt",
    "tensor_sparse.pt", "tensors_overlapping.safetensors",
}  # fmt: skip


def generator():
    spec = importlib.util.spec_from_file_location("make_attacks", FOLDER / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_folder_is_what_its_generator_makes():
    made = generator().files()
    assert made.keys() == EXPECTED.keys() == {path.name for path in FOLDER.iterdir() if path.suffix in LOAD}
    assert all((FOLDER / name).read_bytes() == data for name, data in made.items())


@pytest.mark.parametrize("name", EXPECTED)
def test_refused(name):
    path = FOLDER / name
    kind, phrase = EXPECTED[name]
    if kind is None:
        kind = pytest.importorskip("safetensors", reason="the package that reads the format").SafetensorError
    with pytest.raises(kind, match=phrase) as caught:
        LOAD[path.suffix](path)
    assert str(path) in str(caught.value)
    if issubclass(kind, Unpickling):
        assert "Weights only load failed" in str(caught.value)


@pytest.mark.parametrize("name", ZIPPED)
def test_refused_when_mapped(name):
    path = FOLDER / name
    kind, phrase = EXPECTED[name]
    with pytest.raises(kind, match=phrase):
        torch.load(path, mmap=True)


@pytest.mark.parametrize("name", [name for name in EXPECTED if name.endswith(".pt")])
def test_refused_from_a_stream(name):
    kind, phrase = EXPECTED[name]
    with (FOLDER / name).open("rb") as stream, pytest.raises(kind, match=phrase):
        torch.load(stream)


@pytest.mark.parametrize("name", [name for name in EXPECTED if name.endswith(".pt")])
def test_refused_with_weights_only_false(name):
    kind, _ = EXPECTED[name]
    with pytest.raises(kind) as caught:
        torch.load(FOLDER / name, weights_only=False)
    if "Unsupported global" in str(caught.value):
        assert "never executes code from a file" in str(caught.value)


@pytest.mark.parametrize("name", EXPECTED)
def test_listing(name):
    path = FOLDER / name
    if name in LISTED:
        assert describe(path)[0].startswith(f"{path}: ")
    elif "forbidden" in name:
        assert "mentions classes that load() refuses" in describe(path)[-1]
    else:
        with pytest.raises((RuntimeError, ValueError, EOFError, Unpickling)) as caught:
            describe(path)
        assert str(path) in str(caught.value)


def test_memory_stays_small():
    """All files together: none of the sizes they claim is ever asked for."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name in EXPECTED:
        with pytest.raises(Exception):  # noqa: B017 - which one is the matter of the tests above
            LOAD[os.path.splitext(name)[1]](FOLDER / name)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 * 1024  # kilobytes; the bomb alone would be 60 MB, the liar next to it a gigabyte


def test_what_a_class_may_do_is_not_widened_by_allowing_it():
    """An allowed class may be made and given a state; functions and classes around it stay closed."""
    make = generator()
    evil = make.archive(make.program(make.named("pickle", "loads"), b")R"))
    with torch.serialization.safe_globals([pickle.Unpickler]), pytest.raises(Unpickling, match=r"GLOBAL pickle.loads"):
        torch.load(io.BytesIO(evil))
