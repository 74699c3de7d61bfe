"""The engine: depth, order, re-entrance and exceptions."""

import contextlib
import gc
import math
import os
import signal
import sys

import pytest

import rushlight as torch
from rushlight import _C
from rushlight.autograd import Function, backward, grad
from sample_functions import carried, in_threads, scalar

MILLION = 1_000_000


@contextlib.contextmanager
def small_recursion_limit():
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(200)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


# depth


def test_chain_of_a_million_operations():
    x = scalar()
    y = x
    with small_recursion_limit():
        for _ in range(MILLION):
            y = y + 1.0
        y.backward()
        assert x.grad.item() == 1.0
        del y


def test_chain_of_a_million_operations_is_freed_without_backward():
    x = scalar()
    y, reference = carried(x)
    for _ in range(MILLION):
        y = y + 1.0
    assert reference() is not None
    del y
    assert reference() is None


def test_chain_of_a_million_in_place_operations():
    x = scalar()
    y, reference = carried(x)
    for _ in range(MILLION):
        y += 1.0
    y.backward()
    assert y.item() == MILLION + 1
    assert x.grad.item() == 1.0
    del y
    gc.collect()
    assert reference() is None


def test_chain_of_many_views():
    x = torch.ones(4, requires_grad=True)
    y = x * 1
    for _ in range(100_000):
        y = y.view(2, 2).view(4)
    y.sum().backward()
    assert x.grad.tolist() == [1.0] * 4
    del y


def test_chain_that_saves_every_step_is_freed():
    x = scalar()
    y, reference = carried(x)
    for _ in range(200_000):
        y = y * y.detach().reciprocal()
    del y
    assert reference() is None


def test_graph_of_second_derivatives_along_a_chain():
    x = scalar(0.5)
    y = x
    for _ in range(20_000):
        y = y.sin()
    (g,) = grad(y, x, create_graph=True)
    (h,) = grad(g, x)
    assert torch.isfinite(h)
    del y, g


def test_wide_graph():
    x = scalar()
    total = torch.stack([x * 2.0 for _ in range(20_000)]).sum()
    total.backward()
    assert x.grad.item() == 40_000.0


def test_printing_and_walking_a_deep_graph():
    x = scalar()
    y = x
    for _ in range(100_000):
        y = y + 1.0
    with small_recursion_limit():
        assert "AddBackward0" in repr(y)
        assert "AddBackward0" in repr(y.grad_fn)
        node, steps = y.grad_fn, 0
        while node.next_functions:
            node, steps = node.next_functions[0][0], steps + 1
        assert steps == 100_000
        assert node.variable is x


# order


def test_nodes_run_latest_first():
    order = []
    x = scalar()
    branches = [x * float(i) for i in range(5)]
    for i, branch in enumerate(branches):
        branch.register_hook(lambda g, i=i: order.append(i))
    torch.stack(list(reversed(branches))).sum().backward()
    assert order == [4, 3, 2, 1, 0]


def test_node_runs_once_with_all_contributions():
    runs = []
    x = scalar(2.0)
    y = x * x
    y.register_hook(lambda g: runs.append(g.item()))
    z = y
    for _ in range(10):
        z = z + y
    z.backward()
    assert runs == [11.0]
    assert x.grad.item() == 44.0


def test_sequence_numbers_grow():
    x = scalar()
    first, second = x * 1, x * 1
    assert second.grad_fn._sequence_nr() > first.grad_fn._sequence_nr()


# re-entrance


class Nested(Function):
    """Doubles; its backward runs another backward, ``depth`` levels deep."""

    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        return x * 2

    @staticmethod
    def backward(ctx, g):
        if ctx.depth:
            with torch.enable_grad():
                t = g.detach().requires_grad_()
                Nested.apply(t, ctx.depth - 1).backward()
            return t.grad * 0 + 2 * g, None
        return 2 * g, None


@pytest.mark.parametrize("depth", [1, 50, 2000])
def test_backward_inside_backward(depth):
    """Python's recursion limit, 1,000 by default, is no limit of the engine's."""
    x = scalar()
    Nested.apply(x, depth).backward()
    assert x.grad.item() == 2.0


