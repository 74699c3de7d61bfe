"""Hooks of modules: their order, what they may replace, their removal, and the errors they raise."""

import copy
import gc
import warnings
import weakref

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.modules import module as module_hooks


class Add(nn.Module):
    def forward(self, x, other=0):
        return x + other


class Failing(nn.Module):
    def forward(self, x):
        raise RuntimeError("no result")


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


# Forward ----------------------------------------------------------------------------------------------------------


def test_pre_hooks_replace_arguments_in_order():
    add = Add()
    add.register_forward_pre_hook(lambda m, args: args[0] * 2)
    add.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    add.register_forward_pre_hook(lambda m, args: None)
    assert add(torch.tensor(3.0)).item() == 7
    add.register_forward_pre_hook(lambda m, args: (torch.tensor(10.0),), prepend=True)
    assert add(torch.tensor(3.0)).item() == 21


def test_pre_hooks_with_keyword_arguments():
    add = Add()
    seen = []
    add.register_forward_pre_hook(lambda m, args, kwargs: seen.append((args, kwargs)), with_kwargs=True)
    add.register_forward_pre_hook(lambda m, args, kwargs: (args, {"other": 5}), with_kwargs=True)
    assert add(1, other=2) == 6
    assert seen == [((1,), {"other": 2})]
    add.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match=r"must return None or a tuple of \(new_args, new_kwargs\), but got 3"):
        add(1)


def test_forward_hooks_replace_the_result_in_order():
    add = Add()
    add.register_forward_hook(lambda m, args, out: out * 2)
    add.register_forward_hook(lambda m, args, kwargs, out: out + kwargs["other"], with_kwargs=True)
    add.register_forward_hook(lambda m, args, out: None)
    assert add(1, other=2) == 8
    add.register_forward_hook(lambda m, args, out: 100, prepend=True)
    assert add(1, other=2) == 202


def test_a_hook_may_replace_by_something_false():
    add = Add()
    add.register_forward_hook(lambda m, args, out: 0)
    assert add(5) == 0


def test_removal_by_handle_and_by_block():
    add = Add()
    handle = add.register_forward_hook(lambda m, args, kwargs, out: 9, with_kwargs=True, always_call=True)
    assert add(1) == 9
    handle.remove()
    handle.remove()
    assert add(1) == 1
    assert not add._forward_hooks_with_kwargs and not add._forward_hooks_always_called
    with add.register_forward_pre_hook(lambda m, args: (7,)):
        assert add(1) == 7
    assert add(1) == 1


def test_hooks_put_into_or_taken_out_of_the_dictionaries_directly():
    add = Add()
    add._forward_hooks[1000000] = lambda m, args, out: 9
    assert add(1) == 9
    add._forward_hooks.clear()
    assert add(1) == 1


def test_a_hook_that_removes_itself():
    add = Add()
    handles = []
    handles.append(add.register_forward_hook(lambda m, args, out: handles[0].remove()))
    assert add(1) == 1 and not add._forward_hooks


def test_always_called_hooks_run_after_an_error():
    failing = Failing()
    seen = []
    failing.register_forward_hook(lambda m, args, out: seen.append("plain"))
    failing.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    with pytest.raises(RuntimeError, match="no result"):
        failing(1)
    assert seen == [None]


