"""Variable, the former name of differentiable tensors, and its volatile flag."""

import warnings

import pytest

import rushlight as torch
from rushlight.autograd import Variable


def volatile(*numbers):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return Variable(torch.tensor(numbers), volatile=True)


def test_makes_a_leaf_that_shares_its_data():
    data = torch.ones(2)
    v = Variable(data, requires_grad=True)
    assert v is not data
    assert v.data_ptr() == data.data_ptr()
    assert v.requires_grad
    assert v.is_leaf
    assert not data.requires_grad
    assert not Variable(data).requires_grad
    (v * 3).sum().backward()
    assert v.grad.tolist() == [3.0, 3.0]


def test_every_tensor_is_a_variable():
    assert isinstance(torch.ones(1), Variable)
    assert isinstance(Variable(torch.ones(1)), torch.Tensor)
    assert type(Variable(torch.ones(1))) is torch.Tensor
    assert not isinstance(3, Variable)
    assert not isinstance([torch.ones(1)], Variable)


def test_cuts_the_history():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    v = Variable(y, requires_grad=True)
    assert v.is_leaf
    (v * 5).sum().backward()
    assert x.grad is None
    assert v.grad.tolist() == [5.0, 5.0]


def test_shares_the_version():
    x = torch.ones(2)
    v = Variable(x)
    x.add_(1)
    assert v._version == 1


def test_arguments():
    assert Variable().shape == (0,)
    assert Variable(data=torch.ones(1), requires_grad=True).requires_grad
    for bad in (3, [1.0], "a"):
        with pytest.raises(TypeError, match="Variable data has to be a tensor, but got"):
            Variable(bad)
    with pytest.raises(RuntimeError, match="loating point"):
        Variable(torch.tensor([1]), requires_grad=True)


def test_volatile_is_deprecated():
    with pytest.warns(DeprecationWarning, match=r"Use `with torch.no_grad\(\):` instead"):
        v = Variable(torch.ones(2), volatile=True)
    assert v.tolist() == [1.0, 1.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Variable(torch.ones(2), volatile=False)


def test_nothing_computed_from_volatile_is_recorded():
    v = volatile(1.0, 2.0)
    w = torch.ones(2, requires_grad=True)
    y = v * w
    assert not y.requires_grad
    assert y.grad_fn is None
    assert not (y + w).requires_grad
    assert not (v[1:] * w[1:]).requires_grad
    assert not torch.cat([w, v]).requires_grad
    assert not (v.detach() * w).requires_grad
    assert (w * 2).requires_grad


def test_volatile_goes_before_requires_grad():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        v = Variable(torch.ones(2), requires_grad=True, volatile=True)
    assert not (v * 2).requires_grad


def test_data_of_volatile_is_free():
    v = volatile(1.0, 2.0)
    w = torch.ones(2, requires_grad=True)
    assert (v.data * w).requires_grad


def test_volatile_operand_of_an_in_place_operation():
    v = volatile(1.0, 2.0)
    w = torch.ones(2, requires_grad=True)
    y = w * 2
    y += v
    assert not y.requires_grad
    assert y.tolist() == [3.0, 4.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        w += v
    assert w.tolist() == [1.0, 1.0]


def test_volatile_does_not_reach_functions():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * b

        @staticmethod
        def backward(ctx, g):
            return g, g

    w = torch.ones(2, requires_grad=True)
    assert not Double.apply(volatile(1.0, 2.0), w).requires_grad
    assert Double.apply(w, w).requires_grad
