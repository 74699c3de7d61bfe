"""``backward`` and ``grad``: their arguments, accumulation, retained graphs, unused inputs, and what they refuse."""

import collections
import re
import types

import pytest

import rushlight as torch
from rushlight.autograd import backward, grad
from rushlight.autograd.graph import get_gradient_edge
from rushlight.testing import assert_close

ONE = torch.ones(())


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


def leaf(*numbers, **options):
    return torch.tensor(numbers, requires_grad=True, **options)


# what comes out


def test_tensor_backward_adds_to_leaves(x):
    w = leaf(1.0, 1.0, 2.0)
    (x * w).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 2.0]
    assert w.grad.tolist() == [1.0, 2.0, 3.0]
    assert not x.grad.requires_grad


def test_gradients_accumulate(x):
    for times in (1, 2, 3):
        (x * x).sum().backward()
        assert x.grad.tolist() == [2.0 * times, 4.0 * times, 6.0 * times]


def test_accumulation_is_in_place_without_create_graph(x):
    x.sum().backward()
    first = x.grad
    x.sum().backward()
    assert x.grad is first
    assert first.tolist() == [2.0] * 3


def test_gradient_does_not_share_memory_with_the_cotangent(x):
    v = torch.ones(3)
    (x * 1).backward(v)
    x.grad.add_(1)
    assert v.tolist() == [1.0] * 3
    (x + x).backward(v)
    assert v.tolist() == [1.0] * 3


def test_gradients_of_two_leaves_do_not_share_memory():
    a, b = leaf(1.0), leaf(2.0)
    (a + b).backward()
    a.grad.mul_(5)
    assert b.grad.tolist() == [1.0]


def test_gradient_keeps_dtype_shape_and_device(x):
    for dtype in (torch.float32, torch.float64):
        t = torch.ones(2, 3, dtype=dtype, requires_grad=True)
        t.sum().backward()
        assert t.grad.dtype == dtype
        assert t.grad.shape == t.shape
        assert t.grad.device == t.device


def test_gradient_flows_to_a_leaf_of_another_dtype():
    a = torch.ones(2, requires_grad=True)
    b = torch.ones(2, dtype=torch.float64, requires_grad=True)
    (a * b).sum().backward()
    assert a.grad.dtype == torch.float32
    assert b.grad.dtype == torch.float64


def test_only_leaves_keep_gradients(x):
    y = x * 2
    z = y * y
    z.sum().backward()
    assert x.grad.tolist() == [8.0, 16.0, 24.0]
    with pytest.warns(UserWarning, match="not a leaf Tensor"):
        assert y.grad is None


def test_retain_grad_keeps_gradients_of_others(x):
    y = x * 2
    y.retain_grad()
    assert y.retains_grad
    (y * y).sum().backward(retain_graph=True)
    assert y.grad.tolist() == [4.0, 8.0, 12.0]
    (y * y).sum().backward()
    assert y.grad.tolist() == [8.0, 16.0, 24.0]
    x.retain_grad()
    assert not x.retains_grad
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        torch.ones(1).retain_grad()


def test_backward_of_a_leaf(x):
    x.backward(torch.tensor([1.0, 2.0, 3.0]))
    assert x.grad.tolist() == [1.0, 2.0, 3.0]
    s = torch.tensor(2.0, requires_grad=True)
    s.backward()
    assert s.grad.item() == 1.0


def test_one_element_of_any_shape_is_a_scalar_output(x):
    for shape in ((), (1,), (1, 1, 1)):
        x.grad = None
        x.sum().view(shape).backward()
        assert x.grad.tolist() == [1.0] * 3


def test_diamonds_and_reuse(x):
    a = x * 2
    b = a + x
    c = a * b
    (c + b * a + a).sum().backward()
    # c = 2x * 3x twice, and 2x
    assert_close(x.grad, 24 * x.detach() + 2)
    y = leaf(2.0)
    z = y * y
    w = z * z + z
    w.backward()
    assert y.grad.tolist() == [36.0]


def test_same_tensor_twice_in_one_operation(x):
    torch.cat([x, x]).mul(torch.arange(6.0)).sum().backward()
    assert x.grad.tolist() == [3.0, 5.0, 7.0]


