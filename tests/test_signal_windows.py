"""torch.signal.windows against SciPy's windows, and what is refused."""

import numpy as np
import pytest
from scipy.signal import windows as reference

import rushlight as torch
from rushlight.signal import windows

CALLS = [
    ("bartlett", {}, lambda n, sym: reference.bartlett(n, sym)),
    ("blackman", {}, lambda n, sym: reference.blackman(n, sym)),
    ("cosine", {}, lambda n, sym: reference.cosine(n, sym)),
    ("exponential", {"tau": 2.0}, lambda n, sym: reference.exponential(n, None, 2.0, sym)),
    ("gaussian", {"std": 1.5}, lambda n, sym: reference.gaussian(n, 1.5, sym)),
    ("general_cosine", {"a": [0.4, 0.3, 0.2]}, lambda n, sym: reference.general_cosine(n, [0.4, 0.3, 0.2], sym)),
    ("general_hamming", {"alpha": 0.6}, lambda n, sym: reference.general_hamming(n, 0.6, sym)),
    ("hamming", {}, lambda n, sym: reference.hamming(n, sym)),
    ("hann", {}, lambda n, sym: reference.hann(n, sym)),
    ("kaiser", {"beta": 3.0}, lambda n, sym: reference.kaiser(n, 3.0, sym)),
    ("nuttall", {}, lambda n, sym: reference.nuttall(n, sym)),
]


@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 8])
@pytest.mark.parametrize(("name", "how", "expected"), CALLS, ids=[c[0] for c in CALLS])
def test_values(name, how, expected, n, sym):
    result = getattr(windows, name)(n, sym=sym, dtype=torch.float64, **how)
    np.testing.assert_allclose(result.numpy(), expected(n, sym), 1e-10, 1e-12)


def test_types():
    assert torch.signal.windows.hann(3).dtype == torch.float32
    assert windows.kaiser(3, requires_grad=True).requires_grad


def test_refusals():
    with pytest.raises(ValueError, match="non-negative window length, got M=-1"):
        windows.bartlett(-1)
    with pytest.raises(ValueError, match="expects float32 or float64 dtypes, got: torch.int64"):
        windows.kaiser(3, dtype=torch.int64)
    with pytest.raises(ValueError, match="Standard deviation must be positive"):
        windows.gaussian(3, std=0.0)
    with pytest.raises(ValueError, match="Center must be None for symmetric windows"):
        windows.exponential(3, center=1.0)
    with pytest.raises(ValueError, match="Coefficients cannot be empty"):
        windows.general_cosine(3, a=[])
    with pytest.raises(TypeError, match="unexpected keyword argument 'periodic'"):
        windows.hann(3, periodic=True)