def test_an_always_called_hook_runs_once_when_a_later_hook_fails():
    add = Add()
    seen = []
    add.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    add.register_forward_hook(lambda m, args, out: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        add(1)
    assert seen == [1]


def test_errors_of_always_called_hooks_become_warnings():
    failing = Failing()
    failing.register_forward_hook(lambda m, args, out: 1 / 0, always_call=True)
    silenced = pytest.warns(UserWarning, match="silenced as another error was raised in forward: division by zero")
    with silenced, pytest.raises(RuntimeError, match="no result"):
        failing(1)


def test_calling_forward_skips_hooks():
    add = Add()
    add.register_forward_hook(lambda m, args, out: 9)
    assert add.forward(1) == 1


def test_global_hooks_come_first():
    add = Add()
    order = []
    add.register_forward_pre_hook(lambda m, args: order.append("own pre"))
    add.register_forward_hook(lambda m, args, out: order.append("own"))
    handles = [
        module_hooks.register_module_forward_pre_hook(lambda m, args: order.append("global pre")),
        module_hooks.register_module_forward_hook(lambda m, args, out: order.append("global")),
    ]
    try:
        add(1)
    finally:
        for handle in handles:
            handle.remove()
    assert order == ["global pre", "own pre", "global", "own"]
    order.clear()
    Add()(1)
    assert order == []


# Backward ---------------------------------------------------------------------------------------------------------


def test_full_backward_hooks_see_the_gradients_of_inputs_and_outputs():
    linear = nn.Linear(2, 3, bias=False)
    seen = []
    linear.register_full_backward_hook(lambda m, gi, go: seen.append((m, gi, go)))
    x = torch.ones(1, 2, requires_grad=True)
    linear(x).sum().backward()
    ((module, grad_input, grad_output),) = seen
    assert module is linear
    assert torch.equal(grad_output[0], torch.ones(1, 3))
    assert torch.allclose(grad_input[0], linear.weight.sum(0, keepdim=True))
    assert torch.equal(x.grad, grad_input[0])


def test_backward_hooks_replace_gradients():
    add = Add()
    x = leaf(1.0, 2.0)
    add.register_full_backward_pre_hook(lambda m, go: (go[0] * 10,))
    add.register_full_backward_hook(lambda m, gi, go: (gi[0] + 1,))
    add.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,))
    add(x).sum().backward()
    assert x.grad.tolist() == [22.0, 22.0]


def test_prepended_backward_hooks_come_first():
    add = Add()
    order = []
    add.register_full_backward_hook(lambda m, gi, go: order.append(1))
    add.register_full_backward_hook(lambda m, gi, go: order.append(0), prepend=True)
    add.register_full_backward_pre_hook(lambda m, go: order.append("b"))
    add.register_full_backward_pre_hook(lambda m, go: order.append("a"), prepend=True)
    add(leaf(1.0)).sum().backward()
    assert order == ["a", "b", 0, 1]


def test_arguments_that_are_no_tensors_have_no_gradient():
    seen = []

    class Mixed(nn.Module):
        def forward(self, text, x, y):
            return "text", x * y, 3

    mixed = Mixed()
    mixed.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    x = leaf(2.0)
    mixed("text", x, torch.tensor([5.0]))[1].backward()
    ((grad_input, grad_output),) = seen
    assert len(grad_input) == len(grad_output) == 3
    assert grad_input[0] is None and grad_input[1].item() == 5
    assert grad_output[0] is None and grad_output[1].item() == 1 and grad_output[2] is None


def test_named_tuples_keep_their_type():
    from collections import namedtuple

    Two = namedtuple("Two", "a b")

    class Pair(nn.Module):
        def forward(self, x):
            return Two(x, x * 2)

    pair = Pair()
    pair.register_full_backward_hook(lambda m, gi, go: None)
    assert type(pair(leaf(1.0))) is Two


def test_hooks_fire_without_a_gradient_of_the_input():
    linear = nn.Linear(2, 2)
    seen = []
    linear.register_full_backward_hook(lambda m, gi, go: seen.append(gi))
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        linear(torch.ones(1, 2)).sum().backward()
    assert seen == [(None,)]
    assert linear.weight.grad is not None


def test_hooks_do_nothing_without_recording():
    linear = nn.Linear(2, 2)
    linear.register_full_backward_hook(lambda m, gi, go: 1 / 0)
    with torch.no_grad():
        assert not linear(torch.ones(1, 2, requires_grad=True)).requires_grad


@pytest.mark.parametrize(
    ("register", "hook", "text"),
    [
        ("register_full_backward_hook", lambda m, gi, go: (1, 2), "number of grad_input, got 2, but expected 1"),
        ("register_full_backward_pre_hook", lambda m, go: (1, 2), "number of grad_output, got 2, but expected 1"),
    ],
)
def test_hooks_that_return_the_wrong_number(register, hook, text):
    add = Add()
    getattr(add, register)(hook)
    with pytest.raises(RuntimeError, match=text):
        add(leaf(1.0)).sum().backward()


def test_a_hook_cannot_replace_a_gradient_that_is_not_there():
    linear = nn.Linear(2, 2)
    linear.register_full_backward_hook(lambda m, gi, go: go)
    with warnings.catch_warnings(), pytest.raises(RuntimeError, match="should always return None"):
        warnings.simplefilter("ignore")
        linear(torch.ones(1, 2)).sum().backward()


