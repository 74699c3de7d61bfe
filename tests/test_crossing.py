"""Tools of autograd inside of each other: what each of them computes of one function, wrapped by each other one."""

import pytest

import rushlight as torch
from rushlight.autograd import forward_ad
from rushlight.autograd.graph import memory_budget, save_on_cpu, saved_tensors_hooks
from rushlight.func import functionalize, grad, jacfwd, jacrev, jvp, vjp, vmap
from rushlight.overrides import BaseTorchFunctionMode
from rushlight.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

F = torch.nn.functional
WEIGHT, BIAS = torch.linspace(-1, 1, 36).view(6, 6), torch.linspace(0, 1, 6)
X = torch.linspace(-2, 2, 24).view(4, 6)


class Square(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * x * gradient

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return 2 * x * tangent


def function(x):
    """A number for each row: views, changes in place, a Function, products."""
    h = F.layer_norm(F.gelu(F.linear(x, WEIGHT, BIAS)), (6,)).clone()
    h[..., 0] = h[..., 1] * 2
    h = Square.apply(h) + h.softmax(-1)
    h = torch.cat([h, h.flip(-1)], -1)[..., ::2]
    h = torch.where(h > 0, h, h * 0.1) @ WEIGHT
    return torch.einsum("...i,...i->...", h, h)


def within(context):
    def wrap(f):
        def wrapped(x):
            with context():
                return f(x)

        return wrapped

    return wrap


def policy(ctx, op, *args, **kwargs):
    return CheckpointPolicy.MUST_SAVE if op is torch.matmul else CheckpointPolicy.PREFER_RECOMPUTE


WRAPPERS = {
    "checkpoint": lambda f: lambda x: checkpoint(f, x, use_reentrant=False),
    "selective checkpoint": lambda f: (
        lambda x: checkpoint(f, x, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(policy))
    ),
    "hooks": within(lambda: saved_tensors_hooks(torch.clone, lambda t: t)),
    "save_on_cpu": within(save_on_cpu),
    "memory_budget": within(lambda: memory_budget(10**6)),
    "mode": within(BaseTorchFunctionMode),
    "anomaly mode": within(lambda: torch.autograd.set_detect_anomaly(True, check_forward=True)),
    "vmap": vmap,
    "vmap in chunks": lambda f: vmap(f, chunk_size=3),
    "jvp": lambda f: lambda x: jvp(f, (x,), (torch.zeros_like(x),))[0],
    "vjp": lambda f: lambda x: vjp(f, x)[0],
    "functionalize": functionalize,
    "nothing": lambda f: f,
}


def backward(f, x):
    x = x.clone().requires_grad_()
    f(x).sum().backward()
    return x.grad


def second(f, x):
    x = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    return torch.autograd.grad(gradient.sum(), x)[0]


def tangent(f, x):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(x, torch.ones_like(x))).sum()).tangent


def profiled(f, x):
    with torch.autograd.profiler.profile(record_shapes=True):
        return backward(f, x)


DERIVATIVES = {
    "backward": backward,
    "second": second,
    "tangent": tangent,
    "profiled": profiled,
    "grad": lambda f, x: grad(lambda x: f(x).sum())(x),
    "jacrev": lambda f, x: jacrev(lambda x: f(x).sum())(x),
    "jacfwd": lambda f, x: jacfwd(lambda x: f(x).sum())(x),
    "forward over reverse": lambda f, x: jvp(grad(lambda x: f(x).sum()), (x,), (torch.ones_like(x),))[1],
    "per sample": lambda f, x: vmap(grad(lambda row: f(row[None]).sum()))(x),
    "functional": lambda f, x: torch.autograd.functional.jacobian(lambda x: f(x).sum(), x, vectorize=True),
}


def refused(derivative, wrappers):
    """As in PyTorch: a selective checkpoint computes anew once, and none computes the tangents that were beside anew."""
    once = "selective checkpoint" in wrappers and derivative == "second"
    beside = wrappers[0] == "jvp" and wrappers[1].endswith("checkpoint")
    return once or beside or all(name.startswith("vmap") for name in wrappers)  # which would batch the rows twice


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("outer", WRAPPERS)
def test_derivatives_are_the_same_inside_of(outer, derivative):
    compute = DERIVATIVES[derivative]
    expected = compute(function, X).detach()
    for inner in WRAPPERS:
        if not refused(derivative, (outer, inner)):
            result = compute(WRAPPERS[outer](WRAPPERS[inner](function)), X).detach()
            torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4, msg=lambda m, i=inner: f"{i}: {m}")
