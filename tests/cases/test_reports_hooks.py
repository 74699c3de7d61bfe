"""What trips people up, part two: hooks, threads, saved tensors, inference tensors.

Every test bears the number of a case of public reports; the values are PyTorch's.
"""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

import rushlight as torch


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


# --- hooks on tensors -----------------------------------------------------------------------------------------------


def test_A49_post_accumulate_hook_sees_the_summed_gradient():
    x = leaf(1.0, 2.0)
    x.grad = torch.tensor([10.0, 10.0])
    seen = []

    def hook(parameter):
        assert parameter is x
        seen.append(parameter.grad.tolist())
        parameter.grad = None

    x.register_post_accumulate_grad_hook(hook)
    (x * x + x).sum().backward()
    assert seen == [[13.0, 15.0]]
    assert x.grad is None


def test_A49_optimizer_step_inside_backward():
    parameters = [leaf(1.0), leaf(2.0)]
    optimizers = {p: torch.optim.SGD([p], lr=0.5) for p in parameters}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for p in parameters:
        p.register_post_accumulate_grad_hook(step)
    (parameters[0] * 2 + parameters[1] * 4).sum().backward()
    assert [p.item() for p in parameters] == [0.0, 0.0]
    assert [p.grad for p in parameters] == [None, None]


def test_A49_post_accumulate_hook_belongs_to_leaves():
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (leaf(1.0) * 2).register_post_accumulate_grad_hook(lambda p: None)
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.ones(1).register_post_accumulate_grad_hook(lambda p: None)


def backward_through_hook(result):
    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(lambda grad: result)
    y.sum().backward()
    return x.grad


def test_A51_results_of_hooks():
    assert backward_through_hook(None).tolist() == [2.0, 2.0]
    assert backward_through_hook(torch.tensor([5.0, 7.0])).tolist() == [10.0, 14.0]
    with pytest.raises(TypeError, match="hook returned 'int'"):
        backward_through_hook(3)
    with pytest.raises(RuntimeError, match="has changed the size of value"):
        backward_through_hook(torch.ones(3))
    with pytest.raises(RuntimeError, match="has changed the type of value"):
        backward_through_hook(torch.ones(2, dtype=torch.float64))


def test_A51_hook_on_a_tensor_without_gradient():
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(1).register_hook(lambda grad: grad)


def test_A52_multi_grad_hook_of_which_only_one_tensor_is_reached():
    a, b = leaf(1.0), leaf(1.0)
    calls = []
    handle = torch.autograd.graph.register_multi_grad_hook(
        (a, b), lambda grads: calls.append([None if grad is None else grad.item() for grad in grads])
    )
    (a * 2).sum().backward()
    assert calls == [[2.0, None]]
    (a * 2 + b * 3).sum().backward()
    assert calls == [[2.0, None], [2.0, 3.0]]
    handle.remove()
    (a + b).sum().backward()
    assert len(calls) == 2


# --- hooks on modules -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("input_requires_grad", [True, False])
def test_A54_full_backward_hook_followed_by_relu_in_place(input_requires_grad):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(inplace=True))
    model[0].register_full_backward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        model(torch.ones(1, 2, requires_grad=input_requires_grad))


def hooked_linear():
    module, calls = torch.nn.Linear(2, 1), []
    module.register_full_backward_hook(lambda module, inputs, outputs: calls.append((inputs, outputs)))
    return module, calls


def test_A55_full_backward_hook_without_an_input_that_requires_grad():
    module, calls = hooked_linear()
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        module(torch.ones(1, 2)).sum().backward()
    ((inputs, outputs),) = calls
    assert inputs == (None,)
    assert outputs[0].tolist() == [[1.0]]


def test_A55_forward_called_by_hand_skips_hooks():
    module, calls = hooked_linear()
    module.forward(torch.ones(1, 2, requires_grad=True)).sum().backward()
    assert calls == []
    module(torch.ones(1, 2, requires_grad=True)).sum().backward()
    assert len(calls) == 1


# --- threads and re-entrance ----------------------------------------------------------------------------------------


def run_in_threads(function, count):
    with ThreadPoolExecutor(count) as pool:
        start = threading.Barrier(count)
        for future in [pool.submit(lambda: (start.wait(60), function())) for _ in range(count)]:
            future.result(timeout=60)


