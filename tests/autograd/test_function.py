"""Custom Functions: the node, the context, what forward may take, save and return."""

import pytest

import rushlight as torch
from rushlight.autograd import Function, grad
from rushlight.autograd.function import (
    BackwardCFunction,
    FunctionCtx,
    FunctionMeta,
)
from rushlight.testing import assert_close
from sample_functions import Double, Multiply, function


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


# the node


def test_output_knows_its_node(x):
    y = Multiply.apply(x, x)
    node = y.grad_fn
    assert type(node).__name__ == node.name() == "MultiplyBackward"
    assert isinstance(node, BackwardCFunction)
    assert isinstance(node, FunctionCtx)
    assert not isinstance(node, Function)
    assert type(Multiply) is FunctionMeta
    assert repr(y).endswith("grad_fn=<MultiplyBackward>)")
    assert "MultiplyBackward object at 0x" in repr(node)
    assert not y.is_leaf
    assert y.requires_grad


def test_every_function_has_a_node_class_of_its_own(x):
    class Negated(Double):
        @staticmethod
        def backward(ctx, g):
            return g * -2

    assert type(Double.apply(x).grad_fn) is type(Double.apply(x).grad_fn)
    assert type(Negated.apply(x).grad_fn).__name__ == "NegatedBackward"
    assert grad(Negated.apply(x).sum(), x)[0].tolist() == [-2.0] * 3
    assert grad(Double.apply(x).sum(), x)[0].tolist() == [2.0] * 3


def test_next_functions_have_one_entry_per_tensor(x):
    y = x * 1
    node = (
        function(lambda ctx, a, k, b, c: a * k, lambda ctx, g: (g, None, None, None))
        .apply(y, 3, torch.ones(1), x)
        .grad_fn
    )
    (first, nr), second, third = node.next_functions
    assert first is y.grad_fn
    assert nr == 0
    assert second == (None, 0)
    assert third[0].variable is x


def test_node_hooks(x):
    order = []
    y = Double.apply(x)
    y.grad_fn.register_prehook(lambda gs: order.append(("pre", gs[0].tolist())) or (gs[0] * 10,))
    y.grad_fn.register_hook(lambda gi, go: order.append(("post", gi[0].tolist(), go[0].tolist())))
    y.sum().backward()
    assert order == [("pre", [1.0] * 3), ("post", [20.0] * 3, [10.0] * 3)]
    assert x.grad.tolist() == [20.0] * 3


def test_backward_by_hand(x):
    node = Multiply.apply(x, torch.full((3,), 5.0)).grad_fn
    by_a, by_b = node.apply(torch.ones(3))
    assert by_a.tolist() == [5.0] * 3
    assert torch.equal(by_b, x)


def test_metadata_is_a_dict_of_the_node(x):
    node = Double.apply(x).grad_fn
    node.metadata["key"] = 1
    assert node.metadata == {"key": 1}
    assert Double.apply(x).grad_fn.metadata == {}


# forward


def test_forward_runs_without_recording_on_its_own_arguments(x):
    seen = []

    def forward(ctx, a):
        seen.extend([torch.is_grad_enabled(), a.requires_grad, a is x])
        return a * 2

    function(forward).apply(x)
    assert seen == [False, True, True]
    assert torch.is_grad_enabled()


def test_arguments_that_are_not_tensors_pass_unchanged(x):
    marker = object()
    seen = []
    f = function(lambda ctx, *args: seen.extend(args) or args[0] * 2, lambda ctx, g: (g, None, None, None, None))
    f.apply(x, marker, [x], None, "text").sum().backward()
    assert seen[1] is marker
    assert seen[2][0] is x
    assert seen[3:] == [None, "text"]


def test_tensors_inside_containers_are_not_tracked(x):
    y = function(lambda ctx, items: items[0] * 2, lambda ctx, g: None).apply([x])
    assert not y.requires_grad
    assert y.grad_fn is None


def test_nothing_is_recorded_without_need(x):
    assert Double.apply(x.detach()).grad_fn is None
    with torch.no_grad():
        assert Double.apply(x).grad_fn is None


def test_outputs_that_are_not_tensors_pass_unchanged(x):
    make = lambda out: function(lambda ctx, a: out).apply(x)  # noqa: E731
    assert make(3) == 3
    assert make(None) is None
    y, three = function(lambda ctx, a: (a * 2, 3), lambda ctx, g, _: g).apply(x)
    assert three == 3
    y.sum().backward()
    assert x.grad.tolist() == [1.0] * 3


