"""``assert_close``: what passes, and the exact message of what does not."""

import math
from collections import OrderedDict
from functools import partial

import numpy as np
import pytest

import rushlight as torch
from rushlight.testing import assert_allclose, assert_close

NAN, INF = math.nan, math.inf
t = torch.tensor


def message(*args, error=AssertionError, **options):
    with pytest.raises(error) as info:
        assert_close(*args, **options)
    assert info.type is error
    return str(info.value)


# --- tensors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ([1.0, 2.0], [1.0, 2.0 + 2e-6]),
        ([], []),
        ([INF, -INF], [INF, -INF]),
        ([0.0], [9e-6]),
        ([1 + 1j], [1 + 1j]),
        ([True], [True]),
        ([3], [3]),
        (1.0, 1.0),
    ],
)
def test_close_tensors_pass(actual, expected):
    assert assert_close(t(actual), t(expected)) is None


def test_message_of_tensors():
    assert message(t([[1.0, 2.0], [3.0, 4.0]]), t([[1.0, 4.0], [3.0, 5.0]])) == (
        "Tensor-likes are not close!\n\n"
        "Mismatched elements: 2 / 4 (50.0%)\n"
        "Greatest absolute difference: 2.0 at index (0, 1) (up to 1e-05 allowed)\n"
        "Greatest relative difference: 0.5 at index (0, 1) (up to 1.3e-06 allowed)"
    )


def test_greatest_absolute_and_relative_difference_may_be_elsewhere():
    text = message(t([0.5, 110.0, 7.0]), t([1.0, 100.0, 7.0]), rtol=0.01, atol=0)
    assert "Greatest absolute difference: 10.0 at index (1,) (up to 0 allowed)\n" in text
    assert text.endswith("Greatest relative difference: 0.5 at index (0,) (up to 0.01 allowed)")


def test_differences_within_the_tolerance_are_not_the_greatest():
    text = message(t([1e6, 1.0]), t([1e6 + 1, 1.1]))
    assert "Mismatched elements: 1 / 2 (50.0%)" in text
    assert "at index (1,)" in text


def test_exact_comparison_says_equal():
    for options in ({"rtol": 0, "atol": 0}, {"rtol": 0.0, "atol": 0.0}):
        assert message(t([1.0, 2.0]), t([1.0, 3.0]), **options) == (
            "Tensor-likes are not equal!\n\n"
            "Mismatched elements: 1 / 2 (50.0%)\n"
            "Greatest absolute difference: 1.0 at index (1,)\n"
            "Greatest relative difference: 0.3333333432674408 at index (1,)"
        )


def test_integers_are_compared_exactly_and_without_wrapping():
    assert message(t([1, 2], dtype=torch.uint8), t([2, 1], dtype=torch.uint8)) == (
        "Tensor-likes are not equal!\n\n"
        "Mismatched elements: 2 / 2 (100.0%)\n"
        "Greatest absolute difference: 1 at index (0,)\n"
        "Greatest relative difference: 1.0 at index (1,)"
    )
    assert "not equal" in message(t([2**62]), t([2**62 + 1]))
    assert "Greatest absolute difference: 256 at" in message(
        t([250], dtype=torch.uint8), t([-6], dtype=torch.int8), check_dtype=False
    )
    assert_close(t([1, 2, 3]), t([1, 4, 5]), rtol=0.5, atol=0)


def test_booleans_count_as_zero_and_one():
    assert message(t([True, False]), t([True, True])) == (
        "Tensor-likes are not equal!\n\n"
        "Mismatched elements: 1 / 2 (50.0%)\n"
        "Greatest absolute difference: 1 at index (1,)\n"
        "Greatest relative difference: 1.0 at index (1,)"
    )


def test_tensors_of_no_dimension_are_scalars():
    assert message(t(1.0), t(2.0)) == (
        "Scalars are not close!\n\n"
        "Expected 2.0 but got 1.0.\n"
        "Absolute difference: 1.0 (up to 1e-05 allowed)\n"
        "Relative difference: 0.5 (up to 1.3e-06 allowed)"
    )
    assert message(t(1), t(0)).endswith("Expected 0 but got 1.\nAbsolute difference: 1\nRelative difference: inf")
    assert "Expected False but got True." in message(t(True), t(False))


def test_nan_and_infinity():
    assert_close(t([NAN, 1.0]), t([NAN, 1.0]), equal_nan=True)
    text = message(t([1.0, NAN]), t([9.0, NAN]))
    assert "Mismatched elements: 2 / 2 (100.0%)" in text
    assert "Greatest absolute difference: nan at index (1,)" in text
    assert "Greatest absolute difference: inf at index (0,)" in message(t([INF]), t([-INF]))
    assert "Mismatched elements: 1 / 2" in message(t([INF, 1.0]), t([INF, 2.0]))


