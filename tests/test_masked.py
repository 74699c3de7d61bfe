"""torch.masked: each function equals the plain one on the elements that the mask leaves, row by row."""

import math

import pytest

import rushlight as torch
from rushlight import masked
from rushlight.autograd import gradcheck

REDUCTIONS = {
    "sum": lambda r: r.sum(),
    "prod": lambda r: r.prod(),
    "amax": lambda r: r.amax(),
    "amin": lambda r: r.amin(),
    "mean": lambda r: r.mean(),
    "median": lambda r: r.median(),
    "var": lambda r: r.var(),
    "std": lambda r: r.std(),
    "logsumexp": lambda r: r.logsumexp(0),
    "norm": lambda r: r.norm(),
}
OF_NOTHING = {
    "sum": 0.0,
    "prod": 1.0,
    "amax": -math.inf,
    "amin": math.inf,
    "mean": math.nan,
    "median": math.nan,
    "var": math.nan,
    "logsumexp": -math.inf,
    "norm": 0.0,
}


@pytest.fixture
def data():
    torch.manual_seed(0)
    mask = torch.tensor([[True, False, True, True], [True, True, False, True], [False, True, True, True]])
    return torch.randn(3, 4, dtype=torch.float64), mask


@pytest.mark.parametrize("name", REDUCTIONS)
def test_rows(name, data):
    x, mask = data
    function = getattr(masked, name)
    expected = torch.stack([REDUCTIONS[name](row[kept]) for row, kept in zip(x, mask)])
    torch.testing.assert_close(function(x, dim=1, mask=mask), expected)
    kept = function(x, dim=1, keepdim=True, mask=mask)
    torch.testing.assert_close(kept, expected.unsqueeze(1))
    whole = torch.ones_like(mask)
    torch.testing.assert_close(function(x, dim=1), function(x, dim=1, mask=whole))


@pytest.mark.parametrize("name", OF_NOTHING)
def test_nothing(name):
    result = getattr(masked, name)(torch.ones(2, 3), dim=1, mask=torch.zeros(3, dtype=torch.bool))
    torch.testing.assert_close(result, torch.full((2,), OF_NOTHING[name]), equal_nan=True)


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "mean", "var", "norm"])
def test_all_dimensions(name, data):
    x, mask = data
    torch.testing.assert_close(getattr(masked, name)(x, mask=mask), REDUCTIONS[name](x[mask]))


def test_places(data):
    x, mask = data
    for name, filling in (("argmax", -math.inf), ("argmin", math.inf)):
        expected = getattr(x.masked_fill(~mask, filling), name)(1)
        assert torch.equal(getattr(masked, name)(x, 1, mask=mask), expected.double())


def test_along_a_dimension(data):
    x, mask = data
    soft = masked.softmax(x, 1, mask=mask)
    assert (soft[~mask] == 0).all()
    for row, kept, result in zip(x, mask, soft):
        torch.testing.assert_close(result[kept], row[kept].softmax(0))
    torch.testing.assert_close(masked.log_softmax(x, 1, mask=mask).exp(), soft)
    torch.testing.assert_close(masked.softmin(-x, 1, mask=mask), soft)
    torch.testing.assert_close(masked.cumsum(x, 1, mask=mask), (x * mask).cumsum(1))
    torch.testing.assert_close(masked.cumprod(x, 1, mask=mask), x.masked_fill(~mask, 1).cumprod(1))
    unit = masked.normalize(x, 2.0, 1, mask=mask)
    torch.testing.assert_close(unit.norm(dim=1), torch.ones(3, dtype=torch.float64))
    both = masked.logaddexp(x, x, input_mask=mask, other_mask=~mask)
    torch.testing.assert_close(both, x)


def test_absent_elements_have_no_gradient(data):
    x, mask = data
    x[~mask] = math.inf
    leaf = x.requires_grad_()
    masked.sum(leaf, mask=mask).backward()
    assert torch.equal(leaf.grad, mask.double())
    y = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    for name in ("mean", "std", "softmax", "norm"):
        assert gradcheck(lambda t, name=name: getattr(masked, name)(t, dim=1, mask=mask), (y,))


def test_types_and_refusals():
    whole = torch.tensor([1, 2, 3])
    assert masked.sum(whole).dtype == torch.int64 and masked.mean(whole).dtype == torch.float32
    assert masked.sum(whole, dtype=torch.float64).dtype == torch.float64
    with pytest.raises(TypeError, match="expected mask of dtype torch.bool, but got torch.int64"):
        masked.sum(whole, mask=whole)
    with pytest.raises(RuntimeError, match="expand"):
        masked.sum(whole, mask=torch.ones(2, dtype=torch.bool))
    with pytest.raises(ValueError, match="Only one of unbiased and correction"):
        masked.var(whole.float(), 0, True, correction=1)
