"""Modes of overrides: what is asked for every call while it is active (rushlight.overrides.TorchFunctionMode)."""

import pytest

import rushlight as torch
from rushlight.overrides import BaseTorchFunctionMode, TorchFunctionMode


class Sub(torch.Tensor):
    pass


def sub(n=3):
    return torch.ones(n).as_subclass(Sub)


class Counting(TorchFunctionMode):
    def __init__(self):
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_a_mode_is_asked_for_every_call():
    x = torch.ones(2)
    with Counting() as mode:
        torch.zeros(2)
        (x + 1).exp().sum()
        x[0] = 5
    assert mode.names[:4] == ["zeros", "add", "exp", "sum"]
    count = len(mode.names)
    assert torch.exp(x).shape == (2,) and len(mode.names) == count


def test_modes_inside_of_modes():
    with Counting() as outer, Counting() as inner, BaseTorchFunctionMode():
        torch.ones(1).exp()
    assert outer.names == inner.names == ["ones", "exp"]


def test_a_mode_may_give_another_result():
    class Ones(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return "ones" if func is torch.zeros else func(*args, **(kwargs or {}))

    with Ones():
        assert torch.zeros(3) == "ones" and torch.ones(3).tolist() == [1, 1, 1]
    with TorchFunctionMode(), pytest.raises(NotImplementedError):
        torch.zeros(3)
    with pytest.raises(KeyError), Ones():
        raise KeyError
    assert torch.zeros(1).tolist() == [0]


def test_a_mode_sees_functions_written_in_python_and_not_what_is_inside_of_them():
    x = torch.ones(2, 3)
    with Counting() as outer, Counting() as inner:
        torch.nn.functional.cross_entropy(x, torch.zeros(2, dtype=torch.int64))
        torch.einsum("ij,ij->i", x, x)
        x + 1
    assert inner.names == outer.names == ["zeros", "cross_entropy", "einsum", "add"]
    torch.nn.functional.softmax(x, 1)
    assert len(inner.names) == 4


def test_a_mode_sees_which_types_take_over():
    seen = []

    class Types(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(types)
            return func(*args, **(kwargs or {}))

    x = sub()
    with Types():
        result = torch.exp(x)
    assert type(result) is Sub
    assert seen[0] == (Sub,)
