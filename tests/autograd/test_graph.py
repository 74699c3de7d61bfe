"""The graph seen from Python: nodes, edges, versions, and hooks on what is saved."""

import gc
import weakref

import pytest

import rushlight as torch
from rushlight.autograd import grad
from rushlight.autograd.graph import (
    GradientEdge,
    Node,
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    get_gradient_edge,
    increment_version,
    save_on_cpu,
    saved_tensors_hooks,
)


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


def identity(t):
    return t


# nodes


def test_nodes_are_instances_of_node(x):
    y = x * 2
    accumulator = y.grad_fn.next_functions[0][0]
    for node in (y.grad_fn, accumulator):
        assert isinstance(node, Node)
        assert issubclass(type(node), Node)
    assert not isinstance(x, Node)
    assert not issubclass(int, Node)
    with pytest.raises(TypeError, match="abstract"):
        Node()


def test_a_node_written_in_python_is_abstract_until_complete():
    class Half(Node):
        def name(self):
            return "Half"

    with pytest.raises(TypeError, match="abstract"):
        Half()
    assert issubclass(Half, Node)
    assert not isinstance((torch.ones(1, requires_grad=True) * 2).grad_fn, Half)


def test_names_and_edges(x):
    y = (x * x + x.sum()).exp()
    assert y.grad_fn.name() == type(y.grad_fn).__name__ == "ExpBackward0"
    ((add, number),) = y.grad_fn.next_functions
    assert (add.name(), number) == ("AddBackward0", 0)
    (mul, _), (total, _) = add.next_functions
    assert (mul.name(), total.name()) == ("MulBackward0", "SumBackward0")
    accumulators = {mul.next_functions[0][0], mul.next_functions[1][0], total.next_functions[0][0]}
    assert len(accumulators) == 1
    (accumulator,) = accumulators
    assert type(accumulator).__name__ == "AccumulateGrad"
    assert accumulator.name().split("::")[-1] == "AccumulateGrad"
    assert accumulator.next_functions == ()
    assert accumulator.variable is x


def test_inputs_without_gradient_have_no_edge(x):
    assert (x * torch.ones(3)).grad_fn.next_functions[1] == (None, 0)
    assert (x * 2).grad_fn.next_functions[1] == (None, 0)


def test_output_numbers(x):
    a, b, c = x.unbind()
    assert [t.output_nr for t in (a, b, c)] == [0, 1, 2]
    assert a.grad_fn is b.grad_fn is c.grad_fn
    (_, first), (_, second) = (b * c).grad_fn.next_functions
    assert (first, second) == (1, 2)


def test_saved_values_of_a_node(x):
    w = torch.ones(3, requires_grad=True)
    node = (x * w).grad_fn
    assert node._saved_self is x
    assert node._saved_other is w
    y = x.exp()
    assert torch.equal(y.grad_fn._saved_result, y)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="already been freed"):
        _ = y.grad_fn._saved_result


def test_saved_values_bear_pytorchs_names(x):
    def names(y):
        return {name.removeprefix("_saved_") for name in dir(y.grad_fn) if name.startswith("_saved_")}

    index = torch.tensor([0, 1])
    assert names(x**2) == {"self", "exponent"} and (x**2).grad_fn._saved_exponent == 2
    assert names(x.exp()) == {"result"} and names(x.gather(0, index)) >= {"index"}
    assert torch.equal(x.gather(0, index).grad_fn._saved_index, index)
    assert torch.equal(x.max(0)[0].grad_fn._saved_indices, x.argmax())
    assert torch.equal(x.masked_select(x > 0).grad_fn._saved_mask, x > 0)
    assert not hasattr(x.exp().grad_fn, "_saved_self") and not hasattr(x.exp().grad_fn, "_saved_")


def test_hooks_of_one_saved_tensor(x):
    y = x.exp()
    slot = y.grad_fn._raw_saved_result
    slot.register_hooks(lambda t: t * 2, lambda t: t)
    assert torch.equal(y.grad_fn._saved_result, y * 2)
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        slot.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert torch.equal(x.grad, 2 * y)
    with pytest.raises(RuntimeError, match="after it has been freed"):
        slot.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="modifying its input in place"):
        x.exp().grad_fn._raw_saved_result.register_hooks(lambda t: t.mul_(2), lambda t: t)
    with pytest.raises(RuntimeError, match="from Python is forbidden"):
        type(slot)()


def test_pack_hooks_see_parameters_as_they_are():
    seen = []
    weight = torch.nn.Parameter(torch.ones(3))
    with saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        y = (weight * 2).exp() * weight
    assert any(t is weight for t in seen)
    assert sum(t.grad_fn is not None for t in seen) == 0  # what is packed cannot keep the graph alive
    y.sum().backward()
    assert torch.allclose(weight.grad, 3 * torch.exp(torch.tensor(2.0)))


