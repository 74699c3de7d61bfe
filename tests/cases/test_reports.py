"""What trips people up, part one: writes in place, graphs kept and used again, leaves and their gradients.

Every test bears the number of a case of public reports; the values are PyTorch's.
The other parts are in the files named test_reports_*.py.
"""

import gc
import inspect
import re
import warnings
import weakref

import pytest

import rushlight as torch


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


# --- writes in place ------------------------------------------------------------------------------------------------


def test_A1_saved_output_changed_in_place():
    a = leaf(1.0, 2.0, 3.0)
    b = a.exp()
    b.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as info:
        b.sum().backward()
    text = str(info.value)
    assert "[3]" in text
    assert "output 0 of Exp" in text
    assert "is at version 1" in text
    assert "expected version 0" in text
    assert a.grad is None


def test_A1_the_error_names_the_tensor_that_was_changed():
    w, x = leaf(2.0), torch.ones(4, 1)
    y = x * w
    x[1] = 7.0
    with pytest.raises(RuntimeError, match=r"\[4, 1\].* is at version 1; expected version 0 instead"):
        y.sum().backward()


def test_A1_the_error_shows_both_source_lines_when_they_are_recorded():
    a = leaf(1.0, 2.0)
    torch.autograd.set_record_locations(True)
    try:
        b = a.exp()
        needed = inspect.currentframe().f_lineno - 1
        b.add_(1)
        modified = inspect.currentframe().f_lineno - 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as info:
            b.sum().backward()
    finally:
        torch.autograd.set_record_locations(False)
    text = str(info.value)
    assert "test_reports.py" in text
    assert re.search(rf"\b{needed}\b", text)
    assert re.search(rf"\b{modified}\b", text)


def test_A2_no_false_alarm_when_the_output_is_not_saved():
    a = leaf(1.0, 2.0)
    c = a + 1
    c *= 3
    assert c.tolist() == [6.0, 9.0]
    c.sum().backward()
    assert a.grad.tolist() == [3.0, 3.0]


def test_A11_slice_multiplied_in_place():
    x = leaf(1.0, 2.0, 3.0)
    y = x.clone()
    y[1:] *= 10
    (y**2).sum().backward()
    assert x.grad.tolist() == [2.0, 400.0, 600.0]


def test_A11_old_view_after_its_base_was_multiplied():
    x = leaf(1.0, 2.0, 3.0)
    base = x.clone()
    view = base[1:]
    base *= 10
    assert view.tolist() == [20.0, 30.0]
    view.sum().backward()
    assert x.grad.tolist() == [0.0, 10.0, 10.0]


