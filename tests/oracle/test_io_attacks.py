"""The folder of attack files against PyTorch: the same class of error, except where a difference is listed and why."""

import pathlib

import pytest

import rushlight

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

FOLDER = pathlib.Path(__file__).parents[1] / "io" / "attacks"
FILES = sorted(path.stem for path in FOLDER.glob("*.pt"))

# PyTorch does not look, and loads what it finds; here the file is refused, because it is not what its writer wrote.
LOADED = {
    "goes_on_after_its_end", "keys_twice", "legacy_keys_missing", "legacy_keys_not_a_list", "protocol_unknown",
    "record_above_the_folder", "record_of_another_method", "record_of_another_name", "record_with_a_bit_flipped",
    "record_with_backslash", "record_with_wrong_checksum", "set_of_a_tensor", "size_made_negative",
    "storage_with_two_dtypes", "values_left_over",
}  # fmt: skip
# PyTorch trips over them, and the error is that of the line which tripped.
TRIPPED = {
    "byteorder_of_a_megabyte": ValueError,
    "bytearray_of_a_number": MemoryError,
    "call_without_tuple": TypeError,
    "codec_that_decompresses": TypeError,
    "key_not_hashable": TypeError,
    "legacy_keys_not_strings": TypeError,
    "legacy_view_of_nothing": ValueError,
    "mark_never_set": IndexError,
    "memo_never_stored": KeyError,
    "new_of_a_function": TypeError,
    "parameter_of_a_number": AttributeError,
    "reference_not_a_tuple": AssertionError,
    "reference_of_wrong_types": AttributeError,
    "size_a_string": TypeError,
    "size_beyond_64_bits": TypeError,
    "size_of_a_bool": TypeError,
    "stack_underflow": IndexError,
    "storage_negative": TypeError,
    "storage_of_exabytes": TypeError,
    "storage_quantized": RuntimeError,
    "tensor_of_a_class": TypeError,
    "tensor_of_a_list": AttributeError,
    "text": IndexError,
    "wrong_magic": IndexError,
}
# A length beyond the end counts as an end that comes early, as everywhere else.
ENDS_EARLY = {"bytes_too_long", "frame_too_long"}
# PyTorch works on these for longer than anybody waits, or asks for more memory than there is.
ENDLESS = {"key_exponential", "bytearray_of_a_number"}


def refusal(library, path):
    try:
        library.load(path, weights_only=True)
    except Exception as error:
        return type(error)
    return None


@pytest.mark.parametrize("name", sorted(set(FILES) - ENDLESS))
def test_attacks_are_refused_as_in_pytorch(name):
    path = FOLDER / f"{name}.pt"
    theirs, ours = refusal(torch, path), refusal(rushlight, path)
    assert ours is not None
    if name in LOADED:
        assert theirs is None
    elif name in TRIPPED:
        assert theirs is TRIPPED[name]
    elif name in ENDS_EARLY:
        assert theirs.__name__ == "UnpicklingError"
        assert ours is EOFError
    else:
        assert ours is theirs


def test_the_lists_name_files():
    assert (LOADED | TRIPPED.keys() | ENDS_EARLY | ENDLESS) <= set(FILES)