def test_lists_and_dicts_of_tensors_are_not_outputs(x):
    for container in (lambda t: [t], lambda t: {"a": t}):
        result = function(lambda ctx, a, c=container: c(a * 2)).apply(x)
        (inside,) = result.values() if isinstance(result, dict) else result
        assert not inside.requires_grad


def test_tuple_of_one_stays_a_tuple(x):
    result = function(lambda ctx, a: (a * 2,), lambda ctx, g: g * 2).apply(x)
    assert isinstance(result, tuple)
    assert result[0].requires_grad


def test_many_outputs_share_a_node(x):
    a, b = function(lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3).apply(x)
    assert a.grad_fn is b.grad_fn
    assert (a.output_nr, b.output_nr) == (0, 1)
    (a.sum() + 10 * b.sum()).backward()
    assert x.grad.tolist() == [32.0] * 3


def test_exception_in_forward_arrives_as_itself(x):
    def forward(ctx, a):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        function(forward).apply(x)
    assert torch.is_grad_enabled()


def test_arguments_by_keyword_take_their_places(x):
    b = torch.full((3,), 5.0, requires_grad=True)
    Multiply.apply(b=b, a=x).sum().backward()
    assert x.grad.tolist() == [5.0] * 3
    assert b.grad.tolist() == x.tolist()


def test_wrong_arguments_are_type_errors(x):
    with pytest.raises(TypeError, match="argument"):
        Multiply.apply(x)
    with pytest.raises(TypeError, match="argument"):
        Multiply.apply(x, x, x)
    with pytest.raises(TypeError, match="unexpected keyword argument 'c'"):
        Multiply.apply(x, b=x, c=x)
    with pytest.raises(TypeError, match="'a'"):
        Multiply.apply(x, a=x)
    with pytest.raises(TypeError, match="unexpected keyword argument 'k'"):
        function(lambda ctx, a, *, k=2: a * k).apply(x, k=3)


# setup_context


class Scale(Function):
    @staticmethod
    def forward(x, factor=3.0):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.inputs = inputs
        ctx.output_requires_grad = output.requires_grad
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None


def test_setup_context_sees_all_inputs_defaults_included(x):
    for y, factor in ((Scale.apply(x), 3.0), (Scale.apply(x, 5.0), 5.0), (Scale.apply(factor=7.0, x=x), 7.0)):
        ctx = y.grad_fn
        assert ctx.inputs[0] is x
        assert ctx.inputs[1] == factor
        assert not ctx.output_requires_grad
        assert grad(y.sum(), x)[0].tolist() == [factor] * 3


def test_setup_context_runs_without_recording(x):
    seen = []

    def setup_context(ctx, inputs, output):
        seen.append(torch.is_grad_enabled())
        ctx.save_for_backward(*inputs, output)

    f = function(lambda a: a.exp(), lambda ctx, g: g * ctx.saved_tensors[1], setup_context=setup_context)
    y = f.apply(x)
    y.sum().backward()
    assert seen == [False]
    assert_close(x.grad, y.detach())


def test_setup_context_without_enough_arguments(x):
    with pytest.raises(TypeError, match="argument"):
        Scale.apply()
    with pytest.raises(TypeError, match="argument"):
        Scale.apply(x, 1.0, 2.0)
    with pytest.raises(TypeError, match="'other'"):
        Scale.apply(x, other=2.0)


# the context


def test_saved_tensors_are_the_arguments_themselves(x):
    seen = []
    f = function(
        lambda ctx, a, b: ctx.save_for_backward(a, None, b) or a * b,
        lambda ctx, g: seen.append(ctx.saved_tensors) or (g, g),
    )
    y = x * 1
    f.apply(x, y).sum().backward()
    ((a, none, b),) = seen
    assert a is x
    assert none is None
    assert b.grad_fn is not None
    assert torch.equal(b, y)


