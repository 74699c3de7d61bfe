"""Hooks on tensors, on nodes and after accumulation: what they see and replace, their order, removal, refusals."""

import copy
import gc
import pickle
import weakref

import pytest

import rushlight as torch
from rushlight.autograd import grad
from rushlight.autograd.graph import register_multi_grad_hook
from rushlight.utils.hooks import RemovableHandle


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


# tensor hooks


def test_hook_sees_the_gradient(x):
    seen = []
    y = x * 2
    handle = y.register_hook(seen.append)
    assert isinstance(handle, RemovableHandle)
    (y * y).sum().backward()
    assert [g.tolist() for g in seen] == [[4.0, 8.0, 12.0]]
    assert not seen[0].requires_grad


def test_hook_on_a_leaf_sees_each_contribution_summed(x):
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    (x * 2 + x * 3).sum().backward()
    x.sum().backward()
    assert seen == [[5.0] * 3, [1.0] * 3]
    assert x.grad.tolist() == [6.0] * 3


def test_hook_replaces_the_gradient(x):
    y = x * 2
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    y.sum().backward()
    assert x.grad.tolist() == [21.0] * 3


def test_hooks_run_in_order_of_registration_each_on_the_result_of_the_last(x):
    y = x * 1
    y.register_hook(lambda g: g + 1)
    y.register_hook(lambda g: None)
    y.register_hook(lambda g: g * 10)
    assert grad(y.sum(), x)[0].tolist() == [20.0] * 3


def test_hook_runs_for_grad_too(x):
    y = x * 2
    y.register_hook(lambda g: g * 10)
    assert grad(y.sum(), y, retain_graph=True)[0].tolist() == [10.0] * 3
    assert grad(y.sum(), x)[0].tolist() == [20.0] * 3


def test_hook_of_an_output(x):
    y = x * 2
    y.register_hook(lambda g: g * 3)
    y.backward(torch.ones(3))
    assert x.grad.tolist() == [6.0] * 3


def test_hook_on_one_of_several_outputs(x):
    a, b, c = (x * 1).unbind()
    b.register_hook(lambda g: g * 10)
    (a + b + c).backward()
    assert x.grad.tolist() == [1.0, 10.0, 1.0]


def test_removed_hook_does_not_run(x):
    y = x * 2
    seen = []
    first, second = y.register_hook(lambda g: seen.append("first")), y.register_hook(lambda g: seen.append("second"))
    first.remove()
    first.remove()
    y.sum().backward(retain_graph=True)
    assert seen == ["second"]
    with second:
        pass
    y.sum().backward()
    assert seen == ["second"]


def test_hook_may_remove_itself_and_others_while_running(x):
    y = x * 2
    seen = []

    def once(g):
        seen.append("once")
        handle.remove()
        other.remove()

    handle = y.register_hook(once)
    other = y.register_hook(lambda g: seen.append("other"))
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert seen.count("once") == 1
    assert seen.count("other") <= 1


def test_hook_may_register_hooks(x):
    y = x * 2
    seen = []
    y.register_hook(lambda g: y.register_hook(lambda g: seen.append("late")) and None)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert "late" in seen


def test_hook_that_changes_its_gradient_in_place_harms_no_sibling():
    a = torch.ones(2, requires_grad=True)
    b = torch.ones(2, requires_grad=True)
    a.register_hook(lambda g: g.mul_(10))
    (a + b).backward(torch.ones(2))
    assert a.grad.tolist() == [10.0] * 2
    assert b.grad.tolist() == [1.0] * 2


def test_hook_as_decorator_and_bound_method(x):
    class Recorder:
        def __init__(self):
            self.seen = []

        def hook(self, g):
            self.seen.append(g.tolist())

    recorder = Recorder()
    y = x * 2
    y.register_hook(recorder.hook)
    y.sum().backward()
    assert recorder.seen == [[1.0] * 3]


def test_hooks_are_refused_where_they_could_not_run(x):
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(3).register_hook(print)
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        x.detach().register_hook(print)


