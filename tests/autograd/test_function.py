"""Custom Functions: the context, what forward and backward may return, in-place changes, higher order, memory."""

import gc
import threading
import weakref

import pytest

import rushlight as torch
from rushlight.autograd import Function, grad, gradcheck, gradgradcheck
from rushlight.autograd.function import (
    BackwardCFunction,
    FunctionCtx,
    FunctionMeta,
    InplaceFunction,
    once_differentiable,
)
from rushlight.testing import assert_close


def function(forward, backward=None, **members):
    """A new Function of these static methods."""
    members = {"forward": forward, **({"backward": backward} if backward else {}), **members}
    return type("Made", (Function,), {k: staticmethod(v) if callable(v) else v for k, v in members.items()})


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


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


# inputs and views among the outputs


def test_returned_input_is_another_tensor_with_the_same_numbers(x):
    y = x * 1
    for source in (x, y):
        out = function(lambda ctx, a: a, lambda ctx, g: g * 5).apply(source)
        assert out is not source
        assert out.data_ptr() == source.data_ptr()
        assert type(out.grad_fn).__name__ == "MadeBackward"
        assert grad(out.sum(), x)[0].tolist() == [5.0] * 3


def test_input_returned_twice(x):
    a, b = function(lambda ctx, a: (a, a), lambda ctx, g, h: g * 2 + h * 3).apply(x * 1)
    assert a is not b
    (a + 10 * b).sum().backward()
    assert x.grad.tolist() == [32.0] * 3


def test_returned_input_without_recording_is_that_tensor():
    a = torch.ones(2)
    out = function(lambda ctx, a: a).apply(a)
    assert out.data_ptr() == a.data_ptr()
    assert not out.requires_grad


def test_input_changed_by_nobody_is_not_recorded_on(x):
    y = x * 1
    function(lambda ctx, a: a, lambda ctx, g: g * 5).apply(y)
    assert type(y.grad_fn).__name__ == "MulBackward0"
    assert x.grad_fn is None


def test_views_and_returned_inputs_refuse_in_place_change(x):
    for forward in (lambda ctx, a: a, lambda ctx, a: a[1:], lambda ctx, a: a.view(3, 1)):
        out = function(forward, lambda ctx, g: torch.ones(3)).apply(x * 1)
        before = out.detach().clone()
        with pytest.raises(RuntimeError, match="Output 0 of Made is a view .* created inside a custom Function"):
            out.add_(1)
        assert torch.equal(out.detach(), before)


def test_many_views_refuse_in_place_change(x):
    a, b = function(lambda ctx, a: (a[1:], a[:1]), lambda ctx, g, h: torch.cat([h, g])).apply(x * 1)
    with pytest.raises(RuntimeError, match="function that returns multiple views"):
        a.add_(1)
    assert (a * 2).requires_grad


def test_returned_tensor_from_elsewhere_takes_the_node(x):
    elsewhere = torch.ones(3)
    out = function(lambda ctx, a: elsewhere, lambda ctx, g: g * 4).apply(x)
    out.sum().backward()
    assert x.grad.tolist() == [4.0] * 3


# in-place changes


class InPlaceDouble(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.mark_dirty(a)
        return a.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_dirty_input_is_returned_with_new_history(x):
    a = x * 1
    out = InPlaceDouble.apply(a)
    assert out is a
    assert a._version > 0
    assert type(a.grad_fn).__name__ == "InPlaceDoubleBackward"
    (a * 3).sum().backward()
    assert x.grad.tolist() == [6.0] * 3


def test_dirty_leaf_is_refused(x):
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad .* in-place operation"):
        InPlaceDouble.apply(x)
    assert x.is_leaf


def test_dirty_leaf_without_recording_is_changed(x):
    with torch.no_grad():
        assert InPlaceDouble.apply(x).data_ptr() == x.data_ptr()
    assert x.tolist() == [2.0, 4.0, 6.0]
    assert x.is_leaf
    assert x.requires_grad
    plain = torch.ones(2)
    assert InPlaceDouble.apply(plain) is plain
    assert plain.tolist() == [2.0, 2.0]


def test_dirty_input_gets_history_from_another(x):
    target = torch.zeros(3)

    def forward(ctx, a, b):
        ctx.mark_dirty(a)
        return a.add_(b)

    out = function(forward, lambda ctx, g: (g, g * 7)).apply(target, x)
    assert out is target
    assert target.requires_grad
    target.sum().backward()
    assert x.grad.tolist() == [7.0] * 3


def test_dirty_but_not_returned(x):
    f = function(lambda ctx, a: ctx.mark_dirty(a) or a.mul_(2).clone(), lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="marked as dirty .* were not returned as output"):
        f.apply(x * 1)


def test_dirty_view_rebases_its_base(x):
    base = x * 1
    view = base[1:]
    out = InPlaceDouble.apply(view)
    assert out is view
    assert base.tolist() == [1.0, 4.0, 6.0]
    base.sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 2.0]