def test_A98_threads_accumulate_exactly():
    x = leaf(1.0, 1.0)

    def work():
        for _ in range(50):
            (x * 2).sum().backward()

    run_in_threads(work, 4)
    assert x.grad.tolist() == [400.0, 400.0]


class Nested(torch.autograd.Function):
    """sin, whose backward differentiates sin itself."""

    lock = threading.Lock()

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with Nested.lock, torch.enable_grad():
            inner = x.detach().requires_grad_()
            (slope,) = torch.autograd.grad(inner.sin().sum(), inner)
        return grad * slope


def test_A98_backward_inside_backward():
    x = leaf(0.5, 1.0)
    Nested.apply(x).sum().backward()
    assert torch.equal(x.grad, x.detach().cos())


def test_A98_backward_inside_backward_under_a_lock_in_several_threads():
    x = leaf(0.5)
    run_in_threads(lambda: [Nested.apply(x).sum().backward() for _ in range(20)], 4)
    assert x.grad.item() == pytest.approx(80 * torch.tensor(0.5).cos().item(), rel=1e-5)


def test_A98_reentrance_to_a_depth_of_2000():
    class Deep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            if ctx.depth > 0:
                with torch.enable_grad():
                    inner = grad.detach().requires_grad_()
                    Deep.apply(inner, ctx.depth - 1).sum().backward()
            return grad, None

    x = leaf(1.0)
    Deep.apply(x, 2000).sum().backward()
    assert x.grad.tolist() == [1.0]


def test_A98_no_grad_holds_for_its_thread_only():
    seen = []
    with torch.no_grad():
        run_in_threads(lambda: seen.append((torch.is_grad_enabled(), (leaf(1.0) * 2).requires_grad)), 1)
        assert not torch.is_grad_enabled()
    assert seen == [(True, True)]


# --- saved tensors --------------------------------------------------------------------------------------------------

saved_tensors_hooks = torch.autograd.graph.saved_tensors_hooks


def test_A100_each_saved_tensor_is_packed_and_unpacked():
    packed, unpacked = [], []
    x = leaf(2.0)
    with saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: unpacked.append(t) or t):
        y = x * x
    assert (len(packed), len(unpacked)) == (2, 0)
    y.sum().backward()
    assert (len(packed), len(unpacked)) == (2, 2)
    assert x.grad.tolist() == [4.0]


def test_A100_pack_that_changes_its_input():
    x = leaf(2.0) * 1
    with (
        saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t),
        pytest.raises(RuntimeError, match="pack hook is modifying its input in place"),
    ):
        x * x


def test_A100_unpack_that_returns_no_tensor():
    x = leaf(2.0)
    with saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x * x
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got result of type int"):
        y.sum().backward()


def test_A100_hooks_can_be_disabled_with_a_message():
    with (
        torch.autograd.graph.disable_saved_tensors_hooks("no hooks here"),
        pytest.raises(RuntimeError, match="no hooks here"),
        saved_tensors_hooks(lambda t: t, lambda t: t),
    ):
        leaf(1.0).exp()
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        assert leaf(0.0).exp().tolist() == [1.0]


def test_A100_holding_the_packed_output_does_not_leak():
    # PyTorch packs the output itself, which then holds its own node; what is packed here must be detached from it.
    x = leaf(2.0)
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x.exp()
    watched = weakref.ref(y)
    del y
    gc.collect()
    assert watched() is None


# --- inference tensors ----------------------------------------------------------------------------------------------


@pytest.fixture
def inference():
    with torch.inference_mode():
        return torch.ones(2)


def test_A101_what_inference_tensors_refuse(inference):
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        inference * leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        inference.add_(1)
    with pytest.raises(RuntimeError, match="requires_grad=True on inference tensor outside InferenceMode"):
        inference.requires_grad_()
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = inference._version
    assert inference.tolist() == [1.0, 1.0]  # PyTorch writes first and refuses then


def test_A101_what_inference_tensors_allow(inference):
    assert inference.is_inference()
    x = leaf(1.0, 2.0)
    y = inference + x
    assert y.tolist() == [2.0, 3.0]
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    with torch.inference_mode():
        assert inference.add_(1).tolist() == [2.0, 2.0]