def test_hook_that_returns_what_is_not_a_tensor(x):
    y = x * 2
    y.register_hook(lambda g: 3)
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        y.sum().backward()
    assert x.grad is None


def test_hook_that_returns_another_shape(x):
    y = x * 2
    y.register_hook(lambda g: torch.ones(4))
    with pytest.raises(RuntimeError, match=r"size|shape"):
        y.sum().backward()
    assert x.grad is None


def test_hook_that_raises(x):
    y = x * 2

    def hook(g):
        raise LookupError("from the hook")

    handle = y.register_hook(hook)
    with pytest.raises(LookupError, match="from the hook"):
        y.sum().backward(retain_graph=True)
    handle.remove()
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_hook_sees_a_differentiable_gradient_under_create_graph(x):
    seen = []
    y = x**2
    y.register_hook(seen.append)
    grad((y * y).sum(), x, create_graph=True)
    assert seen[0].requires_grad
    assert torch.is_grad_enabled()


def test_retain_grad_sees_the_result_of_all_hooks(x):
    y = x * 2
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    y.sum().backward()
    assert y.grad.tolist() == [10.0] * 3


def test_tensor_with_hooks_keeps_them_when_changed_in_place(x):
    seen = []
    y = x * 1
    y.register_hook(lambda g: seen.append(("before", g.tolist())))
    y.mul_(5)
    y.register_hook(lambda g: seen.append(("after", g.tolist())))
    y.sum().backward()
    assert seen == [("after", [1.0] * 3), ("before", [5.0] * 3)]


def test_retain_grad_follows_the_tensor_when_changed_in_place(x):
    y = x * 1
    y.retain_grad()
    y.mul_(5)
    y.sum().backward()
    assert y.grad.tolist() == [1.0] * 3


# hooks after accumulation


def test_post_accumulate_hook_sees_the_accumulated_gradient(x):
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append((p is x, p.grad.tolist())))
    (x * 2 + x).sum().backward()
    x.sum().backward()
    assert seen == [(True, [3.0] * 3), (True, [4.0] * 3)]


def test_post_accumulate_hook_may_clear_and_step(x):
    def step(p):
        with torch.no_grad():
            p -= 0.1 * p.grad
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 10).sum().backward()
    assert x.grad is None
    assert torch.allclose(x.detach(), torch.tensor([0.0, 1.0, 2.0]))


def test_post_accumulate_hook_runs_after_tensor_hooks_and_not_for_grad(x):
    order = []
    x.register_post_accumulate_grad_hook(lambda p: order.append("accumulated"))
    x.register_hook(lambda g: order.append("tensor"))
    x.sum().backward()
    grad(x.sum(), x)
    assert order == ["tensor", "accumulated", "tensor"]


def test_post_accumulate_hook_is_removed(x):
    seen = []
    handle = x.register_post_accumulate_grad_hook(seen.append)
    handle.remove()
    x.sum().backward()
    assert seen == []


def test_post_accumulate_hook_is_for_leaves(x):
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.ones(1).register_post_accumulate_grad_hook(print)


# node hooks


def test_node_posthook_sees_both_sides_and_replaces_the_inner(x):
    seen = []
    y = x * 2

    def hook(grad_inputs, grad_outputs):
        seen.append((grad_inputs[0].tolist(), grad_outputs[0].tolist(), len(grad_inputs)))
        return tuple(None if g is None else g * 10 for g in grad_inputs)

    y.grad_fn.register_hook(hook)
    y.sum().backward()
    assert seen == [([2.0] * 3, [1.0] * 3, 2)]
    assert x.grad.tolist() == [20.0] * 3


def test_node_prehook_sees_and_replaces_the_outer(x):
    y = x * 2
    y.grad_fn.register_prehook(lambda grad_outputs: (grad_outputs[0] * 10,))
    y.sum().backward()
    assert x.grad.tolist() == [20.0] * 3


def test_node_hooks_are_removed(x):
    y = x * 2
    seen = []
    handles = [
        y.grad_fn.register_hook(lambda i, o: seen.append("post")),
        y.grad_fn.register_prehook(lambda o: seen.append("pre")),
    ]
    y.sum().backward(retain_graph=True)
    assert seen == ["pre", "post"]
    for handle in handles:
        handle.remove()
    y.sum().backward()
    assert seen == ["pre", "post"]


