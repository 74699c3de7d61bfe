"""Operands that are repeated over a large result take part in pending work (src/core/operators/pending.h, Spread)."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from deferral import eagerly
from rushlight import _C


def numbers(*shape, dtype=torch.float32, start=0):
    n = int(np.prod(shape))
    return ((torch.arange(start, start + n) * 7).remainder(101).to(dtype) / 16 - 3).reshape(shape).clone()


def deferred(function):
    """The result, and how many results were left pending on the way."""
    before = _C._deferral_stats()["deferred"]
    result = function()
    return result, _C._deferral_stats()["deferred"] - before


def equal(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride()
    assert np.array_equal(a.detach().numpy(), b.detach().numpy(), equal_nan=True)


# the result's sizes, the other operand, and whether it can stay pending
REPEATED = {
    "a row": ((300, 400), lambda: numbers(400), True),
    "a row with leading ones": ((300, 400), lambda: numbers(1, 400), True),
    "a column": ((300, 400), lambda: numbers(300, 1), True),
    "a plane": ((20, 30, 300), lambda: numbers(30, 300), True),
    "channels": ((20, 30, 300), lambda: numbers(30, 1), True),
    "channels of one": ((20, 30, 300), lambda: numbers(1, 30, 1), True),
    "rows of each": ((20, 30, 300), lambda: numbers(20, 1, 300), True),
    "rows of each, repeated": ((4, 20, 10, 300), lambda: numbers(20, 1, 300), True),
    "columns of each": ((20, 30, 300), lambda: numbers(20, 30, 1), True),
    "columns of each, repeated": ((4, 20, 10, 300), lambda: numbers(1, 20, 10, 1), True),
    "an expanded row": ((300, 400), lambda: numbers(400).expand(300, 400), True),
    "an expanded column": ((300, 400), lambda: numbers(300, 1).expand(300, 400), True),
    "part of a vector": ((300, 400), lambda: numbers(1000)[555:955], True),
    "part of a vector of other numbers": ((300, 400), lambda: numbers(700)[13:313].unsqueeze(1), True),
    "a double row": ((300, 400), lambda: numbers(400, dtype=torch.float64), False),
    "whole numbers": ((300, 400), lambda: torch.arange(400), False),
    "every other number": ((300, 400), lambda: numbers(800)[::2], False),
    "a transposed plane": ((300, 20, 30), lambda: numbers(30, 20).t(), False),
    "short runs": ((4000, 20), lambda: numbers(20), False),
    "short runs of a column": ((4000, 20), lambda: numbers(4000, 1), False),
    "repetitions within repetitions": ((4, 5, 6, 10, 300), lambda: numbers(5, 1, 10, 1), False),
}


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("name", REPEATED)
def test_a_repeated_operand(name, swap):
    sizes, other, stays = REPEATED[name]
    x, b = numbers(*sizes), other()

    def run():
        y = b - x if swap else x - b
        return (y * 0.25).exp() * b

    y, count = deferred(run)
    assert (count == 4) == stays
    equal(y, eagerly(run))


@pytest.mark.parametrize("name", [n for n in REPEATED if REPEATED[n][2]])
def test_gradients_of_a_repeated_operand(name):
    sizes, other, _ = REPEATED[name]

    def gradients():
        x, b = numbers(*sizes, dtype=torch.float64), other().double().detach()
        x.requires_grad_(), b.requires_grad_()
        y = ((x - b) * 0.25).tanh() * b
        return torch.autograd.grad(y, [x, b], numbers(*sizes, dtype=torch.float64, start=17))

    for got, expected in zip(gradients(), eagerly(gradients), strict=True):
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-11, atol=1e-11)


def test_nothing_but_repeated_operands():
    a, b = numbers(300, 1), numbers(1, 400, start=5)
    y, count = deferred(lambda: (a - b) * (a + b))
    assert count == 3
    equal(y, eagerly(lambda: (a - b) * (a + b)))


@pytest.mark.parametrize("reduce", [lambda y: y.sum(), lambda y: y.sum(0), lambda y: y.mean(1), lambda y: y.amax(0)])
def test_distances_are_reduced_without_being_written(reduce):
    a, b = torch.rand(600, 1), torch.rand(500)
    before = torch.memory_stats()["allocated_bytes"]
    torch.reset_peak_memory_stats()
    result = reduce((a - b).square())
    assert torch.memory_stats()["peak_bytes"] - before < 600 * 500 * 4 / 8
    equal(result, eagerly(lambda: reduce((a - b).square())))


def test_runs_of_different_lengths_in_one_pass():
    x, row, plane, column = numbers(6, 300, 260), numbers(260), numbers(300, 260), numbers(6, 1, 1)

    def run():
        return (x * row + plane) * column - x.reshape(-1).mul(0.5).reshape(6, 300, 260) * row

    y, count = deferred(run)
    assert count >= 6
    equal(y, eagerly(run))


def test_a_chain_that_changes_its_shape_between_repeated_operands():
    x, row, longer = numbers(300, 400), numbers(400), numbers(1200)

    def run():
        return ((x * row).reshape(100, 1200) + longer).reshape(-1) * 2

    equal(run(), eagerly(run))


def test_a_change_of_a_repeated_operand_comes_after_the_read():
    x, row = numbers(300, 400), numbers(400)
    y = x * row
    row.zero_()
    equal(y, eagerly(lambda: numbers(300, 400) * numbers(400)))


def test_a_repeated_operand_that_is_pending_itself():
    x, column = numbers(300, 400), numbers(70_000)
    y = x * (column * 2)[:300].unsqueeze(1)
    equal(y, eagerly(lambda: numbers(300, 400) * (numbers(70_000) * 2)[:300].unsqueeze(1)))


def test_in_place_forms_with_a_repeated_operand():
    x, row = numbers(300, 400), numbers(400)
    y = (x * 2).add_(row).mul_(row)
    equal(y, eagerly(lambda: (numbers(300, 400) * 2).add_(row).mul_(row)))
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        row.add_(x * 2)


def test_threads_do_not_change_a_bit():
    x, row, column = numbers(700, 300), numbers(300), numbers(700, 1)
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        try:
            y = (x - column) * row
            results.append((y.sum(0), y.sum(), y.tanh()))
        finally:
            torch.set_num_threads(2)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            equal(a, b)


def test_a_softmax_written_out():
    x = numbers(300, 500).requires_grad_()

    def run():
        e = (x - x.amax(1, keepdim=True).detach()).exp()
        p = e / e.sum(1, keepdim=True)
        return p, *torch.autograd.grad(p.square().sum(), x)

    for got, expected in zip(run(), eagerly(run), strict=True):
        np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), rtol=2e-6, atol=1e-7)
    np.testing.assert_allclose(run()[0].detach().numpy(), x.detach().softmax(1).numpy(), rtol=1e-5)


def test_forward_mode_through_a_repeated_operand():
    x, row = numbers(300, 400), numbers(400)
    dx, drow = numbers(300, 400, start=3), numbers(400, start=5)

    def run():
        return torch.func.jvp(lambda x, row: ((x - row) * row).sin(), (x, row), (dx, drow))

    for got, expected in zip(run(), eagerly(run), strict=True):
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