def test_dirty_view_allows_one_output(x):
    f = function(lambda ctx, a: ctx.mark_dirty(a) or (a.mul_(2), a + 1), lambda ctx, g, h: g)
    with pytest.raises(RuntimeError, match="your Function cannot return more than one Tensor"):
        f.apply((x * 1)[1:])
    a, b = f.apply(x * 1)
    assert a.requires_grad
    assert b.requires_grad


def test_unmarked_change_keeps_the_old_history(x):
    a = x * 1
    b = a * 1
    c = function(lambda ctx, b: b.mul_(2), lambda ctx, g: g * 2).apply(b)
    c.sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_dirty_input_saved_before_is_noticed(x):
    a = x * 1
    y = a * a
    InPlaceDouble.apply(a)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# backward


def test_none_is_no_gradient(x):
    f = function(lambda ctx, a, b: a * b, lambda ctx, g: (g, None))
    b = torch.ones(3, requires_grad=True)
    f.apply(x, b).sum().backward()
    assert x.grad is not None
    assert b.grad is None
    assert grad(f.apply(x, b).sum(), b, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        grad(f.apply(x, b).sum(), b)


def test_single_none_for_a_single_input(x):
    assert grad(function(lambda ctx, a: a * 2, lambda ctx, g: None).apply(x).sum(), x, allow_unused=True) == (None,)


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda g: (g, g), r"MadeBackward returned an incorrect number of gradients \(expected 1, got 2\)"),
        (lambda g: (), r"incorrect number of gradients \(expected 1, got 0\)"),
        (lambda g: 3, r"expected Variable or None \(got int\)"),
        (lambda g: ("a",), r"expected Variable or None \(got str\)"),
        (lambda g: [g], r"expected Variable or None \(got list\)"),
        (lambda g: torch.ones(2), r"invalid gradient at index 0 - got \[2\] but expected shape compatible with \[3\]"),
    ],
)
def test_wrong_gradients_are_refused_with_numbers(x, returned, words):
    f = function(lambda ctx, a: a * 2, lambda ctx, g: returned(g))
    with pytest.raises(RuntimeError, match=words):
        f.apply(x).sum().backward()
    assert x.grad is None


def test_too_few_gradients(x):
    f = function(lambda ctx, a, b: a * 2, lambda ctx, g: g)
    with pytest.raises(RuntimeError, match=r"\(expected 2, got 1\)"):
        f.apply(x, x).sum().backward()


def test_gradient_for_what_is_not_a_tensor(x):
    f = function(lambda ctx, a, k: a * k, lambda ctx, g: (g, g))
    with pytest.raises(RuntimeError, match="gradient different than None at position 2, but .* was not a Variable"):
        f.apply(x, 3).sum().backward()
    f.apply(x, torch.ones(3)).sum().backward()
    assert x.grad.tolist() == [1.0] * 3


