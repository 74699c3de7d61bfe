"""Random tensors and options: the text must be PyTorch's, byte for byte."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight
from rushlight import _tensor_str

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = pytest.mark.oracle

SPECIAL = [0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 1e-5, 1e-4, 0.5, 100.0, 1000.0, 1001.0, 1e8, 1e9, 1e-40]
FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]

number = st.one_of(
    st.sampled_from(SPECIAL),
    st.integers(-50, 50).map(float),
    st.floats(-10, 10),
    st.builds(lambda m, e: m * 10.0**e, st.floats(-10, 10), st.integers(-12, 12)),
)
shape = st.lists(st.sampled_from([0, 1, 1, 2, 3, 4, 5, 7, 12]), max_size=4).filter(lambda dims: math.prod(dims) <= 600)
options = st.fixed_dictionaries(
    {
        "precision": st.sampled_from([None, 0, 2, 6]),
        "threshold": st.sampled_from([None, 0, 3, 10, 50, math.inf]),
        "edgeitems": st.sampled_from([None, 0, 1, 2, 5]),
        "linewidth": st.sampled_from([None, 0, 10, 33, 50, 60, 61, 62, 63, 64, 65, 120]),
        "profile": st.sampled_from(["default", "short", "full"]),
        "sci_mode": st.sampled_from([None, None, True, False]),
    }
)


@st.composite
def arrays(draw):
    """A NumPy array of any shape, and the name of the dtype it is to be converted to."""
    dims = draw(shape)
    dtype = draw(st.sampled_from([*FLOATS, *INTEGERS, "bool", "complex64", "complex128"]))
    pool = draw(st.lists(number, min_size=1, max_size=8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = rng.choice(pool, size=dims)
    if dtype.startswith("complex"):
        values = np.asarray(values + 0j)
        values.imag = rng.choice(pool, size=dims)
    elif dtype not in FLOATS:
        values = np.asarray(rng.integers(-120, 120, size=dims))
    return values, dtype


def both(values, dtype, recorded):
    for package in (torch, rushlight):
        x = package.from_numpy(np.array(values)).to(getattr(package, dtype))
        if recorded and dtype in (*FLOATS, "complex64", "complex128"):
            x = x.requires_grad_()
            x = x if recorded == "leaf" else x.clone()
        yield x


@pytest.fixture(autouse=True)
def restore():
    yield
    for module in (torch, _tensor_str):
        module.set_printoptions(profile="default")
    for package in (torch, rushlight):
        package.set_default_dtype(package.float32)


@settings(max_examples=400, deadline=None)
@given(arrays(), options, st.sampled_from(["", "", "leaf", "node"]), st.sampled_from(["float32", "float32", *FLOATS]))
def test_text_is_the_oracles(array, chosen, recorded, default):
    for package, module in ((torch, torch), (rushlight, _tensor_str)):
        module.set_printoptions(**chosen)
        package.set_default_dtype(getattr(package, default))
    expected, ours = both(*array, recorded)
    assert _tensor_str.get_printoptions() == torch._tensor_str.get_printoptions()
    assert _tensor_str.tensor_str(ours) == repr(expected)


@settings(max_examples=50, deadline=None)
@given(arrays(), st.permutations(range(4)))
def test_strided_tensors(array, order):
    values, dtype = array
    dims = [dim for dim in order if dim < values.ndim]
    expected, ours = (x.permute(dims)[..., ::2] if values.ndim else x for x in both(values, dtype, ""))
    assert _tensor_str.tensor_str(ours) == repr(expected)
