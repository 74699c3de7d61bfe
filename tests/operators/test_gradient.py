"""torch.gradient: differences by NumPy's, spacings, and what is refused."""

import numpy as np
import pytest

import rushlight as torch

X = np.random.default_rng(0).normal(size=(4, 5))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("spacing", [1.0, 0.5, (2.0, 0.25)])
def test_against_numpy(spacing, order):
    expected = np.gradient(X, *(spacing if isinstance(spacing, tuple) else (spacing,)), edge_order=order)
    result = torch.gradient(torch.tensor(X), spacing=spacing, edge_order=order)
    for mine, theirs in zip(result, expected, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs, 1e-12, 1e-12)


def test_coordinates_and_one_dimension():
    places = np.array([0.0, 0.5, 2.0, 3.0, 3.25])
    (result,) = torch.gradient(torch.tensor(X), spacing=(torch.tensor(places),), dim=1)
    np.testing.assert_allclose(result.numpy(), np.gradient(X, places, axis=1), 1e-12, 1e-12)


def test_refusals():
    x = torch.ones(3, 3)
    with pytest.raises(RuntimeError, match="dim 1 appears multiple times in the list of dims"):
        torch.gradient(x, dim=(1, -1))
    with pytest.raises(RuntimeError, match=r"length equal to 'self.dim\(\) = 2', since dim argument was not given"):
        torch.gradient(x, spacing=(1.0, 2.0, 3.0))
    with pytest.raises(RuntimeError, match="got a spacing argument of length 1 and a dim argument of length 2"):
        torch.gradient(x, spacing=(1.0,), dim=(0, 1))
    with pytest.raises(RuntimeError, match="at least edge_order"):
        torch.gradient(torch.ones(1, 3))
    with pytest.raises(RuntimeError, match="only supports edge_order=1 and edge_order=2"):
        torch.gradient(x, edge_order=3)
