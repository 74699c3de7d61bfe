"""Random pairs of tensors: ``assert_close`` must agree with PyTorch's, to the letter of the message."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight.testing import assert_close

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = pytest.mark.oracle

DTYPES = [  # not the complex ones, which are not compared yet
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "bool",
    "uint8",
    "int8",
    "int32",
    "int64",
]
SPECIAL = [math.nan, math.inf, -math.inf, 0.0, 1.0, -1.0, 1e-6, 100.0]

number = st.one_of(st.sampled_from(SPECIAL), st.floats(-5, 5))
change = st.sampled_from([0.0, 0.0, 1e-8, 1e-6, 1e-4, 1e-2, 1.0, math.nan])
options = st.fixed_dictionaries(
    {"equal_nan": st.booleans(), "check_dtype": st.booleans(), "check_stride": st.booleans()},
    optional={"tolerances": st.tuples(st.sampled_from([0, 0.0, 1e-3, 0.5]), st.sampled_from([0, 0.0, 1e-3, 0.5]))},
)


@st.composite
def pairs(draw):
    """Two NumPy arrays of one shape, and a dtype for each."""
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    size = math.prod(shape)
    values = draw(st.lists(st.builds(complex, number, number), min_size=size, max_size=size))
    others = [value * (1 + draw(change)) for value in values]
    dtype = draw(st.sampled_from(DTYPES))
    other = draw(st.sampled_from([dtype, dtype, *DTYPES]))
    return [np.array(v, dtype=complex).reshape(shape) for v in (values, others)], (dtype, other)


def tensors(package, arrays, dtypes):
    for array, dtype in zip(arrays, dtypes, strict=True):
        if not dtype.startswith("complex"):
            array = array.real
        if not dtype.startswith(("complex", "float", "bfloat")):
            array = np.nan_to_num(array, posinf=7, neginf=-7).astype(np.int64)
        yield package.from_numpy(np.array(array)).to(getattr(package, dtype))


def outcome(function, arguments, chosen):
    try:
        function(*arguments, **chosen)
    except (AssertionError, TypeError) as error:
        return type(error), re.sub(r"\b[\w.]*Tensor\b", "Tensor", str(error))
    return None


@settings(max_examples=500, deadline=None)
@given(pairs(), options, st.booleans())
def test_outcome_is_the_oracles(pair, chosen, nested):
    chosen = dict(chosen)
    if "tolerances" in chosen:
        chosen["rtol"], chosen["atol"] = chosen.pop("tolerances")
    results = []
    for package, function in ((torch, torch.testing.assert_close), (rushlight, assert_close)):
        actual, expected = tensors(package, *pair)
        arguments = ({"x": [1, actual]}, {"x": (1, expected)}) if nested else (actual, expected)
        results.append(outcome(function, arguments, chosen))
    assert results[0] == results[1]
