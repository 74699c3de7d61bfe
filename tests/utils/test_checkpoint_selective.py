"""Selective checkpoints: which operators run again."""

from functools import partial

import pytest

import rushlight as torch
from rushlight.utils.checkpoint import (
    CheckpointPolicy,
    SelectiveCheckpointContext,
    checkpoint,
    create_selective_checkpoint_contexts,
)


class Watch:
    """Counts the calls of operators by name."""

    def __enter__(self):
        self.counts = {}
        torch._C._push_call_handler(self.note)
        return self

    def note(self, op, args, kwargs):
        self.counts[op.__name__] = self.counts.get(op.__name__, 0) + 1
        return op(*args, **kwargs)

    def __exit__(self, *exc):
        torch._C._pop_call_handler()


def selective(policy, **options):
    return partial(create_selective_checkpoint_contexts, policy, **options)


def problem():
    torch.manual_seed(0)
    return torch.randn(4, 3, requires_grad=True), torch.randn(3, 3, requires_grad=True)


def block(x, w):
    return torch.sin(x @ w).exp() @ w


def plain_gradients(function, *inputs):
    return torch.autograd.grad(function(*inputs).sum(), inputs)


def test_listed_operators_are_not_run_again():
    x, w = problem()
    with Watch() as watch:
        out = checkpoint(block, x, w, use_reentrant=False, context_fn=selective([torch.ops.aten.mm.default]))
        assert watch.counts["matmul"] == 2
        out.sum().backward()
    assert watch.counts["matmul"] == 2
    assert watch.counts["sin"] == 2
    for p, expected in zip((x, w), plain_gradients(block, x, w), strict=True):
        assert torch.equal(p.grad, expected)


def test_policy_sees_the_operators_and_their_results():
    x, w = problem()
    seen = []

    def policy(ctx, op, *args, **kwargs):
        assert isinstance(ctx, SelectiveCheckpointContext)
        seen.append((op.__name__, ctx.is_recompute, tuple(ctx.op_output.shape)))
        return CheckpointPolicy.MUST_SAVE if op is torch.exp else CheckpointPolicy.PREFER_RECOMPUTE

    checkpoint(block, x, w, use_reentrant=False, context_fn=selective(policy)).sum().backward()
    assert seen == [("mm", False, (4, 3)), ("sin", False, (4, 3)), ("exp", False, (4, 3)), ("mm", False, (4, 3))]
    for p, expected in zip((x, w), plain_gradients(block, x, w), strict=True):
        assert torch.equal(p.grad, expected)


@pytest.mark.parametrize("keep", [True, False])
def test_all_or_none_of_a_network(keep):
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(2, 3, 3),
        torch.nn.BatchNorm2d(3),
        torch.nn.ReLU(inplace=not keep),
        torch.nn.Flatten(),
        torch.nn.Linear(3 * 16, 4),
        torch.nn.LayerNorm(4),
        torch.nn.Dropout(0.5),
        torch.nn.Softmax(-1),
    ).double()
    x = torch.randn(2, 2, 6, 6, dtype=torch.float64)
    weights = torch.randn(2, 4, dtype=torch.float64)
    state = {k: v.clone() for k, v in model.state_dict().items()}
    torch.manual_seed(2)
    (model(x) * weights).sum().backward()
    expected = [p.grad for p in model.parameters()]
    model.zero_grad()
    model.load_state_dict(state)
    torch.manual_seed(2)
    (checkpoint(model, x, use_reentrant=False, context_fn=selective(lambda *a, **k: keep)) * weights).sum().backward()
    for p, g in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(p.grad, g, rtol=0, atol=0)


def test_several_results_and_linear():
    x = torch.randn(5, 3, requires_grad=True)
    w, b = torch.randn(2, 3, requires_grad=True), torch.randn(2, requires_grad=True)

    def function(x):
        values, places = torch.max(torch.nn.functional.linear(x, w, b).exp(), dim=1)
        return values.sin() * places

    kept = [torch.ops.aten.addmm.default, torch.ops.aten.max.dim]
    with Watch() as watch:
        out = checkpoint(function, x, use_reentrant=False, context_fn=selective(kept))
        out.sum().backward()
    assert watch.counts["linear"] == 1
    assert watch.counts["max"] == 1
    got = x.grad, w.grad, b.grad
    expected = torch.autograd.grad(function(x).sum(), (x, w, b))
    assert all(torch.equal(a, e) for a, e in zip(got, expected, strict=True))


def test_kept_result_changed_in_place():
    x, w = problem()

    def changes(x, w):
        h = x @ w
        s = h.sin()
        h.add_(1)
        return s.cos()

    kept = [torch.ops.aten.mm.default]
    out = checkpoint(changes, x, w, use_reentrant=False, context_fn=selective(kept))
    with pytest.raises(RuntimeError, match="Tensor cached during selective activation checkpoint has been mutated"):
        out.sum().backward()
    assert x.grad is None

    def harmless(x, w):
        h = x @ w
        s = h * 2
        h.mul_(3)
        return s.cos() * h

    expected = plain_gradients(harmless, x, w)
    kept = selective(kept, allow_cache_entry_mutation=True)
    checkpoint(harmless, x, w, use_reentrant=False, context_fn=kept).sum().backward()
    assert all(torch.equal(p.grad, g) for p, g in zip((x, w), expected, strict=True))


def test_random_numbers_behind_a_kept_operator():
    numbers = iter([True, False, True, False])

    def policy(ctx, op, *args, **kwargs):
        return op is torch.rand_like and next(numbers)

    def function(x):
        for _ in range(4):
            x = x.sin() * torch.rand_like(x)
        return x

    x = torch.ones(5, requires_grad=True)
    torch.manual_seed(4)
    function(x).sum().backward()
    expected, x.grad = x.grad, None
    after = torch.get_rng_state()
    torch.manual_seed(4)
    out = checkpoint(function, x, use_reentrant=False, context_fn=selective(policy))
    assert torch.equal(torch.get_rng_state(), after)
    out.sum().backward()
    assert torch.equal(torch.get_rng_state(), after)
    assert torch.equal(x.grad, expected)


def test_only_one_backward():
    x, w = problem()
    out = checkpoint(block, x, w, use_reentrant=False, context_fn=selective([torch.mm]))
    out.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        out.sum().backward()


def test_bad_policies():
    with pytest.raises(TypeError, match="policy_fn_or_list must be either a function or a list of ops"):
        create_selective_checkpoint_contexts(3)
    with pytest.raises(
        ValueError, match="Expected op in `op_list` to be an OpOverload but got: mm of type <class 'str'>"
    ):
        create_selective_checkpoint_contexts(["mm"])


def test_names_of_operators():
    assert torch.ops.aten.mm.default is torch.mm
    assert torch.ops.aten.add_.Tensor is torch.Tensor.add_
    assert torch.ops.aten.exp(torch.zeros(1)).item() == 1.0
    with pytest.raises(AttributeError, match="rushlight has no 'torch.ops.aten.no_such_operator'"):
        torch.ops.aten.no_such_operator  # noqa: B018
