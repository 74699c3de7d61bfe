"""Operands of other types take over Tensor's number slots (__torch_function__)."""

import operator

import pytest

import rushlight as torch


class Scale:
    """Not a tensor; implements what it knows."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.Tensor.lt:
            return NotImplemented
        return func, types, args


@pytest.mark.parametrize(
    ("slot", "method"),
    [
        (operator.add, "add"),
        (operator.sub, "sub"),
        (operator.mul, "mul"),
        (operator.truediv, "div"),
        (operator.floordiv, "floor_divide"),
        (operator.mod, "remainder"),
        (operator.pow, "pow"),
        (operator.matmul, "matmul"),
        (operator.and_, "bitwise_and"),
        (operator.lshift, "bitwise_left_shift"),
        (operator.iadd, "add_"),
        (operator.ipow, "pow_"),
        (operator.irshift, "bitwise_right_shift_"),
        (operator.eq, "eq"),
        (operator.ge, "ge"),
    ],
)
def test_a_foreign_operand_takes_over_a_number_slot(slot, method):
    x, scale = torch.ones(2), Scale()
    function, types, args = slot(x, scale)
    assert function == getattr(torch.Tensor, method)
    assert types == (Scale,) and args[0] is x and args[1] is scale


@pytest.mark.parametrize(
    ("slot", "method"),
    [
        (operator.add, "add"),
        (operator.sub, "__rsub__"),
        (operator.truediv, "__rtruediv__"),
        (operator.pow, "__rpow__"),
        (operator.matmul, "__rmatmul__"),
    ],
)
def test_a_foreign_operand_on_the_left(slot, method):
    x, scale = torch.ones(2), Scale()
    function, _types, args = slot(scale, x)
    assert function == getattr(torch.Tensor, method)
    assert args[0] is x and args[1] is scale


def test_a_foreign_operand_that_does_not_know_the_operator():
    with pytest.raises(TypeError, match="no implementation found for 'torch.lt'"):
        torch.ones(2) < Scale()  # noqa: B015
    with torch._C.DisableTorchFunctionSubclass(), pytest.raises(TypeError, match="unsupported operand"):
        torch.ones(2) + Scale()