@pytest.mark.parametrize(
    ("dtype", "close", "far", "rtol", "atol"),
    [
        ("float16", 1.0 + 2**-10, 1.0 + 2**-8, "0.001", "1e-05"),
        ("bfloat16", 1.0 + 2**-7, 1.0 + 2**-5, "0.016", "1e-05"),
        ("float32", 1.0 + 1e-6, 1.0 + 2e-5, "1.3e-06", "1e-05"),
        ("float64", 1.0 + 1e-7, 1.0 + 3e-7, "1e-07", "1e-07"),
        ("complex64", 1.0 + 1e-6j, 1.0 + 2e-5j, "1.3e-06", "1e-05"),
        ("complex128", 1.0 + 1e-7j, 1.0 + 3e-7j, "1e-07", "1e-07"),
    ],
)
def test_default_tolerances(dtype, close, far, rtol, atol):
    make = partial(t, dtype=getattr(torch, dtype))
    assert_close(make([close]), make([1.0]))
    text = message(make([far]), make([1.0]))
    assert f"at index (0,) (up to {atol} allowed)\n" in text
    assert text.endswith(f"at index (0,) (up to {rtol} allowed)")


def test_mixed_dtypes_use_the_larger_tolerances():
    assert_close(t([1.0005], dtype=torch.float64), t([1.0], dtype=torch.float16), check_dtype=False)


@pytest.mark.parametrize(
    ("actual", "expected", "options", "text"),
    [
        (t([1.0, 2.0]), t([1.0, 2.0, 3.0]), {}, "'shape' do not match: torch.Size([2]) != torch.Size([3])."),
        (t([1.0]), t(1.0), {}, "'shape' do not match: torch.Size([1]) != torch.Size([])."),
        (torch.empty(0, 2), torch.empty(0, 3), {}, "'shape' do not match: torch.Size([0, 2]) != torch.Size([0, 3])."),
        (t([1.0]), t([1]), {}, "'dtype' do not match: torch.float32 != torch.int64."),
        (torch.ones(2, 3), torch.ones(3, 2).t(), {"check_stride": True}, "'stride()' do not match: (3, 1) != (1, 2)."),
    ],
)
def test_attributes(actual, expected, options, text):
    assert message(actual, expected, **options) == "The values for attribute " + text


def test_attributes_that_are_not_checked():
    assert_close(t([1.0]), t([1]), check_dtype=False)
    assert_close(torch.ones(2, 3), torch.ones(3, 2).t())


def test_tensors_that_record_are_compared_without_recording():
    x = torch.ones(2, requires_grad=True)
    assert_close(x * 1, torch.ones(2))
    assert "Tensor-likes are not close!" in message(x * 2, x)
    assert x.grad is None


# --- other leaves ---------------------------------------------------------------------------------------------------


def test_numbers():
    assert message(1.0, 2.0) == (
        "Scalars are not close!\n\n"
        "Expected 2.0 but got 1.0.\n"
        "Absolute difference: 1.0 (up to 1e-07 allowed)\n"
        "Relative difference: 0.5 (up to 1e-07 allowed)"
    )
    assert (
        message(1, 2)
        == "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5"
    )
    assert message(1, 1.0) == "The (d)types do not match: <class 'int'> != <class 'float'>."
    assert "Expected 2j but got 1j." in message(1j, 2j)
    assert "Relative difference: inf" in message(1.0, 0.0)
    assert_close(1, 1.0, check_dtype=False)
    assert_close(1, 1j - 1j + 1, check_dtype=False)
    assert_close(INF, INF)
    assert_close(NAN, NAN, equal_nan=True)
    assert "Absolute difference: nan" in message(NAN, NAN)
    assert "Absolute difference: nan" in message(NAN, 1.0, equal_nan=True)
    assert "Relative difference: nan" in message(1.0, INF, rtol=1.0, atol=1.0)


def test_infinities_are_equal_only_to_themselves_whatever_the_tolerance():
    assert "Absolute difference: inf" in message(INF, 1.0, rtol=INF, atol=INF)


def test_numpy_scalars_are_numbers():
    assert_close(np.float32(1.0), 1.0)
    assert_close(np.int64(1), np.int32(1))
    assert "Expected 2 but got 1." in message(np.int64(1), 2)
    assert message(np.int64(1), 1.0) == "The (d)types do not match: <class 'int'> != <class 'float'>."


