"""Custom Functions: what backward may return, and derivatives of higher order."""

import pytest

import rushlight as torch
from rushlight.autograd import Function, grad, gradcheck, gradgradcheck
from rushlight.autograd.function import (
    InplaceFunction,
    once_differentiable,
)
from rushlight.testing import assert_close
from sample_functions import Double, Multiply, function


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


# backward


def test_none_is_no_gradient(x):
    f = function(lambda ctx, a, b: a * b, lambda ctx, g: (g, None))
    b = torch.ones(3, requires_grad=True)
    f.apply(x, b).sum().backward()
    assert x.grad is not None
    assert b.grad is None
    assert grad(f.apply(x, b).sum(), b, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        grad(f.apply(x, b).sum(), b)


def test_single_none_for_a_single_input(x):
    assert grad(function(lambda ctx, a: a * 2, lambda ctx, g: None).apply(x).sum(), x, allow_unused=True) == (None,)


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda g: (g, g), r"MadeBackward returned an incorrect number of gradients \(expected 1, got 2\)"),
        (lambda g: (), r"incorrect number of gradients \(expected 1, got 0\)"),
        (lambda g: 3, r"expected Variable or None \(got int\)"),
        (lambda g: ("a",), r"expected Variable or None \(got str\)"),
        (lambda g: [g], r"expected Variable or None \(got list\)"),
        (lambda g: torch.ones(2), r"invalid gradient at index 0 - got \[2\] but expected shape compatible with \[3\]"),
    ],
)
def test_wrong_gradients_are_refused_with_numbers(x, returned, words):
    f = function(lambda ctx, a: a * 2, lambda ctx, g: returned(g))
    with pytest.raises(RuntimeError, match=words):
        f.apply(x).sum().backward()
    assert x.grad is None


def test_too_few_gradients(x):
    f = function(lambda ctx, a, b: a * 2, lambda ctx, g: g)
    with pytest.raises(RuntimeError, match=r"\(expected 2, got 1\)"):
        f.apply(x, x).sum().backward()


def test_gradient_for_what_is_not_a_tensor(x):
    f = function(lambda ctx, a, k: a * k, lambda ctx, g: (g, g))
    with pytest.raises(RuntimeError, match="gradient different than None at position 2, but .* was not a Variable"):
        f.apply(x, 3).sum().backward()
    f.apply(x, torch.ones(3)).sum().backward()
    assert x.grad.tolist() == [1.0] * 3


