"""Second derivatives through intermediates that a Function's forward saved: right, or refused."""

import gc
import weakref

import pytest

import rushlight as torch
from rushlight.autograd import Function, grad, gradgradcheck


def leaf(*values):
    return torch.tensor(list(values), dtype=torch.float64, requires_grad=True)


class SquaredExp(Function):
    """exp(x)^2 by its intermediate alone."""

    runs = 0

    @staticmethod
    def forward(ctx, x):
        SquaredExp.runs += 1
        e = x.exp()
        ctx.save_for_backward(e)
        return e * e

    @staticmethod
    def backward(ctx, g):
        (e,) = ctx.saved_tensors
        return 2 * e * e * g


class TimesTanh(Function):
    """x tanh(y), by the separate setup_context, with an intermediate as hidden output."""

    @staticmethod
    def forward(x, y, k):
        return x * y.tanh() * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, ctx.k = inputs
        ctx.save_for_backward(x, y.tanh())

    @staticmethod
    def backward(ctx, g):
        x, t = ctx.saved_tensors
        return g * t * ctx.k, g * x * (1 - t * t) * ctx.k, None


def test_second_and_third_derivatives():
    x = leaf(0.5, -1.0)
    (first,) = grad(SquaredExp.apply(x).sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x, create_graph=True)
    (third,) = grad(second.sum(), x)
    for n, derivative in enumerate((first, second, third), 1):
        torch.testing.assert_close(derivative.detach(), (2**n * (2 * x).exp()).detach())


def test_against_differences():
    assert gradgradcheck(SquaredExp.apply, leaf(0.5, -1.0))
    assert gradgradcheck(lambda x, y: TimesTanh.apply(x, y, 3), (leaf(0.5, -1.0), leaf(0.3, 0.7)))
    assert gradgradcheck(lambda x: SquaredExp.apply(x.sin() * 2).cos(), leaf(0.5, -1.0))


def test_first_derivative_runs_forward_once():
    SquaredExp.runs = 0
    x = leaf(0.5)
    SquaredExp.apply(x).sum().backward()
    assert SquaredExp.runs == 1
    y = SquaredExp.apply(x)
    assert y.grad_fn.saved_tensors[0].requires_grad is False
    assert SquaredExp.runs == 2
    y.sum().backward(create_graph=True)
    assert SquaredExp.runs == 3


class Masked(Function):
    """A saved constant and a saved mask: neither depends smoothly on the input, so none needs a second run's history."""

    scale = torch.tensor([2.0, 3.0], dtype=torch.float64)

    @staticmethod
    def forward(ctx, x):
        mask = (torch.rand(2) < 2).double() * (x > 0)
        ctx.save_for_backward(mask, Masked.scale, x)
        return x * x * mask * Masked.scale

    @staticmethod
    def backward(ctx, g):
        mask, scale, x = ctx.saved_tensors
        return 2 * x * g * mask * scale


def test_constants_stay_constants_and_the_generator_goes_on():
    x = leaf(1.0, -1.0)
    y = Masked.apply(x).sum()
    state = torch.get_rng_state()
    (first,) = grad(y, x, create_graph=True)
    assert torch.equal(torch.get_rng_state(), state)
    (second,) = grad(first.sum(), x)
    assert second.tolist() == [4.0, 0.0]


def test_forward_that_does_not_repeat_itself_is_refused():
    class Counting(Function):
        calls = 0

        @staticmethod
        def forward(ctx, x):
            Counting.calls += 1
            e = x * Counting.calls
            ctx.save_for_backward(e)
            return e * e

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    x = leaf(1.0)
    y = Counting.apply(x).sum()
    with pytest.raises(RuntimeError, match="Counting.*depends on saved tensor 0, an intermediate"):
        grad(y, x, create_graph=True)
    (first,) = grad(Counting.apply(x).sum(), x)
    assert not first.requires_grad


def test_argument_changed_in_place_is_refused():
    x = leaf(1.0)
    argument = x * 1
    y = SquaredExp.apply(argument).sum()
    argument.add_(1)
    with pytest.raises(RuntimeError, match="second derivative of SquaredExp needs its argument 0.*version 1; expected"):
        grad(y, x, create_graph=True)
    assert x.grad is None


def test_nan_intermediates_are_equal_to_themselves():
    x = leaf(float("nan"), 1.0)
    (first,) = grad(SquaredExp.apply(x).sum(), x, create_graph=True)
    assert grad(first.sum(), x)[0].isnan().tolist() == [True, False]


def test_arguments_are_given_up_after_backward():
    x = leaf(1.0)
    argument = x * 1
    watched = weakref.ref(argument)
    y = SquaredExp.apply(argument).sum()
    del argument
    gc.collect()
    assert watched() is not None
    y.backward()
    gc.collect()
    assert watched() is None


def test_inputs_and_outputs_are_saved_as_ever():
    class Exp(Function):
        runs = 0

        @staticmethod
        def forward(ctx, x):
            Exp.runs += 1
            y = x.exp()
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            return ctx.saved_tensors[1] * g

    x = leaf(1.0)
    (first,) = grad(Exp.apply(x).sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x)
    torch.testing.assert_close(second, x.detach().exp())
    assert Exp.runs == 1
