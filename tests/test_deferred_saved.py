"""Pending results that only derivatives or reductions want are not written to memory (src/core/operators/deferred.cpp)."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from deferral import eagerly
from rushlight import _C

SIZE = 1 << 16  # the least number of elements that is deferred
BYTES = SIZE * 4


def numbers(*shape, dtype=torch.float32, start=0):
    n = int(np.prod(shape)) if shape else SIZE
    return (torch.arange(start, start + n).remainder(97).to(dtype) / 16 - 2).reshape(shape or (n,)).clone()


def written(function):
    """The result of `function`, and how many tensors of SIZE numbers in float32 it left in memory."""
    before = torch.memory_stats()["allocated_bytes"]
    result = function()
    return result, round((torch.memory_stats()["allocated_bytes"] - before) / BYTES)


def look(x):
    return x.detach().numpy().copy()


def equal(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    assert np.array_equal(look(a), look(b), equal_nan=True)


# ---- saved tensors


def test_simple_results_that_only_a_derivative_wants_are_not_written():
    x = numbers().requires_grad_()

    def forward():
        y = 0.5 * x * (1 + torch.tanh(0.8 * (x + 0.04 * x * x * x)))
        look(y)
        return y

    y, count = written(forward)
    assert count == 2  # y, and the hyperbolic tangent
    weight = numbers(start=11)
    gradient = torch.autograd.grad(y, x, weight)[0]
    expected = eagerly(lambda: torch.autograd.grad(forward(), x, weight)[0])
    np.testing.assert_allclose(look(gradient), look(expected), rtol=2e-6, atol=1e-6)


def test_results_that_somebody_holds_are_written():
    x = numbers().requires_grad_()

    def forward():
        a = x * 2
        b = a * a
        look(b)
        return a, b

    (a, _), count = written(forward)
    assert count == 2
    passes = _C._deferral_stats()["passes"]
    look(a)
    assert _C._deferral_stats()["passes"] == passes


def test_results_that_take_long_are_written():
    x = numbers().requires_grad_()
    for costly in (torch.exp, torch.sin, torch.tanh):
        _, count = written(lambda f=costly: f(x).square().sum())
        assert count == 1, costly


def test_long_chains_of_saved_results_are_written_now_and_then():
    x = numbers().requires_grad_()

    def forward():
        y = x
        for _ in range(20):
            y = y * 0.5
            y = y * y
        look(y)
        return y

    y, count = written(forward)
    assert 4 <= count <= 10  # of 20 that are saved: none is further from one in memory than 8 instructions
    equal(torch.autograd.grad(y.sum(), x)[0], eagerly(lambda: torch.autograd.grad(forward().sum(), x)[0]))


def test_nothing_is_kept_for_more_than_it_would_take():
    """a + b is one tensor, its operands are two that nothing else keeps."""
    w = numbers().requires_grad_()

    def forward():
        a, b = numbers().clone(), numbers(start=5).clone()
        y = (a + b) * w
        look(y)
        return y

    _, count = written(forward)
    assert count == 2  # y and a + b


def test_a_change_of_an_operand_comes_after_the_saved_result():
    x = numbers().requires_grad_()
    y = (x * 2).square()
    look(y)
    with torch.no_grad():
        x.zero_()
    g = torch.autograd.grad(y.sum(), x)[0]
    equal(g, numbers() * 8)


def test_a_saved_result_whose_graph_is_walked_twice():
    x = numbers().requires_grad_()
    y = ((x * 2) * (x + 1)).square()
    first = torch.autograd.grad(y.sum(), x, retain_graph=True)[0]
    look(first)
    second = torch.autograd.grad(y.sum(), x)[0]
    equal(first, second)


def test_higher_derivatives_of_saved_results():
    x = numbers(dtype=torch.float64).requires_grad_()

    def second():
        y = ((x * 2) * (x + 1)).square() * x
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return torch.autograd.grad(g.square().sum(), x)[0]

    np.testing.assert_allclose(look(second()), look(eagerly(second)), rtol=1e-12)


def test_a_change_in_place_of_a_saved_result_is_refused_and_names_its_producer():
    x = numbers().requires_grad_()
    a = x * 2
    y = a.square()
    with torch.no_grad():
        a.add_(1)
    with pytest.raises(RuntimeError, match=r"is output 0 of Mul.*is at version 1; expected version 0"):
        y.sum().backward()


def test_saved_attributes_of_a_pending_result():
    x = numbers().requires_grad_()
    a = x * 2
    y = a * a
    look(y)
    equal(y.grad_fn._saved_self, numbers() * 2)
    assert y.grad_fn._saved_self.grad_fn is a.grad_fn
    z = x.exp()
    assert z.grad_fn._saved_result.grad_fn is z.grad_fn


def test_memory_goes_back_with_the_graph():
    x = numbers().requires_grad_()
    before = torch.memory_stats()["allocated_bytes"]
    for _ in range(3):
        y = (x * 2).square() * x
        look(y)
        del y
    assert torch.memory_stats()["allocated_bytes"] == before


# ---- reductions

SHAPES = {
    "flat": ((3 * SIZE + 77,), None),
    "rows": ((300, 700), 1),
    "columns": ((700, 300), 0),
    "outer and inner": ((12, 30, 600), (0, 2)),
    "middle": ((12, 30, 600), 1),
    "leading": ((12, 30, 600), (0, 1)),
    "all by name": ((300, 700), (0, 1)),
}
FOLDS = {
    "sum": lambda x, **k: x.sum(**k),
    "mean": lambda x, **k: x.mean(**k),
    "nansum": lambda x, **k: x.nansum(**k),
    "amax": lambda x, **k: x.amax(**k),
    "amin": lambda x, **k: x.amin(**k),
    "any": lambda x, **k: x.any(**k),
    "count_nonzero": lambda x, **k: x.count_nonzero(**k),
    "norm": lambda x, **k: torch.linalg.vector_norm(x, **k),
    "variance": lambda x, **k: x.var(**k),
    "logsumexp": lambda x, dim: x.logsumexp(dim=dim),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", FOLDS)
def test_a_reduction_of_pending_numbers_has_the_bits_of_one_of_memory(name, shape, dtype):
    sizes, dim = SHAPES[shape]
    x = numbers(*sizes, dtype=dtype)
    x.view(-1)[5] = float("nan") if name in ("nansum", "amax") else 3
    how = {} if dim is None and name != "logsumexp" else {"dim": 0 if dim is None else dim}
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        try:
            pending = FOLDS[name]((x * 1.5 + 0.25).tanh(), **how)
        finally:
            torch.set_num_threads(2)
        equal(pending, eagerly(lambda: FOLDS[name]((x * 1.5 + 0.25).tanh(), **how)))


def test_what_is_reduced_and_dropped_is_never_written():
    x, y = torch.rand(SIZE), torch.rand(SIZE)
    before = torch.memory_stats()["allocated_bytes"]
    torch.reset_peak_memory_stats()
    total = ((x - y) * (x - y)).sum()
    assert torch.memory_stats()["peak_bytes"] - before < BYTES / 8
    equal(total, eagerly(lambda: ((x - y) * (x - y)).sum()))


def test_what_is_held_is_written_when_it_is_wanted_again():
    x = numbers()
    y = x * 2 + 1
    passes = lambda: _C._deferral_stats()["passes"]  # noqa: E731
    start = passes()
    first, count = written(lambda: y.sum())
    assert count == 0 and passes() == start + 1
    second, count = written(lambda: y.amax())
    assert count == 1 and passes() == start + 2
    third, count = written(lambda: y.sum())
    assert count == 0 and passes() == start + 2
    equal(first, third)
    equal(y, numbers() * 2 + 1)


def test_what_is_held_and_takes_long_is_written_at_once():
    x = numbers()
    y = x.tanh().sin().exp().sin().tanh().cos()
    _, count = written(lambda: y.sum())
    assert count == 1


def test_a_change_of_an_operand_comes_after_the_reduced_result():
    x = numbers()
    y = x * 2
    y.sum()
    x.zero_()
    equal(y, numbers() * 2)


def test_a_change_in_place_of_a_reduced_result():
    x = numbers()
    y = x * 2
    before = y.sum()
    y.add_(1)
    equal(y.sum(), eagerly(lambda: (numbers() * 2 + 1).sum()))
    equal(before, eagerly(lambda: (numbers() * 2).sum()))


def test_the_gradient_of_a_broadcast_operand_is_summed_while_it_is_computed():
    x, b = numbers(700, 300).requires_grad_(), numbers(300).requires_grad_()

    def gradients():
        return torch.autograd.grad((x * 2 * b.expand(700, 300)).tanh().sum(), [x, b])

    for got, expected in zip(gradients(), eagerly(gradients), strict=True):
        np.testing.assert_allclose(look(got), look(expected), rtol=1e-5, atol=1e-5)


def test_a_saved_result_that_is_reduced_is_written_once():
    x = numbers().requires_grad_()

    def forward():
        y = x.exp()
        return y.sum()

    total, count = written(forward)
    assert count == 1  # the derivative wants it
    equal(torch.autograd.grad(total, x)[0], numbers().exp())