def test_A13_gradient_keeps_the_shape_of_what_was_written_into_a_row():
    x = torch.ones(1, 2, requires_grad=True)
    y = torch.zeros(3, 2)
    y[1] = x
    assert y.tolist() == [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    (y * torch.tensor([2.0, 3.0])).sum().backward()
    assert x.grad.shape == (1, 2)
    assert x.grad.tolist() == [[2.0, 3.0]]


def test_A15_leaf_is_refused_before_its_data_changes():
    x = leaf(1.0, 2.0)
    version = x._version
    for change in (lambda: x.add_(1), lambda: x.zero_(), lambda: x.__setitem__(0, 5.0), lambda: x.__imul__(2)):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            change()
    assert x.tolist() == [1.0, 2.0]
    assert x._version == version
    assert x.is_leaf


def test_A15_view_of_a_leaf_is_refused_before_its_data_changes():
    x = leaf(1.0, 2.0)
    view = x[:1]
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        view.mul_(3)
    assert x.tolist() == [1.0, 2.0]
    assert view.tolist() == [1.0]


@pytest.mark.parametrize("name", ["add_", "mul_", "sub_", "div_"])
def test_A16_arithmetic_in_place_on_an_expanded_tensor(name):
    e = torch.full((1,), 2.0).expand(4)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        getattr(e, name)(2)
    assert e.tolist() == [2.0] * 4


def test_A17_assignment_to_an_element_of_an_expanded_tensor():
    e = torch.zeros(1).expand(4)
    e[0] = 1
    assert e.tolist() == [1.0] * 4


def test_A18_result_that_would_outgrow_its_target():
    a, b = torch.ones(1, 3), torch.ones(2, 1)
    with pytest.raises(RuntimeError, match=r"output with shape \[1, 3\] doesn't match the broadcast shape \[2, 3\]"):
        a *= b
    assert a.shape == (1, 3)
    assert a.tolist() == [[1.0, 1.0, 1.0]]


def test_A21_change_through_detach_is_caught():
    x = leaf(0.5, 2.0)
    y = x.sigmoid()
    y.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_A21_change_through_data_is_not():
    x = leaf(0.5, 2.0)
    y = x.sigmoid()
    y.data.zero_()
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_A21_detach_shares_the_version_and_data_has_its_own():
    y = torch.ones(2)
    y.add_(1)
    assert (y._version, y.detach()._version, y.data._version) == (1, 1, 0)
    y.detach().add_(1)
    assert y._version == 2
    y.data.add_(1)
    assert y._version == 2


def test_A23_integer_data_for_a_parameter():
    parameter = torch.nn.Parameter(torch.ones(2))
    with pytest.raises(RuntimeError, match="must be floating point or complex"):
        parameter.data = torch.tensor([1, 2])
    assert parameter.dtype == torch.float32
    assert parameter.tolist() == [1.0, 1.0]


def test_A23_out_with_an_argument_that_requires_grad():
    out = torch.zeros(1)
    with pytest.raises(RuntimeError, match="out=... arguments don't support automatic differentiation"):
        torch.add(leaf(1.0), 1, out=out)
    assert out.tolist() == [0.0]
    target = leaf(1.0)
    with pytest.raises(RuntimeError, match="out=... arguments don't support automatic differentiation"):
        torch.add(torch.ones(1), 1, out=target)
    assert target.tolist() == [1.0]


def test_A23_resize_of_a_tensor_with_history():
    for x in (leaf(1.0, 2.0) * 2, leaf(1.0, 2.0)):
        with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
            x.resize_(3)
        assert x.shape == (2,)


def test_A26_elements_swapped_through_clones():
    x = leaf(3.0, 4.0)
    y = x.clone()
    first, second = y[0].clone(), y[1].clone()
    y[0], y[1] = second, first
    assert y.tolist() == [4.0, 3.0]
    (y * torch.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [10.0, 1.0]


def test_A26_value_written_without_recording_is_the_one_used():
    x = leaf(1.0, 2.0)
    y = x.clone()
    with torch.no_grad():
        y[0] = 100.0
    (y**2).sum().backward()
    assert x.grad.tolist() == [200.0, 4.0]


# --- graphs used again ----------------------------------------------------------------------------------------------

SECOND_TIME = "Trying to backward through the graph a second time"


def test_A27_second_backward():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME) as info:
        y.backward()
    assert "retain_graph=True" in str(info.value)
    assert x.grad.tolist() == [2.0, 4.0]


def test_A27_second_backward_through_a_graph_that_saved_nothing():
    x = leaf(1.0, 2.0)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_A27_part_of_the_graph_built_outside_the_loop():
    w = leaf(2.0)
    scale = w.exp()
    (scale * 3).sum().backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        (scale * 3).sum().backward()


def test_A27_two_losses_that_share_a_trunk():
    w = leaf(2.0)
    trunk = w**2
    (trunk * 3).sum().backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        (trunk * 5).sum().backward()
    w.grad = None
    trunk = w**2
    (trunk * 3).sum().backward(retain_graph=True)
    (trunk * 5).sum().backward()
    assert w.grad.tolist() == [32.0]


def run_two_steps(detach):
    w, hidden = leaf(0.5), torch.ones(1)
    for _ in range(2):
        hidden = torch.tanh(hidden * w)
        hidden.sum().backward()
        if detach:
            hidden = hidden.detach()
    return w.grad


def test_A29_hidden_state_carried_across_steps():
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        run_two_steps(detach=False)
    h0, w = 1.0, torch.tensor(0.5, dtype=torch.float64)
    h1 = torch.tanh(h0 * w)
    h2 = torch.tanh(h1 * w)
    expected = (1 - h1**2) * h0 + (1 - h2**2) * h1
    assert run_two_steps(detach=True).item() == pytest.approx(expected.item(), rel=1e-5)


def test_A31_parameter_updated_between_two_gradients_of_one_graph():
    w, x = leaf(2.0), torch.tensor([3.0], requires_grad=True)
    y = (x * w * w).sum()
    (first,) = torch.autograd.grad(y, w, retain_graph=True)
    assert first.tolist() == [12.0]
    with torch.no_grad():
        w.sub_(0.1 * first)
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        torch.autograd.grad(y, x)


def test_A32_derivative_of_a_gradient_without_its_graph():
    x = leaf(2.0)
    (first,) = torch.autograd.grad((x**3).sum(), x)
    assert not first.requires_grad
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.autograd.grad(first.sum(), x)
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == [12.0]


class Held:
    """Something whose life can be watched."""


class HoldInGraph(torch.autograd.Function):
    """Multiplies by two; its node keeps an object alive."""

    @staticmethod
    def forward(ctx, x, held):
        ctx.held = held
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


def test_A39_summed_losses_keep_their_graphs_and_items_do_not():
    w = leaf(1.0)

    def epoch(as_number):
        total, watched = 0.0, []
        for _ in range(3):
            held = Held()
            watched.append(weakref.ref(held))
            loss = HoldInGraph.apply(w, held).sum()
            total = total + (loss.item() if as_number else loss)
        del held, loss
        gc.collect()
        return total, [reference() is not None for reference in watched]

    total, alive = epoch(as_number=True)
    assert (total, alive) == (6.0, [False] * 3)
    total, alive = epoch(as_number=False)
    assert (total.item(), alive) == (6.0, [True] * 3)
    assert total.requires_grad


# --- leaves and their gradients -------------------------------------------------------------------------------------


def test_A35_grad_of_a_tensor_that_is_no_leaf():
    x = leaf(1.0, 2.0)
    y = x * 2
    with pytest.warns(UserWarning, match="grad attribute of a Tensor that is not a leaf"):
        assert y.grad is None
    y.retain_grad()
    (y * y).sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad.tolist() == [4.0, 8.0]
    assert x.grad.tolist() == [8.0, 16.0]


def test_A35_requires_grad_of_a_tensor_that_is_no_leaf():
    y = leaf(1.0) * 2
    with pytest.raises(RuntimeError, match=r"only change requires_grad flags of leaf variables.*detach\(\)"):
        y.requires_grad = False
    assert y.requires_grad


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.tensor([1], requires_grad=True),
        lambda: torch.zeros(2, dtype=torch.bool, requires_grad=True),
        lambda: torch.ones(2, dtype=torch.int64).requires_grad_(),
        lambda: setattr(torch.tensor([1]), "requires_grad", True),
    ],
)
def test_A37_integers_cannot_require_grad(make):
    with pytest.raises(RuntimeError, match="(?i)only Tensors of floating point"):
        make()


