"""Functions that several tests of autograd use, leaves, and threads."""

import threading
import weakref

import rushlight as torch
from rushlight.autograd import Function


def function(forward, backward=None, **members):
    """A new Function of these static methods."""
    members = {"forward": forward, **({"backward": backward} if backward else {}), **members}
    return type("Made", (Function,), {k: staticmethod(v) if callable(v) else v for k, v in members.items()})


class Multiply(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g * a


class Double(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


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