def test_extra_trailing_none_is_accepted(x):
    function(lambda ctx, a: a * 2, lambda ctx, g: (g * 2, None, None)).apply(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_gradients_are_summed_to_the_shape_and_cast_to_the_dtype_of_the_input(x):
    f = function(lambda ctx, a: a * 2, lambda ctx, g: torch.ones(4, 3, dtype=torch.float64))
    f.apply(x).sum().backward()
    assert x.grad.tolist() == [4.0] * 3
    assert x.grad.dtype == torch.float32


def test_exception_in_backward_arrives_as_itself(x):
    class Mine(Exception):
        pass

    def backward(ctx, g):
        raise Mine("text")

    y = function(lambda ctx, a: a * 2, backward).apply(x)
    with pytest.raises(Mine, match="text"):
        y.sum().backward()
    assert torch.is_grad_enabled()
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_second_backward_after_freeing(x):
    y = Multiply.apply(x, x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    z = Double.apply(x).sum()
    z.backward()
    z.backward()


def test_vjp_is_another_name_of_backward(x):
    f = function(lambda ctx, a: a * 2, vjp=lambda ctx, g: g * 7)
    f.apply(x).sum().backward()
    assert x.grad.tolist() == [7.0] * 3
    both = function(lambda ctx, a: a * 2, lambda ctx, g: g, vjp=lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        both.apply(x).sum().backward()


def test_backward_may_be_replaced_later(x):
    class Changing(Double):
        pass

    y = Changing.apply(x)
    Changing.backward = staticmethod(lambda ctx, g: g * 9)
    y.sum().backward()
    assert x.grad.tolist() == [9.0] * 3


def test_backward_may_use_functions_and_engines(x):
    def backward(ctx, g):
        with torch.enable_grad():
            t = torch.full((3,), 2.0, requires_grad=True)
            (inner,) = grad((t**3).sum(), t)
        return Double.apply(g) * inner

    function(lambda ctx, a: a * 2, backward).apply(x).sum().backward()
    assert x.grad.tolist() == [24.0] * 3


def test_missing_methods_say_so(x):
    with pytest.raises(NotImplementedError, match="must implement the forward function"):
        type("Empty", (Function,), {}).apply(x)
    with pytest.raises(NotImplementedError, match="must implement either the backward or vjp method"):
        function(lambda ctx, a: a * 2).apply(x).sum().backward()
    with pytest.raises(NotImplementedError, match="jvp"):
        Double.jvp(None)
    with pytest.raises(NotImplementedError, match="generate_vmap_rule=True"):
        Double.vmap(None, (0,))
    with pytest.raises(NotImplementedError, match="setup_context"):
        Double.setup_context(None, (), None)
    assert Double.generate_vmap_rule is False


# legacy forms


def test_instances_warn_and_cannot_be_called(x):
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        instance = Double()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method"):
        instance(x)


def test_methods_that_are_not_static_take_the_context_as_self(x):
    class Old(Function):
        def forward(self, a):
            self.factor = 3.0
            return a * self.factor

        def backward(self, g):
            return g * self.factor

    Old.apply(x).sum().backward()
    assert x.grad.tolist() == [3.0] * 3


def test_inplace_function_keeps_its_attribute():
    with pytest.warns(DeprecationWarning):
        assert InplaceFunction(inplace=True).inplace is True
    assert issubclass(InplaceFunction, Function)


def test_names_left_out_say_so():
    with pytest.raises(AttributeError, match="NestedIOFunction"):
        _ = torch.autograd.function.NestedIOFunction
    with pytest.raises(AttributeError, match="torch.autograd.gradd.*nearest.*torch.autograd.grad"):
        _ = torch.autograd.gradd


# higher order


class Sine(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a.sin()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos()


def test_backward_of_differentiable_operations_is_differentiable():
    a = torch.tensor([0.3, -0.7], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([1.1, 0.2], dtype=torch.float64, requires_grad=True)
    assert gradcheck(Multiply.apply, (a, b))
    assert gradgradcheck(Multiply.apply, (a, b))
    d = Sine.apply(a).sum()
    for expected in (a.cos(), -a.sin(), -a.cos(), a.sin()):
        (d,) = grad(d.sum(), a, create_graph=True)
        assert_close(d, expected)


def test_backward_records_only_if_asked(x):
    seen = []
    f = function(lambda ctx, a: a * 2, lambda ctx, g: seen.append(torch.is_grad_enabled()) or g * 2)
    grad(f.apply(x).sum(), x)
    grad(f.apply(x).sum(), x, create_graph=True)
    assert seen == [False, True]


def test_derivative_through_a_saved_output():
    f = function(
        lambda ctx, a: (lambda y: ctx.save_for_backward(y) or y)(a.exp()),
        lambda ctx, g: g * ctx.saved_tensors[0],
    )
    a = torch.tensor([0.3, -0.7], dtype=torch.float64, requires_grad=True)
    assert gradgradcheck(f.apply, (a,))


def test_once_differentiable(x):
    seen = []

    class Square(Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            seen.append(torch.is_grad_enabled())
            return 2 * g * ctx.saved_tensors[0]

    (g,) = grad(Square.apply(x).sum(), x)
    assert g.tolist() == [2.0, 4.0, 6.0]
    (g,) = grad((Square.apply(x) * x).sum(), x, create_graph=True)
    assert seen == [False, False]
    with pytest.raises(RuntimeError, match="trying to differentiate twice .* @once_differentiable"):
        g.sum().backward()


def test_once_differentiable_keeps_none_and_names(x):
    @once_differentiable
    def backward(ctx, g):
        """Doc."""
        return g * 2, None

    assert backward.__doc__ == "Doc."
    v = torch.ones((), requires_grad=True)
    f = function(lambda ctx, a, k: a * k, backward)
    (g,) = grad(f.apply(x, 2).sum(), x, v, create_graph=True)
    assert g.requires_grad
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad(g.sum(), v, allow_unused=True)


def test_create_graph_through_a_constant_gradient(x):
    (g,) = grad(function(lambda ctx, a: a.sum(), lambda ctx, g: torch.ones(3)).apply(x), x, create_graph=True)
    assert not g.requires_grad
