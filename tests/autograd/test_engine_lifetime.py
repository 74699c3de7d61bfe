"""What the engine frees, and when."""

import gc
import weakref

import pytest

import rushlight as torch
from sample_functions import carried, scalar


def test_graph_is_freed_with_its_output():
    x = scalar()
    y, reference = carried(x)
    z = (y * 2).exp()
    del y
    assert reference() is not None
    del z
    assert reference() is None


def test_buffers_are_freed_by_backward():
    x = torch.ones(3, requires_grad=True)
    h = torch.full((3,), 2.0)
    reference = weakref.ref(h)
    y = (x * h).sum()
    del h
    assert reference() is None or reference().tolist() == [2.0] * 3
    y.backward()
    gc.collect()
    assert reference() is None
    assert y.grad_fn is not None


def test_gradients_on_the_way_are_freed():
    x = torch.ones(3, requires_grad=True)
    references = []
    y = x
    for _ in range(5):
        y = y * 2
        y.register_hook(lambda g: references.append(weakref.ref(g)))
    y.sum().backward()
    assert len(references) == 5
    # None is left but the one that may have been handed on, in the same memory, to become the leaf's gradient.
    assert all(reference() is None or reference() is x.grad for reference in references)


def test_leaf_does_not_keep_its_graph():
    x = scalar()
    y, reference = carried(x)
    y.backward()
    del y
    assert reference() is None
    assert x.grad is not None


def test_graph_keeps_the_leaf():
    x = scalar()
    y = x * 2
    accumulator = y.grad_fn.next_functions[0][0]
    del x
    gc.collect()
    y.backward()
    assert accumulator.variable.grad.item() == 2.0


@pytest.mark.filterwarnings("ignore:Using backward")
def test_cycle_of_a_leaf_and_its_recorded_gradient_is_collected():
    def make():
        x = scalar(2.0)
        y, reference = carried(x)
        (y**3).backward(create_graph=True)
        assert x.grad.requires_grad
        return reference

    reference = make()
    gc.collect()
    assert reference() is None


def test_cycle_through_an_attribute_of_a_tensor_is_collected():
    def make():
        x = scalar()
        y, reference = carried(x)
        x.result = y
        return reference

    reference = make()
    gc.collect()
    assert reference() is None


def test_cycle_through_node_metadata_is_collected():
    def make():
        x = scalar()
        y, reference = carried(x)
        y.grad_fn.metadata["output"] = y
        return reference

    reference = make()
    gc.collect()
    assert reference() is None


def test_collector_does_not_free_what_is_in_use():
    x = scalar(2.0)
    y, reference = carried(x)
    z = y * y
    x.back = z
    del y
    gc.collect()
    assert reference() is not None
    z.backward()
    assert x.grad.item() == 4.0


def test_identity_of_tensors_and_nodes():
    x = scalar()
    y = x * 2
    assert y.grad_fn is y.grad_fn
    number = id(y.grad_fn.next_functions[0][0].variable)
    assert number == id(x)
    y.note = "kept"
    z = [y]
    del y
    gc.collect()
    assert z[0].note == "kept"