def test_a_call_by_hand_without_a_gradient(x):
    for y in (x.exp(), x.sum(), x[0], x.view(1, -1), torch.cat([x, x])):
        given = y.grad_fn(None)
        assert given is None or all(g is None for g in given)
    assert x.exp().grad_fn.requires_grad
    with pytest.raises(TypeError, match="keyword arguments are not supported"):
        x.exp().grad_fn(grad=torch.ones(3))


def test_edges_that_are_not_there(x):
    y = x.exp()
    for number in (-1, 4, 2**40):
        with pytest.raises(RuntimeError, match="output number .* is out of range"):
            torch.autograd.grad(y.sum(), GradientEdge(y.grad_fn, number))
    with pytest.raises(TypeError):
        torch.autograd.grad(y.sum(), GradientEdge(y.grad_fn, "0"))


def test_metadata_and_call_by_hand(x):
    node = (x * torch.tensor([2.0, 3.0, 4.0])).grad_fn
    node.metadata["key"] = "value"
    assert node.metadata == {"key": "value"}
    assert node(torch.ones(3))[0].tolist() == [2.0, 3.0, 4.0]


# edges


def test_gradient_edge(x):
    y = x * 2
    edge = get_gradient_edge(y)
    assert isinstance(edge, GradientEdge)
    assert isinstance(edge, tuple)
    assert edge.node is y.grad_fn
    assert edge.output_nr == 0
    assert get_gradient_edge(x.unbind()[2]).output_nr == 2
    leaf = get_gradient_edge(x)
    assert leaf.node is y.grad_fn.next_functions[0][0]
    with torch.no_grad():
        assert get_gradient_edge(x).node is leaf.node
    with pytest.raises(RuntimeError, match="a Tensor that does not require gradients"):
        get_gradient_edge(torch.ones(1))


def test_edge_keeps_the_graph_without_its_tensor(x):
    y = (x * x).sum()
    edge = get_gradient_edge(y)
    del y
    gc.collect()
    assert grad(edge, x)[0].tolist() == [2.0, 4.0, 6.0]


# versions


def test_increment_version(x):
    y = x * 1
    z = y * y
    increment_version(y)
    assert y._version == 1
    assert y.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match="version 1; expected version 0"):
        z.sum().backward()
    a, b = torch.ones(1), torch.ones(1)
    increment_version([a, b])
    increment_version(t for t in (a,))
    assert (a._version, b._version) == (2, 1)
    for bad in (3, None, [3]):
        with pytest.raises(RuntimeError, match="increment_version expect"):
            increment_version(bad)
    with torch.inference_mode():
        untracked = torch.ones(1)
    increment_version([untracked, a])  # which have no version
    assert a._version == 3


# hooks on what is saved


def test_packed_is_what_comes_to_unpack(x):
    packed, unpacked = [], []

    def pack(t):
        packed.append(t)
        return len(packed) - 1

    def unpack(i):
        unpacked.append(i)
        return packed[i]

    with saved_tensors_hooks(pack, unpack):
        y = x * x
    assert len(packed) == 2
    assert all(torch.equal(t, x) for t in packed)
    y.sum().backward()
    assert unpacked == [0, 1]
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_unpacked_contents_are_used(x):
    with saved_tensors_hooks(lambda t: None, lambda _: torch.full((3,), 10.0)):
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [20.0] * 3


def test_unpacking_happens_at_each_use(x):
    count = []
    with saved_tensors_hooks(identity, lambda t: count.append(1) or t):
        y = x.exp()
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert len(count) == 2


def test_innermost_hooks_are_used(x):
    order = []
    with saved_tensors_hooks(lambda t: order.append("outer") or t, identity):
        with saved_tensors_hooks(lambda t: order.append("inner") or t, identity):
            x.exp()
        x.exp()
    x.exp()
    assert order == ["inner", "outer"]


def test_hooks_are_taken_off_after_an_exception(x):
    with pytest.raises(LookupError), saved_tensors_hooks(lambda t: pytest.fail("packed"), identity):
        raise LookupError
    x.exp()


def test_second_derivatives_pack_too(x):
    packed = []
    with saved_tensors_hooks(lambda t: packed.append(1) or t, identity):
        (g,) = grad((x**3).sum(), x, create_graph=True)
        first = len(packed)
        assert first >= 2
    (h,) = grad(g.sum(), x)
    assert h.tolist() == [6.0, 12.0, 18.0]


def test_hooks_see_what_functions_save(x):
    packed = []

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    with saved_tensors_hooks(lambda t: packed.append(t.tolist()) or t * 10, identity):
        y = Square.apply(x)
    y.sum().backward()
    assert packed == [[1.0, 2.0, 3.0]]
    assert x.grad.tolist() == [20.0, 40.0, 60.0]


def test_packing_may_not_change_its_argument(x):
    with (
        pytest.raises(RuntimeError, match="A saved tensor pack hook is modifying its input in place"),
        saved_tensors_hooks(lambda t: t.mul_(2), identity),
    ):
        x.exp()