def test_grad_returns_and_leaves_grad_alone(x):
    (g,) = grad((x * x).sum(), x)
    assert g.tolist() == [2.0, 4.0, 6.0]
    assert x.grad is None


def test_grad_with_respect_to_inner_tensors(x):
    y = x * 2
    z = (y * y).sum()
    by_y, by_x = grad(z, [y, x])
    assert by_y.tolist() == [4.0, 8.0, 12.0]
    assert by_x.tolist() == [8.0, 16.0, 24.0]


def test_grad_of_a_tensor_by_itself(x):
    y = x * 2
    v = torch.tensor([1.0, 2.0, 3.0])
    assert grad(y, y, v)[0].tolist() == v.tolist()
    assert grad(x, x, v)[0].tolist() == v.tolist()


def test_grad_stops_where_nothing_is_wanted(x):
    def never(grad):
        raise AssertionError("this part of the graph is not needed")

    y = x * 2
    y.register_hook(never)
    w = leaf(1.0, 1.0, 1.0)
    assert grad((y * w).sum(), w)[0].tolist() == [2.0, 4.0, 6.0]


def test_grad_keeps_the_order_and_repetition_of_inputs(x):
    w = leaf(1.0, 1.0, 2.0)
    a, b, c = grad((x * w).sum(), (w, x, w))
    assert a.tolist() == c.tolist() == [1.0, 2.0, 3.0]
    assert b.tolist() == [1.0, 1.0, 2.0]


def test_grad_of_a_dict_is_a_dict(x):
    w = leaf(1.0, 1.0, 2.0)
    grads = grad((x * w).sum(), {"w": w, "x": x})
    assert list(grads) == ["w", "x"]
    assert grads["x"].tolist() == [1.0, 1.0, 2.0]


def test_sum_over_several_outputs(x):
    outputs = [(x * 2).sum(), x * 3, (x * 5).sum()]
    (g,) = grad(outputs, x, [None, torch.tensor([1.0, 0.0, 2.0]), torch.tensor(10.0)])
    assert g.tolist() == [2 + 3 + 50.0, 52.0, 2 + 6 + 50.0]


def test_outputs_may_be_any_iterable(x):
    backward(t for t in [x.sum(), (x * 2).sum()])
    assert x.grad.tolist() == [3.0] * 3
    backward([])


def test_same_output_twice(x):
    s = (x * x).sum()
    assert grad([s, s], x)[0].tolist() == [4.0, 8.0, 12.0]


def test_output_that_is_inside_the_graph_of_another(x):
    y = x * 2
    z = (y * 3).sum()
    (g,) = grad([z, y], x, [None, torch.ones(3)])
    assert g.tolist() == [8.0] * 3


def test_gradient_is_cast_to_the_dtype_of_the_output(x):
    for dtype in (torch.float64, torch.int64):
        (g,) = grad(x * 2, x, torch.ones(3, dtype=dtype))
        assert g.dtype == torch.float32
        assert g.tolist() == [2.0] * 3


# inputs of backward


def test_backward_inputs_limits_accumulation(x):
    w = leaf(1.0, 1.0, 2.0)
    (x * w).sum().backward(inputs=[x])
    assert x.grad.tolist() == [1.0, 1.0, 2.0]
    assert w.grad is None
    (x * w).sum().backward(inputs=w)
    assert w.grad.tolist() == [1.0, 2.0, 3.0]


def test_backward_inputs_fills_tensors_that_are_not_leaves(x):
    y = x * 2
    (y * y).sum().backward(inputs=[y])
    assert y.grad.tolist() == [4.0, 8.0, 12.0]
    assert x.grad is None


def test_backward_inputs_from_a_dict(x):
    backward((x * x).sum(), inputs={"x": x})
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_backward_inputs_may_be_unreached(x):
    w = leaf(1.0)
    x.sum().backward(inputs=[w, x])
    assert w.grad is None
    assert x.grad.tolist() == [1.0] * 3


# retained and created graphs


def test_graph_is_freed_unless_retained(x):
    s = (x * x).sum()
    s.backward(retain_graph=True)
    s.backward()
    assert x.grad.tolist() == [4.0, 8.0, 12.0]
    with pytest.raises(RuntimeError, match=r"(?s)backward through the graph a second time.*retain_graph=True"):
        s.backward()
    assert x.grad.tolist() == [4.0, 8.0, 12.0]


