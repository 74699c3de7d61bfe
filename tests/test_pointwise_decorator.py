"""`@rushlight.pointwise`: a Python function becomes one fused operator with derivatives of every order."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.nn import functional as F


def swish_like(x: Any, y: Any, scale: float = 2.0) -> Any:
    """A mixture of everything that is allowed."""
    z = torch.where(x > 0, x * y, x.sin()).clamp(-1, 1)
    return (z.sigmoid() + F.softplus(y)).pow(2) * scale + torch.add(x, y, alpha=3) - F.gelu(x) / 2


fused = torch.pointwise(swish_like)


def inputs(dtype: Any = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(3, 1, dtype=dtype, requires_grad=True), torch.randn(4, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_gradients_are_those_of_the_function(dtype: Any) -> None:
    x, y = inputs(dtype)
    expected, found = swish_like(x, y, 1.5), fused(x, y, 1.5)
    torch.testing.assert_close(found, expected)
    cotangent = torch.randn(3, 4, dtype=dtype)
    for one, other in zip(
        torch.autograd.grad(found, (x, y), cotangent), torch.autograd.grad(expected, (x, y), cotangent)
    ):
        torch.testing.assert_close(one, other)
    assert found.shape == (3, 4) and found.dtype == dtype


def test_derivatives_of_every_order() -> None:
    x, y = inputs()
    assert gradcheck(fused, (x, y)) and gradgradcheck(fused, (x, y))
    cube = torch.pointwise(lambda x: x**3)
    third = torch.ones((), dtype=torch.float64, requires_grad=True)
    value = cube(third)
    for expected in (3.0, 6.0, 6.0, 0.0):
        (value,) = torch.autograd.grad(value, third, create_graph=True)
        assert value.item() == expected


def test_it_is_one_node_with_the_name_of_the_function() -> None:
    x, y = inputs()
    assert fused(x, y).grad_fn.name() == "SwishLikeBackward0"
    assert {node.name() for node, _ in fused(x, y).grad_fn.next_functions if node} == {
        "torch::autograd::AccumulateGrad"
    }
    assert fused.__doc__ == swish_like.__doc__


def test_one_pass_over_memory() -> None:
    """Forward in one pass, and the gradient of the only input in another: nothing is kept between the steps."""
    hidden = torch.pointwise(lambda x: 0.5 * x * (1 + torch.tanh(0.79788 * (x + 0.044715 * x**3))))
    x = torch.randn(1 << 17, requires_grad=True)
    torch.reset_peak_memory_stats()
    before = torch.memory_stats()["peak_bytes"]
    hidden(x).sum().backward()
    assert torch.memory_stats()["peak_bytes"] - before <= 3 * 4 * x.numel()


def test_constants_of_one_element_are_taken() -> None:
    factor = torch.tensor(3.0)
    assert torch.pointwise(lambda x: x * factor)(torch.ones(2)).tolist() == [3.0, 3.0]


def test_whole_numbers_become_floating() -> None:
    doubled = torch.pointwise(lambda x: x + x)(torch.tensor([1, 2]))
    assert doubled.tolist() == [2.0, 4.0] and doubled.dtype == torch.get_default_dtype()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.sum(), "cannot call sum"),
        (lambda x: torch.cumsum(x, 0), "cannot call cumsum"),
        (lambda x: x.add_(1), "cannot call add_.*changes its argument"),
        (lambda x: x if x > 0 else -x, "cannot branch"),
        (lambda x: 3, "returns what it computed"),
        (lambda x: x * torch.ones(3), "as arguments"),
        (lambda x: x * 1j, "not complex"),
        (lambda *x: x, "fixed number"),
        (lambda: 1, "at least one parameter"),
        (lambda x, y="a": x, "not str"),
        (lambda x: torch.sigmoid(x, out=torch.ones(1)), "with out"),
    ],
)
def test_what_is_not_pointwise_is_refused(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        torch.pointwise(function)


def test_attributes_of_tensors_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'shape'"):
        torch.pointwise(lambda x: x.shape)


def test_a_failed_trace_leaves_nothing_behind() -> None:
    with pytest.raises(ZeroDivisionError):
        torch.pointwise(lambda x: x / (1 // 0))
    assert torch.ones(2).add(1).tolist() == [2.0, 2.0]


def test_functions_of_one_name_are_different() -> None:
    def make(power: int) -> Any:
        @torch.pointwise
        def raised(x: Any) -> Any:
            return x**power

        return raised

    squared, cubed = make(2), make(3)
    x = torch.tensor([2.0])
    assert (squared(x).item(), cubed(x).item()) == (4.0, 8.0)
