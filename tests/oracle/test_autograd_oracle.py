"""Random programs of operations, views and in-place changes, and lists of calls: PyTorch decides what is right."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = pytest.mark.oracle

Program = list[tuple[str, int, int]]


def result_of(call: Callable[[], Any]) -> Any:
    """What a call gives, in a form that both packages share: numbers, or the kind of error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(call())
        except Exception as error:
            return ("raises", next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"))


def plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, torch.Tensor | rushlight.Tensor):
        dtype = str(value.dtype).split(".")[-1]
        return (dtype, list(value.shape), bool(value.requires_grad), Numbers(value.detach().tolist()))
    return value


class Numbers:
    """Nested lists of numbers, equal up to rounding."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Numbers) and close(self.numbers, other.numbers)

    def __repr__(self) -> str:
        return repr(self.numbers)

    __hash__ = None  # type: ignore[assignment]


def close(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(close(x, y) for x, y in zip(a, b, strict=True))
    if a != a or b != b:
        return a != a and b != b
    return a == b or abs(a - b) <= 1e-9 * max(1.0, abs(a), abs(b))


# Random programs. Each step takes two of the values so far and gives a new one, or changes one of them.


def in_no_grad(t: Any, call: Callable[[], Any]) -> Any:
    with t.no_grad():
        return call()


def assign(target: Any, index: Any, value: Any) -> Any:
    target[index] = value
    return target


# Not detach_(): what was saved of a tensor still serves after it here, where PyTorch refuses.
STEPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "add": lambda t, a, b: a + b,
    "sub": lambda t, a, b: a - b,
    "mul": lambda t, a, b: a * b,
    "scale": lambda t, a, b: a * 0.5,
    "shift": lambda t, a, b: a + 1.5,
    "neg": lambda t, a, b: -a,
    "sin": lambda t, a, b: a.sin(),
    "tanh": lambda t, a, b: a.tanh(),
    "square": lambda t, a, b: a**2,
    "clone": lambda t, a, b: a.clone(),
    "detach": lambda t, a, b: a.detach(),
    "sum": lambda t, a, b: a.sum(),
    "mean rows": lambda t, a, b: a.mean(0),
    "rows": lambda t, a, b: a[0],
    "tail": lambda t, a, b: a[1:],
    "columns": lambda t, a, b: a[..., ::2],
    "transpose": lambda t, a, b: a.t(),
    "flat": lambda t, a, b: a.view(-1),
    "expand": lambda t, a, b: a.expand(2, *a.shape),
    "unsqueeze": lambda t, a, b: a.unsqueeze(0),
    "first of many": lambda t, a, b: a.unbind(0)[0],
    "sin_": lambda t, a, b: a.sin_(),
    "scale_": lambda t, a, b: a.mul_(0.5),
    "add_": lambda t, a, b: a.add_(b),
    "mul_": lambda t, a, b: a.mul_(b if b is not a else 2.0),  # a.mul_(a) has a gradient here; PyTorch refuses it
    "zero_": lambda t, a, b: a.zero_(),
    "copy_": lambda t, a, b: a.copy_(b),
    "assign": lambda t, a, b: assign(a, 0, b),
    "assign tail": lambda t, a, b: assign(a, slice(1, None), 2.0),
    "requires_grad_": lambda t, a, b: a.requires_grad_(),
    "no_grad view": lambda t, a, b: in_no_grad(t, lambda: a[1:]),
    "no_grad sin": lambda t, a, b: in_no_grad(t, lambda: a.sin()),
    "no_grad scale_": lambda t, a, b: in_no_grad(t, lambda: a.mul_(0.5)),
}

step = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 11), st.integers(0, 11))


def run(t: Any, program: Program) -> list[Any]:
    """Everything that can be seen of a program: each step's value or error, then the gradients of the leaves."""
    leaves = [
        t.tensor([[0.3, -0.7, 1.1], [0.2, 0.5, -0.4]], dtype=t.float64, requires_grad=True),
        t.tensor([0.9, -0.1, 0.6], dtype=t.float64, requires_grad=True),
    ]
    values = [*leaves, t.tensor([[1.5, 0.5, -1.0]] * 2, dtype=t.float64), leaves[0] * 1, leaves[1] * 1]
    seen: list[Any] = []
    for name, i, j in program:
        a, b = values[i % len(values)], values[j % len(values)]
        kept: list[Any] = []
        seen.append(
            (name, result_of(lambda a=a, b=b, name=name, kept=kept: kept.append(STEPS[name](t, a, b)) or kept[0]))
        )
        if kept and all(kept[0] is not v for v in values):
            values.append(kept[0])
    seen.append(("values", result_of(lambda: values)))
    seen.append(("versions", [v._version for v in values]))
    seen.append(("leaves", [result_of(lambda v=v: v.is_leaf) for v in values]))

    def gradients() -> Any:
        total = sum((v.sum() for v in values if v.requires_grad), t.zeros((), dtype=t.float64))
        first = t.autograd.grad(total, leaves, allow_unused=True, create_graph=True)
        again = sum((g.sin().sum() for g in first if g is not None and g.requires_grad), t.zeros((), dtype=t.float64))
        return first, t.autograd.grad(again, leaves, allow_unused=True)

    seen.append(("gradients", result_of(gradients)))
    return seen