def test_graph_that_saved_nothing_may_be_walked_again(x):
    s = (x + x.view(1, 3) - (-x) + 1).sum()
    for _ in range(3):
        s.backward()
    assert x.grad.tolist() == [9.0] * 3


def test_shared_trunk_is_freed_with_the_first_loss(x):
    h = x.exp()
    first, second = h.sum(), (h * h).sum()
    first.backward()
    with pytest.raises(RuntimeError, match="second time"):
        second.backward()


def test_create_graph_retains(x):
    s = (x**3).sum()
    (first,) = grad(s, x, create_graph=True)
    (again,) = grad(s, x)
    assert_close(first.detach(), again)


def test_retain_graph_false_frees_in_spite_of_create_graph(x):
    s = x.exp().sum()
    grad(s, x, create_graph=True, retain_graph=False)
    with pytest.raises(RuntimeError, match="second time"):
        grad(s, x)


def test_create_graph_makes_gradients_differentiable(x):
    (g,) = grad((x**3).sum(), x, create_graph=True)
    assert g.requires_grad
    (h,) = grad(g.sum(), x, create_graph=True)
    assert_close(h.detach(), 6 * x.detach())
    (third,) = grad(h.sum(), x)
    assert third.tolist() == [6.0] * 3
    assert not third.requires_grad


def test_gradient_without_create_graph_is_constant(x):
    (g,) = grad((x**3).sum(), x)
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        grad(g.sum(), x)


def test_create_graph_records_the_cotangent(x):
    v = torch.ones(3, requires_grad=True)
    (g,) = grad(x * x, x, v, create_graph=True)
    (by_v,) = grad(g.sum(), v)
    assert by_v.tolist() == [2.0, 4.0, 6.0]


@pytest.mark.filterwarnings("ignore:Using backward")
def test_backward_create_graph_accumulates_out_of_place(x):
    (x**3).sum().backward(create_graph=True)
    first = x.grad
    (x**3).sum().backward(create_graph=True)
    assert x.grad is not first
    assert_close(x.grad.detach(), 6 * x.detach() ** 2)
    assert_close(first.detach(), 3 * x.detach() ** 2)
    x.grad = None


def test_gradient_penalty(x):
    w = leaf(0.5, -1.0, 2.0)
    (g,) = grad((w * x**2).sum(), x, create_graph=True)
    (g**2).sum().backward()
    # d/dw sum (2 w x)^2 = 8 w x^2
    assert_close(w.grad, 8 * w.detach() * x.detach() ** 2)


# unused inputs


def test_unused_input(x):
    w = leaf(1.0)
    s = x.sum()
    with pytest.raises(RuntimeError, match="at index 1 appears to not have been used .* allow_unused=True"):
        grad(s, [x, w])
    assert grad(s, [x, w], allow_unused=True)[1] is None
    by_x, by_w = grad(s, [x, w], materialize_grads=True)
    assert by_x.tolist() == [1.0] * 3
    assert by_w.tolist() == [0.0]
    assert not by_w.requires_grad
    assert grad(s, [x, w], materialize_grads=True, create_graph=True)[1].requires_grad
    with pytest.raises(ValueError, match="allow_unused to be True or not passed"):
        grad(s, [x, w], materialize_grads=True, allow_unused=False)


def test_refused_grad_does_not_free_the_graph(x):
    s = (x * x).sum()
    with pytest.raises(RuntimeError, match="cannot be empty"):
        grad(s, [])
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        grad(s, x, torch.ones(2))
    assert grad(s, x)[0].tolist() == [2.0, 4.0, 6.0]


# batches of cotangents


def test_batched_cotangents(x):
    v = torch.eye(3)
    (g,) = grad(x * x, x, v, is_grads_batched=True)
    assert_close(g, torch.diag(2 * x.detach()))


def test_batched_cotangents_of_unused_inputs(x):
    w = leaf(1.0, 2.0)
    v = torch.eye(3)
    by_w, by_x = grad(x * 2, [w, x], v, is_grads_batched=True, allow_unused=True)
    assert by_w is None
    assert_close(by_x, 2 * torch.eye(3))
    assert grad(x * 2, w, v, is_grads_batched=True, materialize_grads=True)[0].tolist() == [0.0, 0.0]