def test_saved_tensors_are_seen_from_outside_until_freed(x):
    node = Multiply.apply(x, x).grad_fn
    assert len(node.saved_tensors) == 2
    Multiply.apply(x, x).sum().backward()
    y = Multiply.apply(x, x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = y.grad_fn.saved_tensors


def test_save_for_backward_again_replaces(x):
    f = function(
        lambda ctx, a: ctx.save_for_backward(a) or ctx.save_for_backward(a, a) or a * 2,
        lambda ctx, g: g * len(ctx.saved_tensors),
    )
    f.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_save_for_backward_takes_tensors_only(x):
    for bad, name in ((3, "int"), ([x], "list"), ("a", "str")):
        with pytest.raises(
            TypeError, match=f"save_for_backward can only save variables, but argument 0 is of type {name}"
        ):
            function(lambda ctx, a, bad=bad: ctx.save_for_backward(bad) or a * 2).apply(x)


def test_saved_output_is_the_output_again(x):
    seen = []
    f = function(
        lambda ctx, a: (lambda y: ctx.save_for_backward(y) or y)(a.exp()),
        lambda ctx, g: seen.append(ctx.saved_tensors[0].grad_fn) or g * ctx.saved_tensors[0],
    )
    y = f.apply(x)
    y.sum().backward()
    assert seen == [y.grad_fn]
    assert_close(x.grad, x.detach().exp())


def test_change_of_a_saved_input_is_noticed(x):
    a = x * 1
    y = Multiply.apply(a, a)
    a.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*\[3\].*version 1; expected version 0"):
        y.sum().backward()


def test_change_of_a_saved_output_is_noticed(x):
    f = function(
        lambda ctx, a: (lambda y: ctx.save_for_backward(y) or y)(a.exp()),
        lambda ctx, g: g * ctx.saved_tensors[0],
    )
    y = f.apply(x)
    y.add_(1)
    with pytest.raises(RuntimeError, match="output 0 of Made, is at version 1; expected version 0"):
        y.sum().backward()


def test_attributes_stay_on_the_context(x):
    f = function(lambda ctx, a: setattr(ctx, "n", 5) or a * 2, lambda ctx, g: g * ctx.n)
    y = f.apply(x)
    assert y.grad_fn.n == 5
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert x.grad.tolist() == [10.0] * 3
    with pytest.raises(AttributeError, match="'MadeBackward' object has no attribute 'missing'"):
        function(lambda ctx, a: a * 2, lambda ctx, g: g * ctx.missing).apply(x).sum().backward()


def test_needs_input_grad(x):
    seen = []
    f = function(
        lambda ctx, *args: seen.append(ctx.needs_input_grad) or args[0] * 2,
        lambda ctx, g: (seen.append(ctx.needs_input_grad), g, None, None, None)[1:],
    )
    f.apply(x, torch.ones(1), 3, [x]).sum().backward()
    assert seen == [(True, False, False, False)] * 2
    with torch.no_grad():
        f.apply(x, torch.ones(1), 3, [x])
    assert seen[-1] == (True, False, False, False)


def test_materialized_gradients_are_zeros_of_the_output(x):
    seen = []
    f = function(lambda ctx, a: (a * 2, a[:2].double()), lambda ctx, g, h: seen.append((g, h)) or g)
    f.apply(x)[0].sum().backward()
    ((g, h),) = seen
    assert g.tolist() == [1.0] * 3
    assert h.tolist() == [0.0] * 2
    assert h.dtype == torch.float64


def test_gradients_are_not_materialized_on_request(x):
    seen = []
    f = function(
        lambda ctx, a: ctx.set_materialize_grads(False) or (a * 2, a * 3),
        lambda ctx, g, h: seen.append(h) or g,
    )
    f.apply(x)[0].sum().backward()
    assert seen == [None]
    with pytest.raises(TypeError, match="set_materialize_grads"):
        function(lambda ctx, a: ctx.set_materialize_grads(3) or a * 2).apply(x)


def test_non_differentiable_outputs(x):
    seen = []

    def forward(ctx, a):
        ordered, index = a.sort()
        sign = a.sign()
        ctx.mark_non_differentiable(index, sign)
        return ordered * 2, index, sign

    ordered, index, sign = function(forward, lambda ctx, g, i, s: seen.append((i.dtype, s.tolist())) or g * 2).apply(x)
    assert ordered.requires_grad
    assert not index.requires_grad
    assert not sign.requires_grad
    assert sign.grad_fn is None
    ordered.sum().backward()
    assert seen == [(torch.int64, [0.0] * 3)]
    assert x.grad.tolist() == [2.0] * 3


def test_integer_outputs_need_no_mark(x):
    y, n = function(lambda ctx, a: (a * 2, a.long()), lambda ctx, g, h: g * 2).apply(x)
    assert not n.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_marks_take_tensors_only(x):
    for mark in ("mark_dirty", "mark_non_differentiable"):
        with pytest.raises(RuntimeError, match=mark):
            function(lambda ctx, a, mark=mark: getattr(ctx, mark)(3) or a * 2).apply(x)