def test_gradients_that_pass_the_output_by():
    class Leaking(nn.Module):
        def forward(self, x):
            self.side = x * 2
            return x * 3

    leaking = Leaking()
    leaking.register_full_backward_hook(lambda m, gi, go: None)
    leaking(leaf(1.0))
    with pytest.raises(RuntimeError, match="called before the grad_output one"):
        leaking.side.sum().backward()


def test_results_that_hooks_cannot_see():
    class Dictionary(nn.Module):
        def forward(self, x):
            return {"x": x}

    module = Dictionary()
    module.register_full_backward_hook(lambda m, gi, go: None)
    with pytest.warns(UserWarning, match="should be a Tensor or a tuple of Tensors but received <class 'dict'>"):
        module(leaf(1.0))


def test_the_two_kinds_of_backward_hooks_exclude_each_other():
    full, partial = nn.Linear(1, 1), nn.Linear(1, 1)
    full.register_full_backward_hook(lambda m, gi, go: None)
    partial.register_backward_hook(lambda m, gi, go: None)
    for call in (full.register_backward_hook, partial.register_full_backward_hook):
        with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
            call(lambda m, gi, go: None)
    partial.register_full_backward_pre_hook(lambda m, go: None)


def test_deprecated_backward_hooks_sit_on_the_last_node():
    class Scale(nn.Module):
        def forward(self, x):
            return x * 3

    scale = Scale()
    seen = []
    scale.register_backward_hook(lambda m, gi, go: seen.append((m, go)))
    x = leaf(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scale(x * 1).sum().backward()
    assert seen[0][0] is scale and seen[0][1][0].item() == 1 and x.grad.item() == 3


def test_deprecated_backward_hooks_warn_where_they_miss_gradients():
    class Two(nn.Module):
        def forward(self, x):
            return x * 2 + 1

    two = Two()
    two.register_backward_hook(lambda m, gi, go: None)
    with pytest.warns(FutureWarning, match="forward contains multiple autograd Nodes"):
        two(leaf(1.0) * 1)


def test_deprecated_backward_hooks_warn_of_results_from_several_nodes():
    class Both(nn.Module):
        def forward(self, x):
            return x * 2, x * 3

    both = Both()
    both.register_backward_hook(lambda m, gi, go: None)
    with pytest.warns(FutureWarning, match="outputs are generated by different autograd Nodes"):
        both(leaf(1.0))


def test_global_backward_hooks():
    seen = []
    handles = [
        module_hooks.register_module_full_backward_pre_hook(lambda m, go: seen.append("pre")),
        module_hooks.register_module_full_backward_hook(lambda m, gi, go: seen.append("full")),
    ]
    try:
        with pytest.raises(RuntimeError, match="as a global Module hook"):
            module_hooks.register_module_backward_hook(lambda m, gi, go: None)
        add = Add()
        add.register_full_backward_hook(lambda m, gi, go: seen.append("own"))
        add(leaf(1.0)).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    assert seen == ["pre", "full", "own"]


# Copies and lifetimes ---------------------------------------------------------------------------------------------


def test_hooks_are_copied_with_the_module():
    class Owner(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.register_forward_hook(self.count)
            self._register_load_state_dict_pre_hook(Owner.noted, with_module=True)

        def count(self, *args):
            self.calls += 1

        def noted(self, *args):
            self.loaded = True

        def forward(self, x):
            return x

    owner = Owner()
    other = copy.deepcopy(owner)
    other(1)
    other.load_state_dict({})
    assert (owner.calls, other.calls) == (0, 1)
    assert other.loaded and not hasattr(owner, "loaded")


def test_a_handle_keeps_no_module_alive():
    add = Add()
    handle = add.register_forward_hook(lambda m, args, out: None)
    reference = weakref.ref(add)
    del add
    gc.collect()
    assert reference() is None
    handle.remove()


def test_a_copied_handle_removes_the_copied_hook():
    add = Add()
    add.handle = add.register_forward_hook(lambda m, args, out: 9)
    other = copy.deepcopy(add)
    other.handle.remove()
    assert other(1) == 1 and add(1) == 9