def test_batched_cotangents_of_the_wrong_shape(x):
    for v in (torch.ones(3), torch.ones(2, 2), None):
        with pytest.raises(RuntimeError, match="is_grads_batched=True.*mismatch"):
            grad(x * 2, x, v, is_grads_batched=True)
    with pytest.raises(RuntimeError, match="GradientEdge"):
        grad(get_gradient_edge(x * 2), x, torch.eye(3), is_grads_batched=True)


# edges in place of tensors


def test_edges_stand_for_tensors(x):
    y = x * 2
    s = (y * y).sum()
    assert grad(get_gradient_edge(s), x, retain_graph=True)[0].tolist() == [8.0, 16.0, 24.0]
    assert grad(s, get_gradient_edge(y), retain_graph=True)[0].tolist() == [4.0, 8.0, 12.0]
    assert grad(s, [get_gradient_edge(x), y], retain_graph=True)[0].tolist() == [8.0, 16.0, 24.0]
    backward(get_gradient_edge(s), inputs=[get_gradient_edge(x)])
    assert x.grad.tolist() == [8.0, 16.0, 24.0]


def test_edges_are_held_to_the_shape_of_their_tensor(x):
    edge = get_gradient_edge(x * 2)
    with pytest.raises(RuntimeError, match="scalar outputs"):
        grad(edge, x)
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\] has a shape of torch.Size\(\[2\]\)"):
        grad(edge, x, torch.ones(2))
    assert grad(edge, x, torch.ones(3))[0].tolist() == [2.0] * 3


def test_unused_edges_have_no_zeros(x):
    w = leaf(1.0)
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used"):
        grad(x.sum(), get_gradient_edge(w), materialize_grads=True)


# what is refused


def test_output_with_many_elements_needs_a_gradient(x):
    for run in (lambda: (x * 2).backward(), lambda: grad(x * 2, x), lambda: backward([x.sum(), x * 2])):
        with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
            run()
    with pytest.raises(RuntimeError, match="scalar outputs"):
        torch.ones(0, requires_grad=True).backward()
    assert x.grad is None


def test_complex_output_needs_a_gradient():
    z = torch.tensor([1.0 + 1.0j], requires_grad=True)
    with pytest.raises(RuntimeError, match="only for real scalar outputs but got .*complex64"):
        (z * z).sum().backward()
    with pytest.raises(RuntimeError, match="same dtype. Mismatch in dtype: .*float32 .*complex64"):
        (z * z).sum().backward(ONE)
    (z * z).sum().backward(ONE + 0j)
    assert z.grad.tolist() == [2.0 - 2.0j]


def test_complex_gradient_for_a_real_output(x):
    with pytest.raises(RuntimeError, match="For complex Tensors, both grad_output and output"):
        x.sum().backward(ONE + 0j)


def test_gradient_of_the_wrong_shape(x):
    words = (
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([2]) and output[0] has a shape of torch.Size([3])"
    )
    with pytest.raises(RuntimeError, match=re.escape(words)):
        (x * 2).backward(torch.ones(2))
    with pytest.raises(RuntimeError, match=r"torch.Size\(\[1\]\).*torch.Size\(\[\]\)"):
        x.sum().backward(torch.ones(1))
    with pytest.raises(RuntimeError, match=r"grad_output\[1\].*output\[1\]"):
        grad([x.sum(), x * 2], x, [ONE, torch.ones(4)])
    assert x.grad is None


def test_gradients_of_the_wrong_kind(x):
    for bad in ([1.0], "a", [x.sum, x]):
        with pytest.raises((TypeError, RuntimeError), match="gradients"):
            grad(x.sum(), x, bad)
    with pytest.raises(TypeError, match="'int' object is not iterable"):
        grad(x.sum(), x, 1)
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        grad([x.sum(), x.sum()], x, [ONE])


def test_outputs_without_a_graph(x):
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        torch.ones(()).backward()
    with pytest.raises(RuntimeError, match="element 1 of tensors does not require grad"):
        backward([x.sum(), torch.ones(())])
    with pytest.raises(RuntimeError, match="does not require grad"):
        grad(x.argmax(), x)
    assert x.grad is None