def test_endless_backward_inside_backward_is_an_exception():
    class Endless(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            with torch.enable_grad():
                Endless.apply(g.detach().requires_grad_()).backward()
            return g

    x = scalar()
    with pytest.raises(RuntimeError, match="recursion|nested"):
        Endless.apply(x).backward()
    (x * 3).backward()
    assert x.grad.item() == 3.0


def test_inner_backward_accumulates_into_the_same_leaf():
    x = scalar(3.0)

    class Inner(Function):
        @staticmethod
        def forward(ctx, t):
            return t * 1

        @staticmethod
        def backward(ctx, g):
            with torch.enable_grad():
                (x * 10).backward()
            return g

    Inner.apply(x).backward()
    assert x.grad.item() == 11.0


def test_inner_grad_does_not_disturb_the_outer():
    x = scalar(0.5)
    seen = []

    def hook(g):
        with torch.enable_grad():
            seen.append(grad(x.exp(), x)[0].item())

    y = x.sin()
    y.register_hook(hook)
    y.backward()
    assert seen == [pytest.approx(math.exp(0.5))]
    assert x.grad.item() == pytest.approx(math.cos(0.5))


def test_inner_backward_over_the_outer_graph():
    x = scalar(2.0)
    trunk = x * x
    seen = []
    y = trunk * 3
    y.register_hook(lambda g: seen.append(grad(trunk, x, retain_graph=True)[0].item()))
    y.backward()
    assert seen == [4.0]
    assert x.grad.item() == 12.0


# exceptions


class Raising(Function):
    @staticmethod
    def forward(ctx, x, error):
        ctx.error = error
        return x * 1

    @staticmethod
    def backward(ctx, g):
        raise ctx.error


@pytest.mark.parametrize("kind", [ValueError, KeyError, AssertionError, KeyboardInterrupt, SystemExit, MemoryError])
def test_exceptions_arrive_as_themselves(kind):
    x = scalar()
    error = kind("mine")
    y = Raising.apply(x * 2, error)
    with pytest.raises(kind) as info:
        y.backward()
    assert info.value is error
    assert x.grad is None
    assert torch.is_grad_enabled()
    (x * 5).backward()
    assert x.grad.item() == 5.0


def test_traceback_leads_into_the_backward():
    x = scalar()
    with pytest.raises(ValueError, match="deep") as info:
        Raising.apply(x, ValueError("deep")).backward()
    assert [entry.name for entry in info.traceback][-1] == "backward"
    assert info.value.__cause__ is None


def test_exception_in_a_nested_backward_arrives_through_all_levels():
    x = scalar()

    class Outer(Function):
        @staticmethod
        def forward(ctx, t):
            return t * 1

        @staticmethod
        def backward(ctx, g):
            with torch.enable_grad():
                Raising.apply(g.detach().requires_grad_(), LookupError("inner")).backward()
            return g

    with pytest.raises(LookupError, match="inner"):
        Outer.apply(Outer.apply(x)).backward()
    assert torch.is_grad_enabled()


def test_exception_frees_the_gradients_under_way():
    x = scalar()
    y, reference = carried(x)
    z = Raising.apply(y, ValueError)  # the class: nothing but the exception under way refers to its traceback
    with pytest.raises(ValueError):
        (z + y * 3).backward()
    del y, z
    assert reference() is None


def test_exception_in_one_thread_leaves_the_others():
    x = torch.ones(4, requires_grad=True)

    def work(i):
        for _ in range(20):
            if i % 2:
                with pytest.raises(ValueError, match="mine"):
                    Raising.apply(x.sum(), ValueError("mine")).backward()
            else:
                x.sum().backward()

    in_threads(4, work)
    assert x.grad.tolist() == [40.0] * 4


def test_what_was_accumulated_before_an_exception_stays():
    x, w = scalar(), scalar()
    broken = Raising.apply(x, ValueError("mine"))
    later = w * 2
    with pytest.raises(ValueError, match="mine"):
        (broken + later).backward()
    assert x.grad is None
    assert w.grad is None or w.grad.item() == 2.0


@pytest.mark.skipif(not hasattr(signal, "raise_signal") or os.name == "nt", reason="needs POSIX signals")
def test_interrupt_during_backward():
    x = scalar()
    y = x
    for _ in range(1000):
        y = y + 1.0
    y.register_hook(lambda g: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        y.backward()
        for _ in range(10):  # at the latest the next bytecodes see the signal
            pass
    x.grad = None
    (x * 2).backward()
    assert x.grad.item() == 2.0


def test_error_of_the_engine_leaves_it_clean():
    x = torch.ones(3, requires_grad=True)
    y = x.exp().sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    x.grad = None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_backward_of_nothing_is_nothing():
    assert backward(()) is None


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("product", ["linear", "matmul"])
def test_gradients_that_nobody_wants_are_not_computed(product, create_graph):
    weight = torch.ones(1000, 1000, requires_grad=True)
    x = torch.ones(1, 1000, requires_grad=True)
    out = torch.nn.functional.linear(x, weight) if product == "linear" else x @ weight
    seed = torch.ones_like(out)
    _C.reset_peak_memory_stats()
    before = _C.memory_stats()["allocated_bytes"]
    (g,) = torch.autograd.grad(out, x, seed, create_graph=create_graph, retain_graph=True)
    assert _C.memory_stats()["peak_bytes"] - before < 1_000_000
    assert torch.equal(g, torch.full((1, 1000), 1000.0))
    if create_graph:
        (h,) = torch.autograd.grad(g.sum(), weight)
        assert torch.equal(h, torch.ones_like(weight))
    first, second = torch.autograd.grad(out, (weight, x), seed)
    assert torch.equal(first, torch.ones_like(weight)) and torch.equal(second, g)