@settings(max_examples=400, deadline=None)
@given(st.lists(step, min_size=1, max_size=8))
def test_random_programs(program: Program) -> None:
    for ours, theirs in zip(run(rushlight, program), run(torch, program), strict=True):
        assert ours == theirs


# Lists of calls of the functions of autograd.functional and of the engine's entries.


def point(t: Any, n: int = 3) -> Any:
    return t.tensor([0.5, -1.25, 2.0][:n], dtype=t.float64)


def cube(x: Any) -> Any:
    return (x**3).sum()


FUNCTIONAL: dict[str, Callable[[Any, Any], Any]] = {
    "jacobian": lambda t, f: f.jacobian(lambda x: x[:2] * x.sum(), point(t)),
    "jacobian of tuples": lambda t, f: f.jacobian(lambda x, y: (x * y.sum(), y.prod()), (point(t), point(t, 2))),
    "jacobian of nothing": lambda t, f: f.jacobian(lambda x: x.detach(), point(t)),
    "jacobian with a graph": lambda t, f: f.jacobian(lambda x: x**2, point(t).requires_grad_(), create_graph=True),
    "jacobian of a list": lambda t, f: f.jacobian(lambda x: [x], point(t)),
    "jacobian in place": lambda t, f: f.jacobian(lambda x: x.mul_(2), point(t)),
    "jacobian in place with a graph": lambda t, f: f.jacobian(
        lambda x: x.mul_(2), point(t).requires_grad_(), create_graph=True
    ),
    "strict jacobian": lambda t, f: f.jacobian(lambda x, y: x * 2, (point(t), point(t)), strict=True),
    "strict linear jacobian": lambda t, f: f.jacobian(lambda x: x * 2, point(t), strict=True, create_graph=True),
    "hessian": lambda t, f: f.hessian(lambda x: x.prod() + cube(x), point(t)),
    "hessian of two": lambda t, f: f.hessian(lambda x, y: (x * y).sum() ** 2, (point(t), point(t))),
    "hessian of linear": lambda t, f: f.hessian(lambda x: x.sum(), point(t)),
    "strict hessian of linear": lambda t, f: f.hessian(lambda x: x.sum(), point(t), strict=True),
    "strict hessian": lambda t, f: f.hessian(cube, point(t), strict=True, create_graph=True),
    "hessian of a vector": lambda t, f: f.hessian(lambda x: x, point(t)),
    "vjp": lambda t, f: f.vjp(lambda x: x**2, point(t), point(t)),
    "vjp without v": lambda t, f: f.vjp(lambda x: x**2, point(t)),
    "vjp with a graph": lambda t, f: f.vjp(cube, point(t).requires_grad_(), create_graph=True),
    "vjp of the wrong size": lambda t, f: f.vjp(cube, point(t), point(t)),
    "jvp": lambda t, f: f.jvp(lambda x: (x**2, x.sum()), point(t), point(t)),
    "jvp of two": lambda t, f: f.jvp(lambda x, y: x * y, (point(t), point(t)), (point(t), point(t))),
    "jvp of the wrong length": lambda t, f: f.jvp(lambda x, y: x * y, (point(t), point(t)), (point(t),)),
    "strict jvp": lambda t, f: f.jvp(lambda x: x * 2, point(t), point(t), strict=True, create_graph=True),
    "hvp": lambda t, f: f.hvp(lambda x: x.prod(), point(t), point(t)),
    "vhp": lambda t, f: f.vhp(lambda x: x.prod(), point(t), point(t)),
    "vhp of independent": lambda t, f: f.vhp(lambda x, y: cube(x), (point(t), point(t)), (point(t), point(t))),
    "strict vhp of independent": lambda t, f: f.vhp(
        lambda x, y: cube(x), (point(t), point(t)), (point(t), point(t)), strict=True
    ),
    "strict hvp of separate": lambda t, f: f.hvp(
        lambda x, y: cube(x) + (x * y).sum(), (point(t), point(t)), (point(t), point(t)), strict=True, create_graph=True
    ),
    "hvp in no_grad": lambda t, f: in_no_grad(t, lambda: f.hvp(cube, point(t), point(t))),
}


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_functional(name: str) -> None:
    call = FUNCTIONAL[name]
    ours = result_of(lambda: call(rushlight, rushlight.autograd.functional))
    assert ours == result_of(lambda: call(torch, torch.autograd.functional))


