"""Handlers of calls: what they see, how they nest, and that nothing is left of them."""

import contextlib
import threading

import pytest

import rushlight as torch

push, pop = torch._C._push_call_handler, torch._C._pop_call_handler


@contextlib.contextmanager
def handling(handler):
    push(handler)
    try:
        yield
    finally:
        pop()


class Log:
    def __init__(self):
        self.calls = []

    def __call__(self, op, args, kwargs):
        self.calls.append((op.__name__, args, kwargs))
        return op(*args, **kwargs)

    @property
    def names(self):
        return [name for name, _, _ in self.calls]


def test_functions_methods_and_keywords():
    x, log = torch.ones(2, 3), Log()
    with handling(log):
        torch.sum(x, dim=1, keepdim=True)
        x.exp()
        torch.add(x, x, alpha=2)
        torch.nn.functional.relu(x)
    assert log.names == ["sum", "exp", "add", "relu"]
    assert log.calls[0][2] == {"dim": 1, "keepdim": True}
    assert log.calls[2][1][0] is x
    assert log.calls[2][2] == {"alpha": 2}


def test_slots_of_numbers_and_sequences():
    x, log = torch.tensor([1.0, 2.0]), Log()
    with handling(log):
        results = [x + 1, 1 + x, x * 2, 2 * x, x - 1, x / 2, x**2, 2**x, -x, abs(x), x @ x, x > 1, x == x, x[0]]
        x += 1
        x[0] = 9.0
    expected = "add add mul mul sub div pow pow neg abs matmul gt eq __getitem__ add_ __setitem__"
    assert log.names == expected.split()
    assert [r.tolist() for r in results[:4]] == [[2.0, 3.0], [2.0, 3.0], [2.0, 4.0], [2.0, 4.0]]
    assert results[7].tolist() == [2.0, 4.0]
    assert x.tolist() == [9.0, 3.0]
    assert isinstance(log.calls[1][1][0], torch.Tensor)


def test_number_first_where_it_does_not_commute():
    x = torch.tensor([1.0, 2.0])
    with handling(Log()):
        assert (5 - x).tolist() == [4.0, 3.0]
        assert (2 / x).tolist() == [2.0, 1.0]
        assert (5 % x).tolist() == [0.0, 1.0]
        assert (5 // x).tolist() == [5.0, 2.0]


def test_what_is_no_operand_is_left_to_the_other_side():
    class Other:
        def __radd__(self, left):
            return "mine"

    with handling(Log()) as _:
        assert torch.ones(1) + Other() == "mine"
        with pytest.raises(TypeError):
            torch.ones(1) + "text"
        assert (torch.ones(1) == "text") is False


def test_handlers_nest_the_last_first():
    outer, inner = Log(), Log()
    with handling(outer), handling(inner):
        torch.ones(1).exp()
    assert inner.names == outer.names == ["ones", "exp"]

    def replaces(op, args, kwargs):
        return torch.zeros(1) if op is torch.exp else op(*args, **kwargs)

    log = Log()
    with handling(log), handling(replaces):
        assert torch.exp(torch.ones(1)).item() == 0.0
    assert log.names == ["ones", "zeros"]


def test_handler_is_back_after_an_exception():
    def refuses(op, args, kwargs):
        raise LookupError(op.__name__)

    x = torch.ones(1)
    with handling(refuses):
        for call in (lambda: x.exp(), lambda: x + 1, lambda: x[0], lambda: x > 1, lambda: -x, lambda: x**2):
            with pytest.raises(LookupError):
                call()
        with pytest.raises(LookupError):
            x[0] = 1.0
    assert x.exp().tolist() == pytest.approx([2.718281828])


def test_only_this_thread():
    log = Log()
    with handling(log):
        thread = threading.Thread(target=lambda: torch.ones(1).exp() + 1)
        thread.start()
        thread.join()
    assert log.names == []


def test_subclasses_and_their_own_methods():
    class Mine(torch.Tensor):
        def __mul__(self, other):
            return "mine"

    x, log = torch.ones(2).as_subclass(Mine), Log()
    parameter = torch.nn.Parameter(torch.ones(2))

    def add(a, b):
        return a + b

    with handling(log):

        class Later(torch.Tensor):
            pass

        assert x * 2 == "mine"
        add(parameter, parameter)
        later = torch.ones(2).as_subclass(Later)
        add(later, 1)
    assert "mul" not in log.names
    assert log.names.count("add") == 2  # a subclass asks itself, and then calls the operator
    with handling(log):
        add(later, 1)
    assert log.names.count("add") == 3
    add(later, 1)
    add(parameter, 1)
    assert log.names.count("add") == 3
    assert x * 2 == "mine"


def test_bad_use():
    with pytest.raises(TypeError, match="must be callable, but got int"):
        push(3)
    with pytest.raises(RuntimeError, match="no handler of calls to remove"):
        pop()
    assert (torch.ones(1) + 1).item() == 2.0