def test_A37_a_decimal_point_is_enough():
    assert torch.tensor([1.0], requires_grad=True).requires_grad


@pytest.mark.parametrize(
    ("grad", "error", "words"),
    [
        (torch.ones(3), RuntimeError, r"size '\[3\]' to a tensor of size '\[2\]'"),
        (torch.ones(1), RuntimeError, r"size '\[1\]' to a tensor of size '\[2\]'"),
        (torch.ones(2, dtype=torch.float64), RuntimeError, "dtype 'double'"),
        (3, TypeError, "expected to be a Tensor or None but got grad of type int"),
    ],
)
def test_A42_gradients_that_do_not_fit(grad, error, words):
    x = leaf(1.0, 2.0)
    with pytest.raises(error, match=words):
        x.grad = grad
    assert x.grad is None


def test_A42_a_tensor_as_its_own_gradient():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x
    assert x.grad is None


def test_A42_gradient_of_a_tensor_that_is_no_leaf_may_be_set():
    y = leaf(1.0, 2.0) * 2
    y.grad = torch.ones(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert y.grad.tolist() == [1.0, 1.0]


def test_A43_backward_of_what_is_no_scalar():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    assert x.grad is None


def test_A43_backward_of_what_was_not_recorded():
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        torch.ones(2).sum().backward()


def test_A43_gradient_of_another_shape():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\] has a shape of .*\[3\].*\[2\]"):
        (x * 2).backward(torch.ones(3))
    assert x.grad is None


def test_A43_unused_inputs():
    x, y = leaf(1.0), leaf(2.0)
    out = (x * 2).sum()
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph. Set allow_unused=True"):
        torch.autograd.grad(out, (x, y), retain_graph=True)
    used, unused = torch.autograd.grad(out, (x, y), allow_unused=True, retain_graph=True)
    assert used.tolist() == [2.0]
    assert unused is None
    used, unused = torch.autograd.grad(out, (x, y), materialize_grads=True)
    assert used.tolist() == [2.0]
    assert unused.tolist() == [0.0]
    assert unused.dtype == y.dtype


def test_A45_one_tensor_used_in_several_places():
    x = leaf(2.0)
    y = x * x
    (y * y + y).sum().backward()
    assert x.grad.tolist() == [36.0]


def test_A45_one_tensor_twice_in_cat_and_stack():
    x = leaf(2.0)
    weights = torch.tensor([10.0, 26.0])
    (torch.cat([x, x]) * weights).sum().backward()
    assert x.grad.tolist() == [36.0]
    x = leaf(5.0, 6.0)
    (torch.stack([x, x]) * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]
