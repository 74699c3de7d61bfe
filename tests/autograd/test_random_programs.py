"""Random programs give the same bits with a budget for memory, inside checkpoints, and while everything is watched."""

import random

import pytest

import rushlight as torch
from rushlight.autograd import set_detect_anomaly
from rushlight.autograd.graph import memory_budget
from rushlight.autograd.profiler import profile
from rushlight.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

SIDE = 24

UNARY = [
    torch.sin,
    torch.tanh,
    torch.sigmoid,
    lambda t: t * 0.7,
    lambda t: 1.5 - t,
    lambda t: t**2 * 0.1,
    lambda t: t.t(),
    lambda t: t.softmax(1),
    lambda t: t[:, torch.arange(SIDE - 1, -1, -1)],
    lambda t: torch.nn.functional.layer_norm(t, (SIDE,)),
    lambda t: torch.nn.functional.dropout(t, 0.2),
    lambda t: t.clamp(-0.5, 0.5),
    lambda t: t.reshape(SIDE // 2, 2 * SIDE).reshape(SIDE, SIDE),
    lambda t: t.cumsum(0) * 0.1,
    lambda t: (t * 1).mul_(0.5),
    lambda t: (t + 0).sigmoid_(),
    lambda t: torch.where(t > 0, t, t * 0.1),
    lambda t: t.sum(0, keepdim=True) * 0.1 + t,
]
BINARY = [
    torch.add,
    torch.mul,
    torch.sub,
    torch.maximum,
    lambda a, b: (a @ b) * 0.2,
    lambda a, b: a / (b * b + 1),
    lambda a, b: torch.cat([a, b])[SIDE // 2 : SIDE // 2 + SIDE],
    lambda a, b: torch.lerp(a, b, 0.3),
    lambda a, b: a * b.detach(),
]


def program(seed):
    """A function of two matrices: some operations on what has been computed so far, the latest most of all."""
    chance = random.Random(seed)
    steps = []
    for size in range(2, 22):
        pick = lambda size=size: size - 1 - min(int(chance.expovariate(0.7)), size - 1)  # noqa: E731
        if chance.random() < 0.65:
            steps.append((chance.choice(UNARY), (pick(),)))
        else:
            steps.append((chance.choice(BINARY), (pick(), pick())))

    def run(*values):
        values = list(values)
        for function, operands in steps:
            values.append(function(*[values[i] for i in operands]))
        return values[-1] + values[len(values) // 2]

    return run


def gradients(run):
    torch.manual_seed(3)
    x = torch.randn(SIDE, SIDE, requires_grad=True)
    y = torch.randn(SIDE, SIDE, requires_grad=True)
    out = run(x, y)
    (out * torch.linspace(-1, 1, SIDE)).sum().backward()
    return [out.detach(), *[torch.zeros(1) if t.grad is None else t.grad for t in (x, y)]]


@pytest.fixture
def everything_pends():
    """Results of any size stay pending where large ones do."""
    torch._C._set_deferral(True, 2)
    yield
    torch._C._set_deferral(True)


def equal(first, second):
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("seed", range(40))
def test_same_bits_everywhere(seed):
    run = program(seed)
    plain = gradients(run)
    for limit in (1, 20_000, 10**9):

        def within(*values, limit=limit):
            with memory_budget(limit):
                return run(*values)

        assert equal(gradients(within), plain)
    assert equal(gradients(lambda *values: checkpoint(run, *values, use_reentrant=False)), plain)
    assert equal(gradients(lambda *values: checkpoint(run, *values, use_reentrant=True)), plain)
    keeps = random.Random(seed)

    def contexts():
        return create_selective_checkpoint_contexts(
            lambda ctx, op, *args, **kwargs: not op.__name__.endswith("_") and keeps.random() < 0.4,
            allow_cache_entry_mutation=True,
        )

    selective = lambda *values: checkpoint(run, *values, use_reentrant=False, context_fn=contexts)  # noqa: E731
    assert equal(gradients(selective), plain)
    with profile(record_shapes=True, with_stack=True), set_detect_anomaly(True, check_forward=True, check_inf=True):
        assert equal(gradients(run), plain)


@pytest.mark.parametrize("seed", range(150))
def test_same_bits_where_everything_pends(seed, everything_pends):
    run = program(seed)
    pending = gradients(run)
    with set_detect_anomaly(True, check_forward=True, check_inf=True):
        assert equal(gradients(run), pending)
    for threads in (1, 3):
        torch.set_num_threads(threads)
        try:
            assert equal(gradients(run), pending)
        finally:
            torch.set_num_threads(2)
    torch._C._set_deferral(False)
    assert equal(gradients(run), pending)


@pytest.mark.parametrize("seed", range(150, 250))
def test_second_derivatives_where_everything_pends(seed, everything_pends):
    run = program(seed)

    def second():
        torch.manual_seed(3)
        x = torch.randn(SIDE, SIDE, dtype=torch.float64, requires_grad=True)
        y = torch.randn(SIDE, SIDE, dtype=torch.float64, requires_grad=True)
        weights = torch.linspace(-1, 1, SIDE, dtype=torch.float64)
        (first,) = torch.autograd.grad((run(x, y) * weights).sum(), x, create_graph=True, materialize_grads=True)
        loss = (first * weights.flip(0)).sum()
        if not loss.requires_grad:
            return [first.detach()]
        return [first.detach(), *torch.autograd.grad(loss, [x, y], materialize_grads=True)]

    pending = second()
    torch._C._set_deferral(False)
    assert equal(second(), pending)