def test_node_hook_must_keep_the_number_of_gradients(x):
    y = x * 2
    y.grad_fn.register_hook(lambda i, o: (i[0],) * 5)
    with pytest.raises(RuntimeError, match="hook"):
        y.sum().backward()


def test_node_hooks_return_tuples(x):
    for register in ("register_hook", "register_prehook"):
        y = x * 2
        getattr(y.grad_fn, register)(lambda *gradients: gradients[0][0])
        with pytest.raises(TypeError, match="expected tuple, but hook returned"):
            y.sum().backward()


def test_order_of_all_hooks(x):
    order = []
    y = x * 2
    y.retain_grad()
    y.grad_fn.register_hook(lambda i, o: order.append("node post"))
    y.grad_fn.register_prehook(lambda o: order.append("node pre"))
    y.register_hook(lambda g: order.append("tensor"))
    x.register_hook(lambda g: order.append("leaf"))
    accumulator = y.grad_fn.next_functions[0][0]
    accumulator.register_prehook(lambda o: order.append("accumulator pre"))
    accumulator.register_hook(lambda i, o: order.append("accumulator post"))
    x.register_post_accumulate_grad_hook(lambda p: order.append("accumulated"))
    y.sum().backward()
    assert order == [
        "tensor",
        "node pre",
        "node post",
        "leaf",
        "accumulator pre",
        "accumulated",
        "accumulator post",
    ]


def test_node_hooks_do_not_run_for_nodes_that_are_not_needed(x):
    seen = []
    y = x * 2
    y.grad_fn.register_hook(lambda i, o: seen.append("post"))
    grad(y.sum(), y, retain_graph=True)
    assert seen == []
    y.sum().backward(inputs=[x])
    assert seen == ["post"]


# hooks over several tensors


def test_multi_grad_hook_waits_for_all(x):
    w = torch.ones(3, requires_grad=True)
    seen = []
    handle = register_multi_grad_hook((x, w), lambda gs: seen.append([None if g is None else g.tolist() for g in gs]))
    (x * 2 + w * 3).sum().backward()
    assert seen == [[[2.0] * 3, [3.0] * 3]]
    (x * 2).sum().backward()
    assert seen[1:] == [[[2.0] * 3, None]]
    (x * w).sum().backward(inputs=[w])
    assert seen[2:] == [[None, [1.0, 2.0, 3.0]]]
    handle.remove()
    (x * w).sum().backward()
    assert len(seen) == 3


def test_multi_grad_hook_over_inner_tensors(x):
    y, z = x * 2, x * 3
    seen = []
    register_multi_grad_hook((y, x, z), lambda gs: seen.append([g.tolist() for g in gs]))
    (y * z).sum().backward()
    assert seen == [[[3.0, 6.0, 9.0], [12.0, 24.0, 36.0], [2.0, 4.0, 6.0]]]


def test_multi_grad_hook_over_outputs_of_one_node(x):
    a, b, c = (x * 1).unbind()
    seen = []
    register_multi_grad_hook((a, b), lambda gs: seen.append([g.item() for g in gs]))
    (a * 2 + b * 3 + c).backward()
    assert seen == [[2.0, 3.0]]


def test_multi_grad_hook_for_any(x):
    w = torch.ones(3, requires_grad=True)
    seen = []
    handle = register_multi_grad_hook((x, w), lambda g: seen.append(g.tolist()), mode="any")
    (x * 2 + w * 2).sum().backward()
    assert seen == [[2.0] * 3]
    (w * 5).sum().backward()
    assert seen[1:] == [[5.0] * 3]
    handle.remove()
    (w * 5).sum().backward()
    assert len(seen) == 2


