"""Custom Functions: what is freed when, and threads."""

import gc
import threading
import weakref

import pytest

import rushlight as torch
from sample_functions import Double, Multiply, function


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


def freed_after_collection(make):
    gc.collect()
    gc.disable()
    try:
        reference = make()
        gc.collect()
        return reference() is None
    finally:
        gc.enable()


def keep_input(ctx, a):
    ctx.save_for_backward(a)
    return a * 2


def keep_output(ctx, a):
    y = a * 2
    ctx.save_for_backward(y)
    return y


def keep_output_as_attribute(ctx, a):
    ctx.y = a * 2
    return ctx.y


def keep_context_in_a_cycle(ctx, a):
    ctx.me = ctx
    return a * 2


def keep_dirty_view(ctx, a):
    ctx.mark_dirty(a)
    return a.mul_(2)


def keep_dirty_view_as_attribute(ctx, a):
    ctx.mark_dirty(a)
    ctx.y = a.mul_(2)
    return ctx.y


@pytest.mark.parametrize(
    "keep",
    [
        keep_input,
        keep_output,
        keep_output_as_attribute,
        keep_context_in_a_cycle,
        keep_dirty_view,
        keep_dirty_view_as_attribute,
    ],
)
def test_context_is_freed(keep):
    references = []

    def forward(ctx, a):
        ctx.token = Token()
        references.append(weakref.ref(ctx.token))
        return keep(ctx, a)

    def make():
        x = torch.ones(3, requires_grad=True)
        out = function(forward, lambda ctx, g: g * 2).apply((x * 1)[1:])
        assert out.requires_grad
        return references[0]

    assert freed_after_collection(make)


class Token:
    pass


def test_context_is_freed_at_once_without_a_cycle():
    gc.collect()
    gc.disable()
    try:
        x = torch.ones(3, requires_grad=True)
        out = Multiply.apply(x, x)
        token = out.grad_fn.token = Token()
        reference = weakref.ref(token)
        del token
        assert reference() is not None
        del out
        assert reference() is None
    finally:
        gc.enable()


def test_context_lives_as_long_as_its_output(x):
    y = Double.apply(x)
    y.grad_fn.mark = "kept"
    z = y.sum()
    gc.collect()
    assert y.grad_fn.mark == "kept"
    del y
    gc.collect()
    assert z.grad_fn.next_functions[0][0].mark == "kept"


def test_functions_in_threads():
    x = torch.ones(8, requires_grad=True)
    barrier = threading.Barrier(4)

    def work():
        barrier.wait(10)
        for _ in range(25):
            Multiply.apply(x, x).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.tolist() == [200.0] * 8


def test_chain_of_many_functions_is_walked_and_freed():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = Double.apply(y) * 0.5
    y.backward()
    assert x.grad.tolist() == [1.0]
    del y
    gc.collect()
