"""Checkpoints: what is recomputed and what is not, random numbers, nesting, and checks of the second run."""

import gc
import warnings
import weakref

import pytest

import rushlight as torch
from rushlight.utils.checkpoint import (
    CheckpointError,
    GraphExecGroup,
    check_backward_validity,
    checkpoint,
    checkpoint_sequential,
    detach_variable,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

BOTH = pytest.mark.parametrize("reentrant", [True, False])


class Counted:
    """A function that counts its runs."""

    def __init__(self, function):
        self.function, self.runs = function, 0

    def __call__(self, *args, **kwargs):
        self.runs += 1
        return self.function(*args, **kwargs)


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def gradients(function, *inputs):
    for t in inputs:
        t.grad = None
    function(*inputs).sum().backward()
    return [t.grad.clone() for t in inputs]


@BOTH
def test_value_and_gradient_are_the_same_and_the_function_runs_twice(reentrant):
    x, w = torch.randn(4, 3, requires_grad=True), torch.randn(3, 2, requires_grad=True)
    plain = gradients(lambda x, w: (x @ w).sin().exp(), x, w)
    function = Counted(lambda x, w: (x @ w).sin().exp())
    out = checkpoint(function, x, w, use_reentrant=reentrant)
    assert torch.equal(out, (x @ w).sin().exp())
    assert function.runs == 1
    x.grad = w.grad = None
    out.sum().backward()
    assert function.runs == 2
    assert torch.equal(x.grad, plain[0])
    assert torch.equal(w.grad, plain[1])


@BOTH
def test_random_numbers_are_the_same_and_the_generator_goes_on(reentrant):
    x = torch.ones(1000, requires_grad=True)
    torch.manual_seed(3)
    out = checkpoint(lambda x: torch.nn.functional.dropout(x, 0.5) * x, x, use_reentrant=reentrant)
    after = torch.get_rng_state()
    out.sum().backward()
    assert torch.equal(torch.get_rng_state(), after)
    assert torch.equal(x.grad, out.detach() * 2)


def test_random_numbers_go_on_where_they_are_not_preserved():
    x = torch.ones(1000, requires_grad=True)
    out = checkpoint(
        lambda x: torch.nn.functional.dropout(x.clone(), 0.5) * x, x, use_reentrant=False, preserve_rng_state=False
    )
    before = torch.get_rng_state()
    out.sum().backward()
    assert not torch.equal(torch.get_rng_state(), before)


def test_nothing_that_is_saved_inside_is_kept():
    kept = []

    def function(x):
        y = x.sin()
        kept.append(weakref.ref(y))
        return y.exp().sum()

    out = checkpoint(function, torch.ones(5, requires_grad=True), use_reentrant=False)
    gc.collect()
    assert kept[0]() is None
    out.backward()


def test_only_what_is_kept_counts_for_memory():
    x = torch.randn(1 << 18, requires_grad=True)
    before = torch._C.memory_stats()["allocated_bytes"]
    plain = x.sin().cos().tanh().exp().sin().sum()
    without = torch._C.memory_stats()["allocated_bytes"] - before
    del plain
    out = checkpoint(lambda x: x.sin().cos().tanh().exp().sin().sum(), x, use_reentrant=False)
    assert torch._C.memory_stats()["allocated_bytes"] - before < without / 4
    out.backward()


@BOTH
def test_several_inputs_and_outputs_among_them_no_tensors(reentrant):
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    out = checkpoint(lambda x, k, y, none: (x * y * k, None, k, x + y), x, 3, y, None, use_reentrant=reentrant)
    assert out[1:3] == (None, 3)
    (out[0] * 2 + out[3]).sum().backward()
    assert x.grad.tolist() == [19.0, 25.0]
    assert y.grad.tolist() == [7.0, 13.0]


def test_keyword_arguments():
    x, scale = leaf(1.0, 2.0), leaf(3.0)
    checkpoint(lambda x, *, scale: (x * scale).exp(), x, use_reentrant=False, scale=scale).sum().backward()
    expected = gradients(
        lambda x, scale: (x * scale).exp(), x.detach().requires_grad_(), scale.detach().requires_grad_()
    )
    assert torch.equal(x.grad, expected[0])
    assert torch.equal(scale.grad, expected[1])
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        checkpoint(lambda x, scale: x, x, use_reentrant=True, scale=scale)


def test_a_parameter_that_the_function_closes_over_gets_its_gradient():
    w = leaf(2.0)
    checkpoint(lambda x: (x * w).sin(), torch.tensor([1.0]), use_reentrant=False).sum().backward()
    assert torch.equal(w.grad, torch.tensor([2.0]).cos())


def test_grad_and_inputs_work_without_reentering_and_are_refused_with():
    x = leaf(1.0, 2.0)
    (g,) = torch.autograd.grad(checkpoint(torch.sin, x, use_reentrant=False).sum(), x)
    assert torch.equal(g, x.detach().cos())
    out = checkpoint(torch.sin, x, use_reentrant=True).sum()
    with pytest.raises(
        RuntimeError, match=r"When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad"
    ):
        torch.autograd.grad(out, x)
    assert x.grad is None


def test_second_derivatives():
    x = leaf(0.5, 2.0)
    out = checkpoint(lambda x: x.sin() * x.exp(), x, use_reentrant=False)
    (first,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(second, (2 * x.cos() * x.exp()).detach())


def test_nested():
    inner = Counted(lambda x: x.sin().exp())
    outer = Counted(lambda x: checkpoint(inner, x.cos(), use_reentrant=False).tanh())
    x = leaf(0.5, 2.0)
    expected = gradients(lambda x: x.cos().sin().exp().tanh(), x)
    assert torch.equal(gradients(lambda x: checkpoint(outer, x, use_reentrant=False), x)[0], expected[0])
    assert outer.runs >= 2
    assert inner.runs > outer.runs
    deep = lambda x: checkpoint(lambda x: checkpoint(outer, x, use_reentrant=False).sin(), x, use_reentrant=False)  # noqa: E731
    expected = gradients(lambda x: x.cos().sin().exp().tanh().sin(), x)
    assert torch.equal(gradients(deep, x)[0], expected[0])


@BOTH
def test_chain_of_checkpoints_each_recomputes_once(reentrant):
    parts = [Counted(lambda x: x.sin().exp()) for _ in range(4)]

    def run(x):
        for part in parts:
            x = checkpoint(part, x, use_reentrant=reentrant)
        return x

    x = leaf(0.1, 0.2)
    gradients(run, x)
    assert [part.runs for part in parts] == [2] * 4


def test_early_stop_leaves_out_what_saves_nothing_more():
    after = Counted(lambda x: x + 1)
    x = leaf(1.0)
    gradients(lambda x: checkpoint(lambda x: after(x.sin()), x, use_reentrant=False), x)
    assert after.runs == 1
    gradients(lambda x: checkpoint(lambda x: after(x.sin()), x, use_reentrant=False, early_stop=False), x)
    assert after.runs == 3
    with set_checkpoint_early_stop(False):
        out = checkpoint(lambda x: after(x.sin()), x, use_reentrant=False)
    out.sum().backward()
    assert after.runs == 5


def test_retained_graph_recomputes_for_each_backward():
    function = Counted(lambda x: x.sin().exp())
    x = leaf(1.0)
    out = checkpoint(function, x, use_reentrant=False).sum()
    out.backward(retain_graph=True)
    out.backward()
    assert function.runs == 3
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        out.backward()


def test_group_of_backwards_recomputes_once():
    function = Counted(lambda x: (x.sin(), x.cos()))
    x = leaf(1.0)
    a, b = checkpoint(function, x, use_reentrant=False)
    with GraphExecGroup():
        a.sum().backward()
        b.sum().backward()
        with pytest.raises(RuntimeError, match="cannot be nested"), GraphExecGroup():
            raise AssertionError
    assert function.runs == 2
    assert torch.equal(x.grad, (x.cos() - x.sin()).detach())


def test_backward_inside_of_the_checkpoint():
    x = leaf(1.0, 2.0)
    seen = []

    def function(x):
        y = x.sin()
        (g,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
        seen.append(g)
        return y * g

    out = checkpoint(function, x, use_reentrant=False)
    assert torch.equal(seen[0], x.detach().cos())
    out.sum().backward()
    torch.testing.assert_close(x.grad, (x.cos() * x.cos()).detach())


def test_asking_twice_in_one_backward_is_no_error():
    class Asks(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            assert torch.equal(ctx.saved_tensors[0], ctx.saved_tensors[0])
            return g * ctx.saved_tensors[0]

    x = leaf(1.0, 2.0)
    checkpoint(lambda x: Asks.apply(x.exp()), x, use_reentrant=False).sum().backward()
    torch.testing.assert_close(x.grad, (x.exp() * x.exp()).detach())


def test_input_changed_in_place_is_an_error():
    x = leaf(1.0, 2.0)
    y = x * 1
    out = checkpoint(torch.sin, y, use_reentrant=False)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


@BOTH
def test_saved_tensor_changed_inside_is_an_error(reentrant):
    def function(x):
        h = x * 1
        s = h.sin()
        h.add_(1)
        return s.cos()

    x = leaf(0.5)
    out = checkpoint(function, x, use_reentrant=reentrant).sum()
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*version 1; expected version 0"):
        out.backward()
    assert x.grad is None


def test_without_recording_the_function_runs_as_it_is():
    x = leaf(1.0)
    with torch.no_grad():
        assert not checkpoint(torch.sin, x, use_reentrant=False).requires_grad


def test_saved_tensor_hooks_around_apply_to_the_inputs():
    packed = []

    def pack(t):
        packed.append(t)
        return t

    x = leaf(1.0)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        out = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)
    assert len(packed) == 1
    out.sum().backward()


# --- checks of the second run ---------------------------------------------------------------------------------------


class Changing:
    """Does `first` in its first run, then `later`."""

    def __init__(self, first, later):
        self.first, self.later, self.runs = first, later, 0

    def __call__(self, x):
        self.runs += 1
        return (self.first if self.runs == 1 else self.later)(x)


def test_fewer_tensors_saved():
    out = checkpoint(Changing(lambda x: x.sin().cos(), lambda x: x.sin()), leaf(1.0), use_reentrant=False)
    with pytest.raises(CheckpointError, match=r"A different number of tensors was saved(?s:.*)forward: 2(?s:.*)n: 1\."):
        out.sum().backward()
    assert issubclass(CheckpointError, RuntimeError)


def test_more_tensors_saved():
    function = Changing(lambda x: x.sin(), lambda x: x.sin().cos())
    out = checkpoint(function, leaf(1.0), use_reentrant=False, early_stop=False)
    with pytest.raises(CheckpointError, match="trying to save more tensors during recomputation"):
        out.sum().backward()


def test_other_shape_and_dtype():
    x = leaf(1.0, 2.0, 3.0)
    out = checkpoint(Changing(lambda x: x.sin().cos(), lambda x: x[:2].sin().cos()), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match=r"different metadata(?s:.*)position 0(?s:.*)torch.Size\(\[3\]\)"):
        out.sum().backward()
    to_double = Changing(lambda x: x.sin().cos(), lambda x: x.double().sin().cos())
    with pytest.raises(CheckpointError, match=r"'dtype': torch.float64"):
        checkpoint(to_double, x, use_reentrant=False).sum().backward()
    assert x.grad is None


def test_unchecked_metadata():
    x = leaf(1.0, 2.0, 3.0)
    to_double = Changing(lambda x: x.sin().cos(), lambda x: x.double().sin().cos())
    checkpoint(to_double, x, use_reentrant=False, determinism_check="none").sum().backward()
    torch.testing.assert_close(x.grad, (-x.sin().sin() * x.cos()).detach())
    shorter = Changing(lambda x: x.sin().cos(), lambda x: x[:2].sin().cos())
    with pytest.raises(RuntimeError, match=r"size \[2\]"):
        checkpoint(shorter, x, use_reentrant=False, determinism_check="none").sum().backward()


def test_debug_shows_the_operators_of_both_runs():
    x = leaf(1.0, 2.0, 3.0)
    out = checkpoint(Changing(lambda x: x.sin().cos(), lambda x: x.sin()), x, use_reentrant=False, debug=True)
    with pytest.raises(CheckpointError, match=r"original forward") as info:
        out.sum().backward()
    text = str(info.value)
    assert "2 of 2: float32[3] = cos(float32[3])" in text
    assert "1 of 1: float32[3] = sin(float32[3])" in text
    assert f"{__file__}:" in text
    assert "A different number of tensors" in text
    with set_checkpoint_debug_enabled(True):
        out = checkpoint(Changing(lambda x: x.sin().cos(), lambda x: x.sin()), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="Operators executed"):
        out.sum().backward()
    with set_checkpoint_debug_enabled(False):
        out = checkpoint(Changing(lambda x: x.sin().cos(), lambda x: x.sin()), x, use_reentrant=False, debug=True)
    with pytest.raises(CheckpointError) as info:
        out.sum().backward()
    assert "Operators executed" not in str(info.value)


# --- bad input ------------------------------------------------------------------------------------------------------


def test_arguments_that_do_not_go_together():
    x = leaf(1.0)
    never = Counted(torch.sin)
    for arguments, words in (
        ({"use_reentrant": False, "determinism_check": "bad"}, "determinism_check should be one of"),
        ({"use_reentrant": True, "debug": True}, "only supported when use_reentrant=False"),
        ({"use_reentrant": True, "context_fn": lambda: (None, None)}, "only supported when use_reentrant=False"),
    ):
        with pytest.raises(ValueError, match=words):
            checkpoint(never, x, **arguments)
    assert never.runs == 0
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(never, x)


def test_reentrant_without_an_input_that_requires_grad():
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        assert not checkpoint(torch.sin, torch.ones(2), use_reentrant=True).requires_grad

    def unrecorded(x):
        with torch.no_grad():
            return x.sin()

    out = checkpoint(unrecorded, leaf(1.0), use_reentrant=True)
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True, this checkpoint"):
        out.sum().backward()


def test_parts_of_the_reentrant_way():
    x = leaf(1.0)
    cut, number = detach_variable((x * 2, 3))
    assert cut.is_leaf
    assert cut.requires_grad
    assert number == 3
    with pytest.raises(RuntimeError, match="Only tuple of tensors is supported. Got Unsupported input type: list"):
        detach_variable([x])
    with pytest.warns(UserWarning, match="None of the inputs"):
        check_backward_validity([torch.ones(1)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_backward_validity([x])


# --- sequences ------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("segments", [1, 2, 3, 4])
def test_sequential(reentrant, segments):
    parts = [Counted(f) for f in (torch.sin, torch.exp, torch.cos, torch.tanh, torch.sigmoid)]
    x = leaf(0.3, 0.6)
    expected = gradients(lambda x: x.sin().exp().cos().tanh().sigmoid(), x)
    got = gradients(lambda x: checkpoint_sequential(parts, segments, x, use_reentrant=reentrant), x)
    assert torch.equal(got[0], expected[0])
    recomputed = (segments - 1) * (len(parts) // segments)
    assert [part.runs for part in parts][recomputed:] == [1] * (len(parts) - recomputed)
    if reentrant:
        assert [part.runs for part in parts][:recomputed] == [2] * recomputed


def test_sequential_of_modules_and_wrong_arguments():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    x = torch.randn(5, 3)
    checkpoint_sequential(model, 2, x, use_reentrant=False).sum().backward()
    got = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model(x).sum().backward()
    assert all(torch.equal(a, p.grad) for a, p in zip(got, model.parameters(), strict=True))
    with pytest.raises(ValueError, match="Unexpected keyword arguments: bogus"):
        checkpoint_sequential(model, 2, x, use_reentrant=False, bogus=1)
    with pytest.raises(ValueError, match="must not be zero"):
        checkpoint_sequential(model, 4, x, use_reentrant=False)