def test_multi_grad_hook_in_a_nested_backward(x):
    """A backward inside the backward that it belongs to counts for itself."""
    w = torch.ones(3, requires_grad=True)
    seen = []
    register_multi_grad_hook((x, w), lambda gs: seen.append([None if g is None else g.tolist() for g in gs]))
    y = x * 2

    def run_another(g):
        with torch.enable_grad():
            (w * 7).sum().backward()

    y.register_hook(run_another)
    (y + w).sum().backward()
    assert [None, [7.0] * 3] in seen
    assert [[2.0] * 3, [1.0] * 3] in seen


def test_multi_grad_hook_of_nothing_and_of_the_wrong_kind(x):
    register_multi_grad_hook((), print).remove()
    with pytest.raises(ValueError, match="mode to be one of .* but got some"):
        register_multi_grad_hook((x,), print, mode="some")
    with pytest.raises(AssertionError, match="Expected gradient function to be set"):
        register_multi_grad_hook((x, torch.ones(1)), print)


def scale(gradient):
    gradient.mul_(10)


@pytest.mark.parametrize(
    "register",
    [
        lambda left, out: left.register_hook(scale),
        lambda left, out: left.grad_fn.register_prehook(lambda grads: scale(grads[0])),
        lambda left, out: left.grad_fn.register_hook(lambda inputs, outputs: scale(inputs[0])),
        lambda left, out: out.grad_fn.register_hook(lambda inputs, outputs: scale(inputs[0])),
    ],
)
@pytest.mark.parametrize("weights", [1.0, torch.ones(2)])
def test_hooks_that_change_gradients_in_place_harm_no_sibling(register, weights):
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    left, right = a * 1, b * 1
    out = left + right
    register(left, out)
    (out * weights).sum().backward()
    assert a.grad.tolist() == [10.0, 10.0]
    assert b.grad.tolist() == [1.0, 1.0]


def test_hook_that_changes_what_came_in_changes_nothing_else():
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    out = a * 1 + b * 1
    out.grad_fn.register_hook(lambda inputs, outputs: scale(outputs[0]))
    out.sum().backward()
    assert a.grad.tolist() == b.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("which", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_module_hooks_that_change_gradients_in_place_harm_no_sibling(which):
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    module = torch.nn.Identity()
    getattr(module, which)(lambda module, grads, *outputs: scale(grads[0]))
    (module(a * 1) + b * 1).sum().backward()
    assert a.grad.tolist() == [10.0, 10.0]
    assert b.grad.tolist() == [1.0, 1.0]


def test_multi_grad_hook_for_any_passes_over_what_needs_none(x):
    seen = []
    register_multi_grad_hook((torch.ones(1), x), seen.append, mode="any")
    (x * 2).sum().backward()
    assert [g.tolist() for g in seen] == [x.grad.tolist()]


# handles, copies and memory


def test_hooks_are_not_copied(x):
    seen = []
    x.register_hook(seen.append)
    clone = copy.deepcopy(x)
    clone.sum().backward()
    assert seen == []
    with pytest.warns(UserWarning, match="hook"):
        other = pickle.loads(pickle.dumps(x))
    assert other.requires_grad


def test_handle_outlives_its_tensor(x):
    y = x * 2
    handle = y.register_hook(print)
    del y
    gc.collect()
    handle.remove()


class Token:
    pass


def test_hook_lives_as_long_as_the_tensor_or_its_graph(x):
    token = Token()
    reference = weakref.ref(token)
    y = x * 2
    y.register_hook(lambda g, token=token: None)
    del token
    z = y * 3
    del y
    gc.collect()
    assert reference() is not None
    del z
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("where", ["leaf", "inner", "node", "post accumulate"])
def test_cycles_through_hooks_are_collected(where):
    def make():
        token = Token()
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        if where == "leaf":
            x.register_hook(lambda g, keep=(x, token): None)
        elif where == "inner":
            y.register_hook(lambda g, keep=(y, token): None)
        elif where == "node":
            y.grad_fn.register_hook(lambda i, o, keep=(y, token): None)
        else:
            x.register_post_accumulate_grad_hook(lambda p, keep=(x, token): None)
        y.sum().backward()
        return weakref.ref(token)

    reference = make()
    gc.collect()
    assert reference() is None