def test_booleans_and_none():
    assert_close(True, np.bool_(True))
    assert_close(None, None)
    assert message(True, False) == "Booleans mismatch: True is not False"
    assert message(None, 1.0) == "None mismatch: None is not 1.0"
    assert message(True, 1) == "The (d)types do not match: <class 'bool'> != <class 'int'>."


def test_numpy_arrays():
    assert_close(np.ones(2), np.ones(2))
    assert "Greatest absolute difference: 1.0 at index (0,)" in message(np.array([1.0]), np.array([2.0]))
    assert message(np.array(1.0), np.array(2.0)).startswith("Scalars are not close!")


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (t([1.0]), [1.0]),
        (t([1.0]), np.array([1.0])),
        (t(1), 1),
        ({"a": 1.0}, [1.0]),
        ("a", "a"),
        ({1, 2}, {1, 2}),
        (object(), object()),
        (np.array(["a"]), np.array(["a"])),
        (torch.float32, torch.float32),
    ],
)
def test_types_that_cannot_be_compared(actual, expected):
    text = message(actual, expected, error=TypeError)
    assert text == f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."


def test_subclasses():
    parameter = torch.nn.Parameter(t([1.0]))
    assert_close(parameter, t([1.0]))
    text = message(parameter, t([1.0]), allow_subclasses=False, error=TypeError)
    assert text.startswith("No comparison pair was able to handle inputs of type")


# --- structures -----------------------------------------------------------------------------------------------------


def test_sequences_of_any_type():
    assert_close([1.0, (2.0,)], (1.0, [2.0]))
    assert_close(range(2), [0, 1])
    assert_close((), [])
    assert message([1.0, 2.0], [1.0]) == "The length of the sequences mismatch: 2 != 1"
    assert message([[1.0]], [[]]) == "The length of the sequences mismatch: 1 != 0\n\nThe failure occurred for item [0]"


def test_mappings_of_any_order():
    assert_close({"a": 1.0, "b": 2.0}, OrderedDict(b=2.0, a=1.0))
    assert message({"a": 1.0, "c": 2, "d": 4}, {"a": 1.0, "b": 2}) == (
        "The keys of the mappings do not match:\n"
        "Missing keys in the actual mapping: ['b']\n"
        "Additional keys in the actual mapping: ['c', 'd']"
    )


def test_the_item_that_failed_is_named():
    text = message({"a": [1.0, {3: t([2.0])}]}, {"a": [1.0, {3: t([3.0])}]})
    assert text.endswith("\n\nThe failure occurred for item ['a'][1][3]")
    assert message([None], [1.0]).endswith("\n\nThe failure occurred for item [0]")
    assert message({"b": 1.0, "a": 2.0}, {"b": 2.0, "a": 1.0}).endswith("item ['a']")
    assert message([["a"]], [["a"]], error=TypeError).endswith("\n\nThe failure occurred for item [0][0]")


def test_structures_are_checked_before_values():
    assert "No comparison pair" in message([1.0, "a"], [2.0, "a"], error=TypeError)


# --- options --------------------------------------------------------------------------------------------------------


def test_both_tolerances_or_none():
    text = "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
    assert message(t([1.0]), t([1.0]), rtol=1e-3, error=ValueError) == text + "atol."
    assert message(t([1.0]), t([1.0]), atol=1e-3, error=ValueError) == text + "rtol."


def test_messages_of_ones_own():
    assert message(t([1.0]), t([2.0]), msg="Argh") == "Argh"
    assert message([1], [2], msg=lambda text: f"Header\n{text}\nFooter") == (
        "Header\nScalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5"
        "\n\nThe failure occurred for item [0]\nFooter"
    )


# --- assert_allclose ------------------------------------------------------------------------------------------------


def test_allclose_converts_and_warns():
    with pytest.warns(FutureWarning, match="deprecated"):
        assert_allclose([1.0, NAN], t([1.00005, NAN]))
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match=r"up to 0\.0001 allowed"):
        assert_allclose(t([1.0]), [1.001])
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="^mine$"):
        assert_allclose(t([1.0]), t([2.0]), msg="mine")
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="but got no atol"):
        assert_allclose(t([1.0]), t([2.0]), rtol=1)


def test_allclose_ignores_dtypes_but_not_shapes():
    with pytest.warns(FutureWarning):
        assert_allclose(t([1.0]), t([1]))
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="attribute 'shape'"):
        assert_allclose(t([1.0, 1.0]), 1.0)