def test_unpacking_must_give_a_tensor(x):
    with saved_tensors_hooks(identity, lambda t: 3):
        y = x.exp()
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got result of type int"):
        y.sum().backward()


def test_exceptions_of_hooks_arrive_as_themselves(x):
    def raising(t):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"), saved_tensors_hooks(raising, identity):
        x.exp()
    with saved_tensors_hooks(identity, raising):
        y = x.exp()
    with pytest.raises(LookupError, match="mine"):
        y.sum().backward()
    assert x.grad is None


def test_hooks_must_be_callable(x):
    for hooks in ((3, identity), (identity, None)):
        with pytest.raises(TypeError), saved_tensors_hooks(*hooks):
            pass
    x.exp()


def test_packed_output_makes_no_cycle(x):
    class Token:
        pass

    kept = []

    def make():
        token = Token()

        def pack(t, token=token):
            kept.append(weakref.ref(token))
            return t, token

        with saved_tensors_hooks(pack, lambda packed: packed[0]):
            return x.exp()

    y = make()
    y.sum().backward(retain_graph=True)
    assert kept[0]() is not None
    del y
    gc.collect()
    assert kept[0]() is None


def test_hooks_can_be_disabled(x):
    with disable_saved_tensors_hooks("no hooks here"):
        with pytest.raises(RuntimeError, match="no hooks here"), saved_tensors_hooks(identity, identity):
            pass
        inner = disable_saved_tensors_hooks("nor here")
        with inner, pytest.raises(RuntimeError, match="nor here"), saved_tensors_hooks(identity, identity):
            pass
        with pytest.raises(RuntimeError, match="no hooks here"), saved_tensors_hooks(identity, identity):
            pass
    with saved_tensors_hooks(identity, identity):
        with pytest.raises(RuntimeError, match="in use"), disable_saved_tensors_hooks("in use"):
            pass
        x.exp()
    with saved_tensors_hooks(identity, identity):
        pass


@pytest.mark.parametrize("pin_memory", [False, True])
def test_save_on_cpu_changes_nothing(x, pin_memory):
    with save_on_cpu(pin_memory=pin_memory):
        y = (x.exp() * x).sum()
    y.backward()
    expected = x.detach().exp() * (1 + x.detach())
    assert torch.allclose(x.grad, expected)


# saved tensors that may change


def test_mutation_of_saved_tensors(x):
    with allow_mutation_on_saved_tensors():
        y = x * 1
        z = y * y
        y.add_(100)
        z.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_mutation_through_views_and_of_outputs(x):
    with allow_mutation_on_saved_tensors():
        y = x.exp()
        before = y.detach().clone()
        y[1:].zero_()
        y.sum().backward()
    expected = before.clone()
    expected[1:] = 0
    assert torch.allclose(x.grad, expected)


def test_saved_views_are_copied_as_they_are(x):
    with allow_mutation_on_saved_tensors():
        y = x * 1
        z = y[1:] * y[:2]
        y.mul_(0)
        z.sum().backward()
    # d/dx of x1 x0 + x2 x1
    assert x.grad.tolist() == [2.0, 4.0, 2.0]


def test_each_graph_keeps_the_contents_of_its_time(x):
    with allow_mutation_on_saved_tensors():
        w = torch.ones(3)
        first = (x * w).sum()
        w.mul_(10)
        second = (x * w).sum()
        w.mul_(10)
        first.backward()
        second.backward()
    assert x.grad.tolist() == [11.0] * 3


def test_unchanged_tensors_are_not_copied(x):
    w = torch.ones(3)
    with allow_mutation_on_saved_tensors():
        node = (x * w).grad_fn
        assert node._saved_other.data_ptr() == w.data_ptr()
        w.add_(1)
        assert node._saved_other.data_ptr() != w.data_ptr()
        assert node._saved_other.tolist() == [1.0] * 3


def test_freed_graphs_leave_nothing_behind(x):
    with allow_mutation_on_saved_tensors() as context:
        for _ in range(5):
            y = x.exp()
            y.sum().backward()
            del y
        gc.collect()
        assert sum(len(saved) for saved in context.by_memory.values()) == 0


def test_mutation_is_an_error_again_outside(x):
    with allow_mutation_on_saved_tensors():
        y = (x * x).sum()
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors' context"):
        y.backward()
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_contexts_cannot_be_nested():
    words = "allow_mutation_on_saved_tensors contexts cannot be nested"
    with (
        allow_mutation_on_saved_tensors(),
        pytest.raises(RuntimeError, match=words),
        allow_mutation_on_saved_tensors(),
    ):
        pass
    with allow_mutation_on_saved_tensors():
        pass


def test_budget_of_a_compiled_region_is_refused():
    with pytest.raises(RuntimeError, match="torch.compile only"):
        torch.autograd.graph.region_activation_memory_budget(0.5)


def test_saved_on_cpu_and_changed_in_place_is_an_error():
    x = torch.ones(2, requires_grad=True)
    with save_on_cpu():
        y = x.exp()
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*version 1; expected version 0"):
        y.sum().backward()
