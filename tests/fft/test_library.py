"""Large transforms are SciPy's where it is installed, small ones NumPy's: the numbers are the same."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight.fft import primitive


@pytest.fixture(params=["installed", "missing"])
def scipy(request, monkeypatch):
    if request.param == "installed":
        pytest.importorskip("scipy", reason="SciPy is optional")
    else:
        monkeypatch.setattr(primitive, "_vectorised", lambda: np.fft)


@pytest.mark.parametrize("dtype, close", [("float32", 1e-4), ("float64", 1e-11)])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_large_transforms(norm, dtype, close, scipy):
    array = np.random.default_rng(2).normal(size=(130, 150)).astype(dtype)
    x = torch.from_numpy(array)
    wide = np.complex64 if dtype == "float32" else np.complex128
    for ours, theirs in (
        (torch.fft.fft, np.fft.fft),
        (torch.fft.ifft2, np.fft.ifft2),
        (torch.fft.rfft, np.fft.rfft),
        (torch.fft.rfft2, np.fft.rfft2),
    ):
        y = ours(x, norm=norm).numpy()
        assert y.dtype == wide
        np.testing.assert_allclose(y, theirs(array, norm=norm), atol=close, rtol=0)
    back = torch.fft.irfft(torch.fft.rfft(x, norm=norm), 150, norm=norm)
    assert back.dtype == x.dtype
    np.testing.assert_allclose(back.numpy(), array, atol=close, rtol=0)
    assert np.array_equal(x.numpy(), array)
