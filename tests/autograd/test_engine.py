"""The engine: depth, order, re-entrance, threads, exceptions, and that everything is freed."""

import contextlib
import gc
import math
import os
import signal
import sys
import threading
import weakref

import pytest

import rushlight as torch
from rushlight.autograd import Function, backward, grad

MILLION = 1_000_000


def scalar(value=1.0):
    return torch.tensor(value, requires_grad=True)


class Token:
    pass


class Carrier(Function):
    """The identity, whose node carries a token that tells when the node is freed."""

    @staticmethod
    def forward(ctx, x, token):
        ctx.token = token
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return g, None


def carried(x):
    """``x`` behind a node, and a weak reference that dies with the node."""
    token = Token()
    return Carrier.apply(x, token), weakref.ref(token)


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


# threads


def in_threads(count, work):
    errors = []
    barrier = threading.Barrier(count)

    def run(i):
        try:
            barrier.wait(30)
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert errors == []


def test_threads_accumulate_exactly_into_one_leaf():
    x = torch.ones(16, requires_grad=True)

    def work(i):
        for _ in range(50):
            (x * 2).sum().backward()

    in_threads(4, work)
    assert x.grad.tolist() == [400.0] * 16


def test_threads_share_a_retained_graph():
    x = torch.ones(4, requires_grad=True)
    y = (x.exp() * x).sum()

    def work(i):
        for _ in range(25):
            (g,) = grad(y, x, retain_graph=True)
            assert torch.allclose(g, 2 * x.detach().exp())

    in_threads(4, work)


def test_threads_build_and_free_graphs_of_their_own():
    def work(i):
        for _ in range(20):
            x = torch.full((8,), float(i), requires_grad=True)
            y = x
            for _ in range(50):
                y = y * 1.0 + 1.0
            y.sum().backward()
            assert x.grad.tolist() == [1.0] * 8

    in_threads(4, work)


def test_graph_built_in_one_thread_runs_in_another():
    x = scalar(3.0)
    y = x * x

    in_threads(1, lambda i: y.backward())
    assert x.grad.item() == 6.0


def test_backward_runs_in_the_thread_that_called_it():
    names = set()
    x = scalar()
    y = x * 2
    y.register_hook(lambda g: names.add(threading.current_thread().name))
    y.backward()
    assert names == {threading.current_thread().name}


def test_lock_held_around_backward_does_not_block_other_threads():
    lock = threading.Lock()
    x = scalar()

    class Locked(Function):
        @staticmethod
        def forward(ctx, t):
            return t * 1

        @staticmethod
        def backward(ctx, g):
            with lock, torch.enable_grad():
                t = g.detach().requires_grad_()
                (t * 2).backward()
            return g

    def work(i):
        for _ in range(20):
            Locked.apply(x).backward()

    in_threads(4, work)
    assert x.grad.item() == 80.0


def test_other_python_threads_run_during_a_long_backward():
    """A backward without Python code in it lets go of the interpreter."""
    x = torch.ones(200_000, requires_grad=True)
    y = x
    for _ in range(200):
        y = y.sin()
    y = y.sum()
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(1)
            done.wait(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    before = len(ticks)
    y.backward()
    after = len(ticks)
    done.set()
    thread.join()
    assert after > before


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


# memory


def test_graph_is_freed_with_its_output():
    x = scalar()
    y, reference = carried(x)
    z = (y * 2).exp()
    del y
    assert reference() is not None
    del z
    assert reference() is None


def test_buffers_are_freed_by_backward():
    x = torch.ones(3, requires_grad=True)
    h = torch.full((3,), 2.0)
    reference = weakref.ref(h)
    y = (x * h).sum()
    del h
    assert reference() is None or reference().tolist() == [2.0] * 3
    y.backward()
    gc.collect()
    assert reference() is None
    assert y.grad_fn is not None


def test_gradients_on_the_way_are_freed():
    x = torch.ones(3, requires_grad=True)
    references = []
    y = x
    for _ in range(5):
        y = y * 2
        y.register_hook(lambda g: references.append(weakref.ref(g)))
    y.sum().backward()
    assert len(references) == 5
    # None is left but the one that may have been handed on, in the same memory, to become the leaf's gradient.
    assert all(reference() is None or reference() is x.grad for reference in references)


def test_leaf_does_not_keep_its_graph():
    x = scalar()
    y, reference = carried(x)
    y.backward()
    del y
    assert reference() is None
    assert x.grad is not None


def test_graph_keeps_the_leaf():
    x = scalar()
    y = x * 2
    accumulator = y.grad_fn.next_functions[0][0]
    del x
    gc.collect()
    y.backward()
    assert accumulator.variable.grad.item() == 2.0


@pytest.mark.filterwarnings("ignore:Using backward")
def test_cycle_of_a_leaf_and_its_recorded_gradient_is_collected():
    def make():
        x = scalar(2.0)
        y, reference = carried(x)
        (y**3).backward(create_graph=True)
        assert x.grad.requires_grad
        return reference

    reference = make()
    gc.collect()
    assert reference() is None


def test_cycle_through_an_attribute_of_a_tensor_is_collected():
    def make():
        x = scalar()
        y, reference = carried(x)
        x.result = y
        return reference

    reference = make()
    gc.collect()
    assert reference() is None


def test_cycle_through_node_metadata_is_collected():
    def make():
        x = scalar()
        y, reference = carried(x)
        y.grad_fn.metadata["output"] = y
        return reference

    reference = make()
    gc.collect()
    assert reference() is None


def test_collector_does_not_free_what_is_in_use():
    x = scalar(2.0)
    y, reference = carried(x)
    z = y * y
    x.back = z
    del y
    gc.collect()
    assert reference() is not None
    z.backward()
    assert x.grad.item() == 4.0


def test_identity_of_tensors_and_nodes():
    x = scalar()
    y = x * 2
    assert y.grad_fn is y.grad_fn
    number = id(y.grad_fn.next_functions[0][0].variable)
    assert number == id(x)
    y.note = "kept"
    z = [y]
    del y
    gc.collect()
    assert z[0].note == "kept"


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads Linux's /proc")
def test_training_loop_does_not_grow():
    w = torch.ones(64, 64, requires_grad=True)
    data = torch.ones(16, 64)

    def step():
        loss = ((data @ w).tanh() ** 2).mean()
        loss.backward()
        with torch.no_grad():
            w.sub_(0.01 * w.grad)
        w.grad = None

    for _ in range(100):
        step()
    before = resident_bytes()
    for _ in range(1000):
        step()
    assert resident_bytes() - before < 4 << 20


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads Linux's /proc")
def test_freed_graphs_give_their_memory_back():
    def build():
        x = torch.ones(1000, requires_grad=True)
        y = x
        for _ in range(2000):
            y = y * y.detach()
        return y

    build()
    before = resident_bytes()
    for _ in range(5):
        build()
    assert resident_bytes() - before < 32 << 20


def test_backward_of_nothing_is_nothing():
    assert backward(()) is None
