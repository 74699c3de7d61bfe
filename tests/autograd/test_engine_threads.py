"""The engine in several threads."""

import threading

import rushlight as torch
from rushlight.autograd import Function, grad
from sample_functions import in_threads, scalar


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
