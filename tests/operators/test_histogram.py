"""histogram and histogramdd against NumPy, weights and densities, and what is refused."""

import numpy as np
import pytest

import rushlight as torch

X = np.random.default_rng(0).normal(size=60)
W = np.random.default_rng(1).uniform(size=60)


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bins", [1, 5, np.array([-1.0, 0.0, 0.25, 2.0])])
@pytest.mark.parametrize("limits", [None, (-1.0, 1.5)])
def test_against_numpy(bins, weighted, density, limits):
    edges = isinstance(bins, np.ndarray)
    if edges and limits is not None:
        return
    expected = np.histogram(X, bins, limits, density, W if weighted else None)
    result = (
        torch.histogram(
            torch.tensor(X),
            torch.tensor(bins) if edges else bins,
            range=limits,
            weight=torch.tensor(W) if weighted else None,
            density=density,
        )
        if not edges
        else torch.histogram(
            torch.tensor(X), torch.tensor(bins), weight=torch.tensor(W) if weighted else None, density=density
        )
    )
    np.testing.assert_allclose(result.hist.numpy(), expected[0])
    np.testing.assert_allclose(result.bin_edges.numpy(), expected[1])


def test_ends_nan_and_equal_numbers():
    edges = torch.tensor([0.0, 1.0, 2.0])
    x = torch.tensor([0.0, 1.0, 2.0, 2.5, -0.5, float("nan"), float("inf")])
    assert torch.histogram(x, edges).hist.tolist() == [1, 2]  # the last bin holds its right edge
    same = torch.histogram(torch.full((4,), 3.0), 2)
    assert same.hist.tolist() == [0, 4] and same.bin_edges.tolist() == [2.5, 3.0, 3.5]
    assert torch.histogram(torch.empty(0), 2).hist.tolist() == [0, 0]


def test_several_dimensions():
    points = np.random.default_rng(2).normal(size=(40, 2))
    for density in (False, True):
        expected = np.histogramdd(points, [3, 4], density=density)
        result = torch.histogramdd(torch.tensor(points), [3, 4], density=density)
        np.testing.assert_allclose(result.hist.numpy(), expected[0])
        for mine, theirs in zip(result.bin_edges, expected[1], strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs)
    edges = (torch.tensor([-1.0, 0, 1]), torch.tensor([-2.0, 2]))
    assert torch.histogramdd(torch.tensor(points).float(), edges, weight=torch.ones(40)).hist.shape == (2, 1)


def test_forms_and_refusals():
    x = torch.arange(4.0)
    hist, edges = torch.empty(0), torch.empty(0)
    torch.histogram(x, 2, out=(hist, edges))
    assert hist.tolist() == [2, 2] and edges.tolist() == [0, 1.5, 3]
    assert x.histogram(2).hist.tolist() == [2, 2]
    assert repr(x.histogram(1)).startswith("torch.return_types.histogram(\nhist=tensor([4.])")
    with pytest.raises(RuntimeError, match="bins must be > 0, but got 0"):
        torch.histogram(x, 0)
    with pytest.raises(RuntimeError, match="min should not exceed max"):
        torch.histogram(x, 2, range=(1.0, 0.0))
    with pytest.raises(RuntimeError, match="is not finite"):
        torch.histogram(torch.tensor([1.0, float("inf")]), 2)
    with pytest.raises(RuntimeError, match="at least 2 elements, but got 1"):
        torch.histogram(x, torch.ones(1))
    with pytest.raises(RuntimeError, match="should have the same dtype"):
        torch.histogram(x, torch.ones(3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="the same shape as the input tensor"):
        torch.histogram(x, 2, weight=torch.ones(3))
    with pytest.raises(NotImplementedError, match="histogram_cpu"):
        torch.histogram(torch.arange(4), 2)
    with pytest.raises(RuntimeError, match="equal to the innermost dimension"):
        torch.histogramdd(torch.ones(3, 2), [2])
