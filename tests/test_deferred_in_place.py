"""A change in place of a pending result is one more step of its work, and nobody can tell."""

import pytest

import rushlight as torch
from rushlight import _C, nn

SIZE = 1 << 16  # the least number of elements that is deferred


def numbers(start=0):
    return torch.arange(start, start + SIZE).remainder(97).float() / 16 - 3


def passes(function):
    """The result, looked at, and how many passes over memory were made for pending results."""
    before = _C._deferral_stats()["passes"]
    result = function()
    result.sum().item()
    return result, _C._deferral_stats()["passes"] - before


def eager(function):
    _C._set_deferral(False)
    try:
        return function().clone()
    finally:
        _C._set_deferral(True)


CHAINS = {
    "step": lambda x, y: (x + y).relu_(),
    "chain": lambda x, y: (x * 2).add_(y).mul_(0.5).sub_(1.0).relu_(),
    "self": lambda x, y: (x * y).mul_(x).add_(y, alpha=2.0),
    "number": lambda x, y: (x + y).mul_(3).clamp_(-1, 2),
    "pending operand": lambda x, y: (x + y).mul_(x - y),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_one_pass_with_the_same_bits(name):
    x, y = numbers(), numbers(5)
    result, n = passes(lambda: CHAINS[name](x, y))
    assert n == 1
    assert torch.equal(result, eager(lambda: CHAINS[name](x, y)))


def test_a_tensor_with_itself():
    def run():
        z = numbers() + 1
        z.mul_(z)
        z.add_(z.view(-1))
        return z

    assert torch.equal(run(), eager(run))


def test_who_has_read_the_old_numbers_keeps_them():
    x = numbers()
    z = x + 1
    double = z * 2  # pending, and reads z
    held = z.clone()
    z.mul_(3)
    view = z.view(256, -1)
    z.add_(1)
    assert torch.equal(double, x * 2 + 2) and torch.equal(held, x + 1)
    assert torch.equal(z, (x + 1) * 3 + 1) and torch.equal(view.reshape(-1), z)
    assert z._version == 2


def test_changing_an_operand_later_does_not_reach_the_result():
    x, y = numbers(), numbers(5)
    expected = (x + 1) * y
    z = (x + 1).mul_(y)
    x.zero_()
    y.zero_()
    assert torch.equal(z, expected)


def test_many_steps():
    def run():
        z = numbers() + 0.5
        for k in range(200):
            z.mul_(0.99).add_(k % 3)
        return z

    assert torch.equal(run(), eager(run))


def test_gradients():
    def run():
        x, y = numbers().requires_grad_(), numbers(5).requires_grad_()
        z = (x * y).add_(x).relu_()
        z.sum().backward()
        return torch.cat([z.detach(), x.grad, y.grad])

    assert torch.equal(run(), eager(run))


def test_a_saved_result_that_is_changed_is_noticed():
    x = numbers().requires_grad_()
    y = x.exp()
    z = y * 1
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_what_does_not_fit_is_refused_before_anything_changes():
    z = numbers() + 1
    before = z.clone()
    with pytest.raises(RuntimeError, match="output with shape"):
        z.add_(torch.ones(2, SIZE))
    with pytest.raises(RuntimeError, match="can't be cast"):
        z.mul_(1j)
    assert torch.equal(z, before) and z._version == 0


def test_a_complex_number_beside_a_large_tensor():
    x = numbers()
    z = x * 2j
    assert z.dtype == torch.complex64
    assert torch.equal(z.imag, x * 2) and not z.real.any()


def test_addition_and_relu_of_a_residual_block_are_one_pass():
    torch.manual_seed(0)
    conv, norm = nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
    x, residual = torch.randn(4, 16, 32, 32), torch.randn(4, 16, 32, 32)
    with torch.no_grad():
        normal, beside = norm(conv(x)), conv(residual)  # in the layout that convolutions like

    def block():
        return nn.functional.relu(normal + beside, inplace=True)

    result, n = passes(block)
    assert n == 1 and torch.equal(result, eager(block))
