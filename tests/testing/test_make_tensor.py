"""``make_tensor``: limits, layouts, and what is refused."""

import math
from functools import partial

import pytest

import rushlight as torch
from rushlight.testing import make_tensor

make = partial(make_tensor, device="cpu", dtype=torch.float32)

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((3,), (3,)),
        ((2, 3), (2, 3)),
        (((2, 3),), (2, 3)),
        (([2, 3],), (2, 3)),
        ((torch.Size([2]),), (2,)),
        (((),), ()),
        ((), ()),
        ((0, 3), (0, 3)),
    ],
)
def test_shapes(shape, expected):
    assert make(*shape).shape == expected


@pytest.mark.parametrize("dtype", [torch.bool, *INTEGERS])
def test_default_limits_of_integers(dtype):
    low, high = {torch.bool: (0, 1), torch.uint8: (0, 9)}.get(dtype, (-9, 9))
    x = make(2000, dtype=dtype)
    assert x.dtype == dtype
    assert set(x.tolist()) == set(range(low, high + 1))


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
def test_default_limits_of_floats(dtype):
    x = make(2000, dtype=dtype)
    assert x.dtype == dtype
    parts = torch.view_as_real(x) if dtype.is_complex else x
    numbers = parts.to(torch.float64).flatten()
    assert -9 <= numbers.min() < -8
    assert 8 < numbers.max() <= 9


def test_limits_are_half_open_and_rounded_up_for_integers():
    assert set(make(200, dtype=torch.int64, low=0.5, high=2.7).tolist()) == {1, 2}
    assert set(make(20, dtype=torch.int64, low=0, high=1).tolist()) == {0}
    assert set(make(20, dtype=torch.bool, low=1).tolist()) == {True}


def test_limits_are_clamped_to_the_dtype():
    x = make(2000, dtype=torch.int8, low=-1000, high=1000)
    assert (int(x.min()), int(x.max())) == (-128, 127)
    x = make(200, dtype=torch.float16, low=-math.inf, high=math.inf)
    assert x.isfinite().all()
    assert x.to(torch.float64).abs().max() > 30000
    assert make(50, dtype=torch.float64, low=-1.7e308, high=1.7e308).isfinite().all()
    assert make(50, dtype=torch.int64, low=-(2**63), high=2**63).abs().max() > 2**50


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"low": 5, "high": 1}, "`low` must be less than `high`, but got 5 >= 1"),
        ({"low": 1, "high": 1, "dtype": torch.int64}, "`low` must be less than `high`, but got 1 >= 1"),
        ({"low": math.nan}, "`low` and `high` cannot be NaN"),
        ({"high": math.nan}, "`low` and `high` cannot be NaN"),
        (
            {"low": 200, "high": 300, "dtype": torch.int8},
            r"is \[200, 300\), but torch.int8 only supports \[-128, 128\)",
        ),
        ({"low": 3, "high": 5, "dtype": torch.bool}, r"torch.bool only supports \[0, 2\)"),
        ({"low": 1e300, "high": 1e301}, "torch.float32 only supports"),
        (
            {"requires_grad": True, "dtype": torch.int64},
            "`requires_grad=True` is not supported for boolean and integral",
        ),
        ({"noncontiguous": True, "memory_format": torch.contiguous_format}, "are mutually exclusive"),
    ],
)
def test_bad_arguments(options, text):
    with pytest.raises(ValueError, match=text):
        make(3, **options)


def test_bad_types():
    with pytest.raises(TypeError, match="requested dtype 'float32' is not supported"):
        make(3, dtype="float32")
    with pytest.raises(RuntimeError, match="negative dimension"):
        make(-1)
    with pytest.raises(TypeError, match="dtype"):
        make_tensor(3, device="cpu")


def test_equal_limits_of_floats_are_deprecated():
    with pytest.warns(FutureWarning, match="low==high"):
        assert make(3, low=2, high=2).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(("shape", "stride"), [((2, 3), (6, 2)), ((4,), (2,)), ((2, 3, 4), (24, 8, 2))])
def test_noncontiguous(shape, stride):
    x = make(shape, noncontiguous=True, requires_grad=True)
    assert (x.stride(), x.is_contiguous(), x.requires_grad, x.is_leaf) == (stride, False, True, True)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (1, 1)])
def test_noncontiguous_has_no_effect_below_two_elements(shape):
    assert make(shape, noncontiguous=True).is_contiguous()


def test_memory_format():
    assert make(2, 3, 4, 5, memory_format=torch.channels_last).stride() == (60, 1, 15, 3)


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
def test_requires_grad(dtype):
    assert make(2, dtype=dtype, requires_grad=True).requires_grad
    assert not make(2, dtype=dtype).requires_grad


def test_exclude_zero():
    assert set(make(100, dtype=torch.int64, low=0, high=2, exclude_zero=True).tolist()) == {1}
    assert make(100, dtype=torch.bool, exclude_zero=True).all()
    with pytest.warns(FutureWarning):
        x = make(2, low=0.0, high=0.0, exclude_zero=True)
    assert x.tolist() == [torch.finfo(torch.float32).tiny] * 2


def test_seeds_repeat():
    torch.manual_seed(7)
    first = make(5, dtype=torch.complex64)
    torch.manual_seed(7)
    assert torch.equal(first, make(5, dtype=torch.complex64))
    assert not torch.equal(first, make(5, dtype=torch.complex64))
