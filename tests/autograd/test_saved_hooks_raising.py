"""Hooks of saved tensors that raise: the error arrives, and nothing of the operation stays behind."""

from __future__ import annotations

import gc

import pytest

import rushlight as torch
from rushlight.autograd import graph
from rushlight.utils.checkpoint import checkpoint


class Stop(Exception):
    pass


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, x * 2)
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return g * 3


def alive(kind):
    gc.collect()
    return [o for o in gc.get_objects() if kind in type(o).__name__]


FUNCTIONS = {
    "chain": lambda x: (x.exp().sin() * x).sum(),
    "two saved": lambda x: x.exp() * x.sin(),
    "an output": lambda x: (x**3).sigmoid().exp(),
    "native": lambda x: (x.view(2, 3) @ x.view(3, 2)).exp().softmax(0),
    "several outputs": lambda x: x.view(2, 3).sort()[0].exp(),
    "indices": lambda x: x.exp().index_put((torch.tensor([1]),), x.sin()[:1]),
    "in place": lambda x: x.clone().mul_(x.sin()),
    "a Function": lambda x: Scaled.apply(x.exp()),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("at", range(1, 7))
def test_packing_that_raises_leaves_nothing(name, at):
    x = torch.rand(6, requires_grad=True)
    before = len(alive("Backward"))
    packed = []

    def pack(tensor):
        packed.append(None)
        if len(packed) == at:
            raise Stop
        return tensor

    try:
        with graph.saved_tensors_hooks(pack, lambda packed: packed):
            FUNCTIONS[name](x)
    except Stop:
        assert len(packed) == at
    else:
        assert 0 < len(packed) < at
    assert len(alive("Backward")) == before
    assert torch.autograd.grad(FUNCTIONS[name](x).sum(), x)[0].isfinite().all()


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_is_gone_after_backward(reentrant):
    x = torch.rand(6, requires_grad=True)
    for _ in range(3):
        checkpoint(FUNCTIONS["chain"], x, use_reentrant=reentrant).backward()
    assert not [o for o in alive("Frame") if type(o).__module__.startswith("rushlight")]
    assert alive("SinBackward") == []