def test_extra_trailing_none_is_accepted(x):
    function(lambda ctx, a: a * 2, lambda ctx, g: (g * 2, None, None)).apply(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_gradients_are_summed_to_the_shape_and_cast_to_the_dtype_of_the_input(x):
    f = function(lambda ctx, a: a * 2, lambda ctx, g: torch.ones(4, 3, dtype=torch.float64))
    f.apply(x).sum().backward()
    assert x.grad.tolist() == [4.0] * 3
    assert x.grad.dtype == torch.float32


def test_exception_in_backward_arrives_as_itself(x):
    class Mine(Exception):
        pass

    def backward(ctx, g):
        raise Mine("text")

    y = function(lambda ctx, a: a * 2, backward).apply(x)
    with pytest.raises(Mine, match="text"):
        y.sum().backward()
    assert torch.is_grad_enabled()
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_second_backward_after_freeing(x):
    y = Multiply.apply(x, x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    z = Double.apply(x).sum()
    z.backward()
    z.backward()


def test_vjp_is_another_name_of_backward(x):
    f = function(lambda ctx, a: a * 2, vjp=lambda ctx, g: g * 7)
    f.apply(x).sum().backward()
    assert x.grad.tolist() == [7.0] * 3
    both = function(lambda ctx, a: a * 2, lambda ctx, g: g, vjp=lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        both.apply(x).sum().backward()


def test_backward_may_be_replaced_later(x):
    class Changing(Double):
        pass

    y = Changing.apply(x)
    Changing.backward = staticmethod(lambda ctx, g: g * 9)
    y.sum().backward()
    assert x.grad.tolist() == [9.0] * 3


def test_backward_may_use_functions_and_engines(x):
    def backward(ctx, g):
        with torch.enable_grad():
            t = torch.full((3,), 2.0, requires_grad=True)
            (inner,) = grad((t**3).sum(), t)
        return Double.apply(g) * inner

    function(lambda ctx, a: a * 2, backward).apply(x).sum().backward()
    assert x.grad.tolist() == [24.0] * 3


def test_missing_methods_say_so(x):
    with pytest.raises(NotImplementedError, match="must implement the forward function"):
        type("Empty", (Function,), {}).apply(x)
    with pytest.raises(NotImplementedError, match="must implement either the backward or vjp method"):
        function(lambda ctx, a: a * 2).apply(x).sum().backward()
    with pytest.raises(NotImplementedError, match="jvp"):
        Double.jvp(None)
    with pytest.raises(NotImplementedError, match="generate_vmap_rule=True"):
        Double.vmap(None, (0,))
    with pytest.raises(NotImplementedError, match="setup_context"):
        Double.setup_context(None, (), None)
    assert Double.generate_vmap_rule is False


# legacy forms


def test_instances_warn_and_cannot_be_called(x):
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        instance = Double()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method"):
        instance(x)


def test_methods_that_are_not_static_take_the_context_as_self(x):
    class Old(Function):
        def forward(self, a):
            self.factor = 3.0
            return a * self.factor

        def backward(self, g):
            return g * self.factor

    Old.apply(x).sum().backward()
    assert x.grad.tolist() == [3.0] * 3


def test_inplace_function_keeps_its_attribute():
    with pytest.warns(DeprecationWarning):
        assert InplaceFunction(inplace=True).inplace is True
    assert issubclass(InplaceFunction, Function)


def test_names_left_out_say_so():
    with pytest.raises(AttributeError, match="NestedIOFunction"):
        _ = torch.autograd.function.NestedIOFunction
    with pytest.raises(AttributeError, match="torch.autograd.gradd.*nearest.*torch.autograd.grad"):
        _ = torch.autograd.gradd


# higher order


class Sine(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a.sin()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos()


def test_backward_of_differentiable_operations_is_differentiable():
    a = torch.tensor([0.3, -0.7], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([1.1, 0.2], dtype=torch.float64, requires_grad=True)
    assert gradcheck(Multiply.apply, (a, b))
    assert gradgradcheck(Multiply.apply, (a, b))
    d = Sine.apply(a).sum()
    for expected in (a.cos(), -a.sin(), -a.cos(), a.sin()):
        (d,) = grad(d.sum(), a, create_graph=True)
        assert_close(d, expected)


def test_backward_records_only_if_asked(x):
    seen = []
    f = function(lambda ctx, a: a * 2, lambda ctx, g: seen.append(torch.is_grad_enabled()) or g * 2)
    grad(f.apply(x).sum(), x)
    grad(f.apply(x).sum(), x, create_graph=True)
    assert seen == [False, True]


def test_derivative_through_a_saved_output():
    f = function(
        lambda ctx, a: (lambda y: ctx.save_for_backward(y) or y)(a.exp()),
        lambda ctx, g: g * ctx.saved_tensors[0],
    )
    a = torch.tensor([0.3, -0.7], dtype=torch.float64, requires_grad=True)
    assert gradgradcheck(f.apply, (a,))


def test_once_differentiable(x):
    seen = []

    class Square(Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            seen.append(torch.is_grad_enabled())
            return 2 * g * ctx.saved_tensors[0]

    (g,) = grad(Square.apply(x).sum(), x)
    assert g.tolist() == [2.0, 4.0, 6.0]
    (g,) = grad((Square.apply(x) * x).sum(), x, create_graph=True)
    assert seen == [False, False]
    with pytest.raises(RuntimeError, match="trying to differentiate twice .* @once_differentiable"):
        g.sum().backward()


def test_once_differentiable_keeps_none_and_names(x):
    @once_differentiable
    def backward(ctx, g):
        """Doc."""
        return g * 2, None

    assert backward.__doc__ == "Doc."
    v = torch.ones((), requires_grad=True)
    f = function(lambda ctx, a, k: a * k, backward)
    (g,) = grad(f.apply(x, 2).sum(), x, v, create_graph=True)
    assert g.requires_grad
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad(g.sum(), v, allow_unused=True)


def test_create_graph_through_a_constant_gradient(x):
    (g,) = grad(function(lambda ctx, a: a.sum(), lambda ctx, g: torch.ones(3)).apply(x), x, create_graph=True)
    assert not g.requires_grad


# memory and threads


def freed_after_collection(make):
    gc.collect()
    gc.disable()
    try:
        reference = make()
        gc.collect()
        return reference() is None
    finally:
        gc.enable()


def keep_input(ctx, a):
    ctx.save_for_backward(a)
    return a * 2


def keep_output(ctx, a):
    y = a * 2
    ctx.save_for_backward(y)
    return y


def keep_output_as_attribute(ctx, a):
    ctx.y = a * 2
    return ctx.y


def keep_context_in_a_cycle(ctx, a):
    ctx.me = ctx
    return a * 2


def keep_dirty_view(ctx, a):
    ctx.mark_dirty(a)
    return a.mul_(2)


def keep_dirty_view_as_attribute(ctx, a):
    ctx.mark_dirty(a)
    ctx.y = a.mul_(2)
    return ctx.y


@pytest.mark.parametrize(
    "keep",
    [
        keep_input,
        keep_output,
        keep_output_as_attribute,
        keep_context_in_a_cycle,
        keep_dirty_view,
        keep_dirty_view_as_attribute,
    ],
)
def test_context_is_freed(keep):
    references = []

    def forward(ctx, a):
        ctx.token = Token()
        references.append(weakref.ref(ctx.token))
        return keep(ctx, a)

    def make():
        x = torch.ones(3, requires_grad=True)
        out = function(forward, lambda ctx, g: g * 2).apply((x * 1)[1:])
        assert out.requires_grad
        return references[0]

    assert freed_after_collection(make)


class Token:
    pass


def test_context_is_freed_at_once_without_a_cycle():
    gc.collect()
    gc.disable()
    try:
        x = torch.ones(3, requires_grad=True)
        out = Multiply.apply(x, x)
        token = out.grad_fn.token = Token()
        reference = weakref.ref(token)
        del token
        assert reference() is not None
        del out
        assert reference() is None
    finally:
        gc.enable()


def test_context_lives_as_long_as_its_output(x):
    y = Double.apply(x)
    y.grad_fn.mark = "kept"
    z = y.sum()
    gc.collect()
    assert y.grad_fn.mark == "kept"
    del y
    gc.collect()
    assert z.grad_fn.next_functions[0][0].mark == "kept"


def test_functions_in_threads():
    x = torch.ones(8, requires_grad=True)
    barrier = threading.Barrier(4)

    def work():
        barrier.wait(10)
        for _ in range(25):
            Multiply.apply(x, x).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.tolist() == [200.0] * 8


def test_chain_of_many_functions_is_walked_and_freed():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = Double.apply(y) * 0.5
    y.backward()
    assert x.grad.tolist() == [1.0]
    del y
    gc.collect()
