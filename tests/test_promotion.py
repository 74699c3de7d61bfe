"""Type promotion: every pair of types, with and without dimensions, and Python numbers, against PyTorch's rules."""

from __future__ import annotations

import operator

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import rushlight as torch
from promotion_table import NUMBERS, tables

TABLES = tables()
SAME, MIXED = TABLES["same"], TABLES["mixed"]
WITH_NUMBER = {1: TABLES["numbers"], 0: TABLES["numbers without dimensions"]}
NAMES = list(dict.fromkeys(row for row, _ in SAME))
REAL = [name for name in NAMES if not name.startswith("complex")]
INTEGERS = [name for name in REAL if "int" in name]
FLOATS = [name for name in REAL if "float" in name]


def dtype(name):
    return torch.complex64 if name == "complex32" else getattr(torch, name)


def made(name, dims):
    return torch.ones((2,) * dims, dtype=dtype(name))


def pairs(names=NAMES):
    return [(a, b) for a in names for b in names]


def expected(a, dims_a, b, dims_b):
    """What the table says of two tensors."""
    if bool(dims_a) == bool(dims_b):
        return dtype(SAME[a, b])
    return dtype(MIXED[(a, b) if dims_a else (b, a)])


def test_the_table_is_whole():
    assert len(SAME) == len(MIXED) == len(TABLES["can_cast"]) == 12 * 12
    assert len(WITH_NUMBER[0]) == len(WITH_NUMBER[1]) == 12 * 4


@pytest.mark.parametrize(("a", "b"), pairs())
def test_promote_types(a, b):
    assert torch.promote_types(dtype(a), dtype(b)) is dtype(SAME[a, b])


@pytest.mark.parametrize(("a", "b"), pairs())
def test_result_type_of_two_tensors(a, b):
    for dims_a in (0, 1, 2):
        for dims_b in (0, 1, 3):
            got = torch.result_type(made(a, dims_a), made(b, dims_b))
            assert got is expected(a, dims_a, b, dims_b), (dims_a, dims_b)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", NUMBERS)
def test_result_type_with_a_python_number(name, kind):
    for dims in (0, 1, 2):
        wanted = dtype(WITH_NUMBER[min(dims, 1)][name, kind])
        assert torch.result_type(made(name, dims), NUMBERS[kind]) is wanted
        assert torch.result_type(NUMBERS[kind], made(name, dims)) is wanted


@pytest.mark.parametrize(("a", "b"), pairs())
def test_can_cast(a, b):
    assert torch.can_cast(dtype(a), dtype(b)) is (TABLES["can_cast"][a, b] == "yes")


@pytest.mark.parametrize(("a", "b"), pairs(REAL))
def test_arithmetic_of_two_tensors(a, b):
    for dims_a, dims_b in ((0, 0), (1, 1), (0, 2), (2, 0)):
        x, y = made(a, dims_a), made(b, dims_b)
        wanted = expected(a, dims_a, b, dims_b)
        for function in (operator.add, operator.mul, torch.maximum, torch.add):
            result = function(x, y)
            assert result.dtype is wanted, function
            assert result.max().item() == 1 + (function in (operator.add, torch.add)) * (wanted is not torch.bool)
        divided = x / y
        assert divided.dtype is (wanted if wanted.is_floating_point else torch.float32)
        assert (x == y).dtype is torch.bool
        if torch.bool not in (x.dtype, y.dtype):
            assert (x - y).dtype is wanted
            assert torch.where(made("bool", 2), x, y).dtype is wanted


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("kind", ["bool", "int", "float"])
def test_arithmetic_with_a_python_number(name, kind):
    number = NUMBERS[kind]
    for dims in (0, 1):
        x = made(name, dims)
        wanted = dtype(WITH_NUMBER[dims][name, kind])
        for result in (x + number, number + x, x * number, torch.add(x, number), torch.mul(x, number)):
            assert result.dtype is wanted
        assert (x / number).dtype is (wanted if wanted.is_floating_point else torch.float32)
        assert (x < number).dtype is torch.bool


@pytest.mark.parametrize("default", ["float64", "float16", "bfloat16"])
def test_the_default_type_decides_for_integers_and_python_floats(default):
    torch.set_default_dtype(dtype(default))
    try:
        for name in INTEGERS + ["bool"]:
            x = made(name, 1)
            for result in (x + 0.5, x / 2, torch.exp(x)):
                assert result.dtype is dtype(default)
            assert torch.result_type(x, 0.5) is dtype(default)
        for name in FLOATS:
            assert (made(name, 1) + 0.5).dtype is dtype(name)
        assert torch.tensor([0.5]).dtype is dtype(default)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(("a", "b"), pairs(REAL))
def test_results_go_where_can_cast_lets_them(a, b):
    wanted = dtype(SAME[a, b])
    for name in REAL:
        out = made(name, 1)
        if torch.can_cast(wanted, dtype(name)):
            assert torch.add(made(a, 1), made(b, 1), out=out) is out
            assert out.dtype is dtype(name)
        else:
            with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
                torch.add(made(a, 1), made(b, 1), out=out)
            assert out.tolist() == [1, 1]


@pytest.mark.parametrize(("a", "b"), pairs(REAL))
def test_changes_in_place_keep_the_type(a, b):
    x = made(a, 1)
    if torch.can_cast(dtype(SAME[a, b]), dtype(a)):
        x += made(b, 1)
        assert x.dtype is dtype(a)
        assert x.tolist() == [1 + (a != "bool")] * 2
    else:
        with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
            x += made(b, 1)
        assert x.tolist() == [1, 1]


@pytest.mark.parametrize("name", REAL)
def test_joining_takes_the_type_of_all(name):
    for other in REAL:
        assert torch.cat([made(name, 1), made(other, 1)]).dtype is dtype(SAME[name, other])
        assert torch.stack([made(name, 0), made(other, 0)]).dtype is dtype(SAME[name, other])


# ---- the same for any shape and strides

NUMPY = {name: name for name in REAL if name not in ("bfloat16", "float16")}


@st.composite
def operands(draw):
    """Two NumPy arrays of any types, which broadcast, cut out of larger ones with any steps."""
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    return [_operand(draw, shape) for _ in range(2)]


def _operand(draw, shape):
    own = [1 if draw(st.booleans()) else size for size in shape][draw(st.integers(0, len(shape))) :]
    steps = [draw(st.sampled_from([1, 2, 3])) for _ in own]
    order = draw(st.permutations(range(len(own))))
    whole = [size * step for size, step in zip(own, steps, strict=True)]
    count = int(np.prod(whole, dtype=int))
    array = (np.arange(count) % 7 + 1).astype(draw(st.sampled_from(list(NUMPY))))
    array = array.reshape([whole[i] for i in order]).transpose(np.argsort(order))
    return array[(..., *[slice(None, None, step) for step in steps])]


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(operands())
def test_any_shapes_strides_and_types(arrays):
    a, b = arrays
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    assert x.shape == a.shape and x.tolist() == a.tolist()
    wanted = expected(a.dtype.name, a.ndim, b.dtype.name, b.ndim)
    for function, reference in ((torch.add, np.add), (torch.maximum, np.maximum), (torch.mul, np.multiply)):
        result = function(x, y)
        values = reference(a.astype(np.float64), b.astype(np.float64))
        assert result.dtype is wanted
        assert result.shape == values.shape
        if wanted is not torch.bool:
            assert result.double().numpy().tolist() == values.tolist()
    divided = (x / y).double().numpy()
    assert np.allclose(divided, a.astype(np.float64) / b.astype(np.float64), rtol=1e-6)
