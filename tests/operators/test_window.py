"""The windows against NumPy's and SciPy's, their lengths, types and refusals."""

import numpy as np
import pytest
from scipy.signal import windows as reference

import rushlight as torch

WINDOWS = {
    "hann_window": lambda n, sym: reference.hann(n, sym),
    "hamming_window": lambda n, sym: reference.hamming(n, sym),
    "blackman_window": lambda n, sym: reference.blackman(n, sym),
    "bartlett_window": lambda n, sym: reference.bartlett(n, sym),
    "kaiser_window": lambda n, sym: reference.kaiser(n, 12.0, sym),
}


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 8])
def test_values(name, periodic, n):
    result = getattr(torch, name)(n, periodic, dtype=torch.float64)
    np.testing.assert_allclose(result.numpy(), WINDOWS[name](n, not periodic), 1e-10, 1e-12)


def test_parameters():
    np.testing.assert_allclose(torch.kaiser_window(5, False, beta=3.0).numpy(), np.kaiser(5, 3.0), 1e-6)
    result = torch.hamming_window(4, False, alpha=0.7, beta=0.3, dtype=torch.float64)
    np.testing.assert_allclose(result.numpy(), [0.4, 0.85, 0.85, 0.4])
    assert torch.hann_window(3).dtype == torch.float32
    assert torch.hann_window(3, requires_grad=True).requires_grad


def test_refusals():
    with pytest.raises(RuntimeError, match="requires non-negative window_length, got window_length=-1"):
        torch.hann_window(-1)
    with pytest.raises(RuntimeError, match="expects floating point dtypes, got: torch.int64"):
        torch.hann_window(3, dtype=torch.int64)
    with pytest.raises(TypeError, match="unexpected keyword argument 'sym'"):
        torch.hann_window(3, sym=True)