def test_inputs_without_a_gradient(x):
    for allow in (False, True):
        with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
            grad(x.sum(), torch.ones(3), allow_unused=allow)


def test_inputs_of_the_wrong_kind(x):
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `grad\(\)` cannot be empty"):
        grad(x.sum(), ())
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `backward\(\)` cannot be empty"):
        x.sum().backward(inputs=[])
    with pytest.raises(TypeError, match="not iterable"):
        grad(x.sum(), None)
    with pytest.raises(RuntimeError, match="all inputs have to be Tensors or GradientEdges, but got int"):
        grad(x.sum(), [3])
    for mapping in (types.MappingProxyType({"x": x}), collections.OrderedDict(x=x)):
        with pytest.raises(TypeError, match=r"`inputs` argument to `grad\(\)` must be a dict, not"):
            grad(x.sum(), mapping)
        with pytest.raises(TypeError, match=r"`inputs` argument to `backward\(\)` must be a dict, not"):
            backward(x.sum(), inputs=mapping)


def test_outputs_of_the_wrong_kind(x):
    with pytest.raises(TypeError, match="not iterable"):
        grad(3, x)
    with pytest.raises((TypeError, AssertionError)):
        grad([3], x)
    with pytest.raises((TypeError, AssertionError)):
        backward([[x.sum()]])


# former names


def test_grad_variables_is_the_former_name(x):
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated. Use `grad_tensors` instead."):
        backward([x * 2], grad_variables=[torch.ones(3)])
    assert x.grad.tolist() == [2.0] * 3
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="arguments both passed"):
        backward([x * 2], [torch.ones(3)], grad_variables=[torch.ones(3)])


def test_only_inputs_is_ignored(x):
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        assert grad(x.sum(), x, only_inputs=False)[0].tolist() == [1.0] * 3


def test_autograd_variable_is_refused():
    with pytest.raises(RuntimeError, match="use torch.tensor"):
        torch.autograd.variable(1.0)


# the attribute


def test_grad_may_be_set_and_cleared(x):
    x.grad = torch.tensor([10.0, 20.0, 30.0])
    x.sum().backward()
    assert x.grad.tolist() == [11.0, 21.0, 31.0]
    x.grad = None
    x.sum().backward()
    assert x.grad.tolist() == [1.0] * 3
    del x.grad
    assert x.grad is None


def test_grad_is_held_to_its_tensor(x):
    with pytest.raises(RuntimeError, match="size|shape"):
        x.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="dtype|type"):
        x.grad = torch.ones(3, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="own grad"):
        x.grad = x
    with pytest.raises(TypeError):
        x.grad = [1.0, 2.0, 3.0]
    assert x.grad is None
    y = x * 2
    y.grad = torch.ones(3)


def test_requires_grad_is_for_floating_point():
    for make in (lambda: torch.tensor([1, 2], requires_grad=True), lambda: torch.tensor([True]).requires_grad_()):
        with pytest.raises(RuntimeError, match="loating point"):
            make()


def test_requires_grad_of_a_recorded_tensor_is_fixed(x):
    y = x * 2
    with pytest.raises(RuntimeError, match="can only change requires_grad flags of leaf variables.*detach"):
        y.requires_grad = False
    with pytest.raises(RuntimeError, match="can only change requires_grad flags of leaf variables"):
        y.requires_grad = True
    assert y.requires_grad_() is y
    assert y.grad_fn is not None


def test_detach_ends_the_path(x):
    h = x * 2
    y = h.detach()
    assert y.is_leaf
    assert y.data_ptr() == h.data_ptr()
    assert not y.requires_grad
    y.requires_grad_()
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3.0] * 3
    assert x.grad is None
    h.detach_()
    assert h.is_leaf
    assert not h.requires_grad
    view = (x * 2)[1:]
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        view.detach_()


def test_detached_and_attached_paths_add_up(x):
    y = x * x
    (y + y.detach() * x).sum().backward()
    assert_close(x.grad, 2 * x.detach() + x.detach() ** 2)


def test_freezing_between_steps(x):
    w = leaf(1.0, 1.0, 1.0)
    (x * w).sum().backward()
    x.requires_grad_(False)
    (x * w).sum().backward()
    assert x.grad.tolist() == [1.0] * 3
    assert w.grad.tolist() == [2.0, 4.0, 6.0]