def one(t: Any) -> Any:
    return t.ones((), dtype=t.float64)


def traced(t: Any) -> tuple[Any, Any, Any]:
    x = point(t).requires_grad_()
    y = x * 2
    return x, y, (y * y).sum()


def with_traced(call: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda t: call(t, t.autograd, *traced(t))


ENGINE: dict[str, Callable[[Any], Any]] = {
    "grad": with_traced(lambda t, a, x, y, s: a.grad(s, [x, y])),
    "grad of a vector": with_traced(lambda t, a, x, y, s: a.grad(y, x)),
    "grad with a cotangent": with_traced(lambda t, a, x, y, s: a.grad(y, x, point(t))),
    "grad with a short cotangent": with_traced(lambda t, a, x, y, s: a.grad(y, x, point(t, 2))),
    "grad with a flat cotangent": with_traced(lambda t, a, x, y, s: a.grad(s, x, t.ones(1, dtype=t.float64))),
    "grad with an integer cotangent": with_traced(lambda t, a, x, y, s: a.grad(s, x, t.tensor(3))),
    "grad with a complex cotangent": with_traced(lambda t, a, x, y, s: a.grad(s, x, one(t) + 0j)),
    "grad with a number": with_traced(lambda t, a, x, y, s: a.grad(s, x, 1)),
    "grad with too few": with_traced(lambda t, a, x, y, s: a.grad([s, s], x, [one(t)])),
    "grad without inputs": with_traced(lambda t, a, x, y, s: a.grad(s, [])),
    "grad for None": with_traced(lambda t, a, x, y, s: a.grad(s, None)),
    "grad for a number": with_traced(lambda t, a, x, y, s: a.grad(s, [3])),
    "grad unused": with_traced(lambda t, a, x, y, s: a.grad(s, point(t).requires_grad_())),
    "grad unused allowed": with_traced(
        lambda t, a, x, y, s: a.grad(s, [point(t).requires_grad_(), x], allow_unused=True)
    ),
    "grad unused zeros": with_traced(
        lambda t, a, x, y, s: a.grad(s, point(t).requires_grad_(), materialize_grads=True)
    ),
    "grad contradicting": with_traced(lambda t, a, x, y, s: a.grad(s, x, materialize_grads=True, allow_unused=False)),
    "grad constant input": with_traced(lambda t, a, x, y, s: a.grad(s, point(t))),
    "grad constant output": with_traced(lambda t, a, x, y, s: a.grad(one(t), x)),
    "grad dict": with_traced(lambda t, a, x, y, s: a.grad(s, {"x": x, "y": y})),
    "grad of edges": with_traced(
        lambda t, a, x, y, s: a.grad(a.graph.get_gradient_edge(s), a.graph.get_gradient_edge(y))
    ),
    "grad twice": with_traced(lambda t, a, x, y, s: [a.grad(s, x), a.grad(s, x)]),
    "grad retained": with_traced(lambda t, a, x, y, s: [a.grad(s, x, retain_graph=True), a.grad(s, x)]),
    "grad of grad": with_traced(lambda t, a, x, y, s: a.grad(a.grad(s, x, create_graph=True)[0].sum(), x)),
    "grad of constant grad": with_traced(lambda t, a, x, y, s: a.grad(a.grad(s, x)[0].sum(), x)),
    "grad batched": with_traced(lambda t, a, x, y, s: a.grad(y, x, t.eye(3, dtype=t.float64), is_grads_batched=True)),
    "backward": with_traced(lambda t, a, x, y, s: [a.backward(s), x.grad]),
    "backward of nothing": with_traced(lambda t, a, x, y, s: [a.backward([]), x.grad]),
    "backward of a vector": with_traced(lambda t, a, x, y, s: y.backward()),
    "backward of several": with_traced(lambda t, a, x, y, s: [a.backward([s, y], [None, point(t)]), x.grad]),
    "backward into inputs": with_traced(lambda t, a, x, y, s: [s.backward(inputs=[y]), y.grad, x.grad]),
    "backward into nothing": with_traced(lambda t, a, x, y, s: s.backward(inputs=[])),
    "backward into constants": with_traced(lambda t, a, x, y, s: s.backward(inputs=[point(t)])),
    "backward of a constant": with_traced(lambda t, a, x, y, s: one(t).backward()),
    "hook": with_traced(lambda t, a, x, y, s: [y.register_hook(lambda g: g * 3) and None, s.backward(), x.grad]),
    "hook of the wrong kind": with_traced(lambda t, a, x, y, s: [y.register_hook(lambda g: 3) and None, s.backward()]),
    "hook of the wrong shape": with_traced(
        lambda t, a, x, y, s: [y.register_hook(lambda g: g[:1]) and None, s.backward()]
    ),
    "hook on a constant": with_traced(lambda t, a, x, y, s: point(t).register_hook(print)),
    "requires_grad of a result": with_traced(lambda t, a, x, y, s: setattr(y, "requires_grad", False)),
    "requires_grad of integers": lambda t: t.tensor([1, 2]).requires_grad_(),
    "grad of the wrong shape": with_traced(lambda t, a, x, y, s: setattr(x, "grad", point(t, 2))),
    "grad of the wrong dtype": with_traced(lambda t, a, x, y, s: setattr(x, "grad", point(t).float())),
    "grad of the wrong kind": with_traced(lambda t, a, x, y, s: setattr(x, "grad", 3)),
    "retain_grad": with_traced(lambda t, a, x, y, s: [y.retain_grad(), s.backward(), y.grad]),
    "retain_grad of a constant": with_traced(lambda t, a, x, y, s: point(t).retain_grad()),
    "leaf in place": with_traced(lambda t, a, x, y, s: x.add_(1)),
    "out of a leaf": with_traced(lambda t, a, x, y, s: t.mul(x, 2, out=point(t))),
    "resize": with_traced(lambda t, a, x, y, s: y.resize_(2)),
    "detach a view": with_traced(lambda t, a, x, y, s: y[1:].detach_()),
    "deepcopy of a result": with_traced(lambda t, a, x, y, s: __import__("copy").deepcopy(y)),
    "numpy of a result": with_traced(lambda t, a, x, y, s: y.numpy()),
    "iterate over a number": lambda t: list(one(t)),
}


@pytest.mark.parametrize("name", ENGINE)
def test_engine(name: str) -> None:
    call = ENGINE[name]
    assert result_of(lambda: call(rushlight)) == result_of(lambda: call(torch))
