"""In-place operations and views: versions, refused leaves, rebased histories of views and bases, and who notices."""

import pytest

import rushlight as torch
from rushlight.autograd import gradcheck
from rushlight.testing import assert_close


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


@pytest.fixture
def m():
    return torch.arange(6.0, dtype=torch.float64).view(2, 3).requires_grad_()


def gradient(output, leaf):
    return torch.autograd.grad(output.sum(), leaf, retain_graph=True)[0]


# versions


def test_version_counts_changes():
    t = torch.zeros(3)
    assert t._version == 0
    t.add_(1)
    t[0] = 5
    t += 1
    assert t._version == 3
    _ = t + 1
    assert t._version == 3


def test_views_and_detached_tensors_share_the_version():
    t = torch.zeros(3)
    view, detached = t[1:], t.detach()
    view.add_(1)
    assert t._version == view._version == detached._version == 1
    detached.add_(1)
    assert t._version == view._version == 2


def test_data_has_a_version_of_its_own(x):
    y = x * 1
    y.data.add_(1)
    assert y._version == 0
    assert y.data._version == 0
    assert y.tolist() == [2.0, 3.0, 4.0]


def test_change_through_data_is_not_noticed(x):
    y = x.sigmoid()
    y.data.zero_()
    y.sum().backward()
    assert x.grad.tolist() == [0.0] * 3


@pytest.mark.parametrize("change", [lambda t: t.add_(1), lambda t: t.detach().zero_(), lambda t: t[0:1].fill_(7.0)])
def test_change_of_a_saved_tensor_is_noticed(x, change):
    y = x * 1
    z = y.exp()
    w = z * z
    change(z)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as info:
        w.sum().backward()
    for words in ("[3]", "is at version 1", "expected version 0", "detect_anomaly"):
        assert words in str(info.value)
    assert x.grad is None


def test_message_names_the_operation_that_made_the_tensor(x):
    z = (x * 1).exp()
    z.add_(1)
    with pytest.raises(RuntimeError, match="output 0 of Exp, is at version 1; expected version 0"):
        z.sum().backward()


def test_change_in_no_grad_is_noticed(x):
    y = x * 1
    z = y * y
    with torch.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_change_of_a_leaf_between_two_gradients_is_noticed(x):
    loss = (x * x).sum()
    torch.autograd.grad(loss, x, retain_graph=True)
    with torch.no_grad():
        x.sub_(0.1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(loss, x)


def test_change_of_what_was_not_saved_is_no_error(x):
    b = x.exp() + 1
    b *= 3
    assert_close(gradient(b, x), 3 * x.detach().exp())
    c = x + 1
    d = c + 1
    c.zero_()
    assert gradient(d, x).tolist() == [1.0] * 3


def test_only_saved_operands_count(x):
    constant = torch.full((3,), 2.0)
    y = x * constant  # the gradient of x needs the constant, nobody needs x
    with torch.no_grad():
        x.zero_()
    assert gradient(y, x).tolist() == [2.0] * 3
    z = x * constant
    constant.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_zero_and_fill_count_as_changes(x):
    for change in (
        lambda t: t.zero_(),
        lambda t: t.fill_(2),
        lambda t: t.copy_(torch.ones(3)),
        lambda t: t.clamp_(0, 1),
    ):
        y = x * 1
        z = y * y
        change(y)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()


# leaves

IN_PLACE = [
    lambda t: t.add_(1),
    lambda t: t.mul_(torch.ones(3)),
    lambda t: t.zero_(),
    lambda t: t.copy_(torch.zeros(3)),
    lambda t: t.__setitem__(0, 5.0),
    lambda t: t.__iadd__(1),
    lambda t: t.exp_(),
    lambda t: t.clamp_(0, 1),
]


@pytest.mark.parametrize("change", IN_PLACE)
def test_leaf_that_requires_grad_is_refused_before_it_changes(x, change):
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        change(x)
    assert x.tolist() == [1.0, 2.0, 3.0]
    assert x._version == 0


@pytest.mark.parametrize(
    "view", [lambda t: t[1:], lambda t: t.view(3, 1), lambda t: t.view(3).detach().requires_grad_()]
)
def test_view_of_a_leaf_is_refused_before_it_changes(x, view):
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used in an in-place operation"):
        view(x).add_(1)
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_leaf_changes_in_no_grad_and_stays_a_leaf(x):
    with torch.no_grad():
        for change in IN_PLACE:
            change(x)
    assert x.is_leaf
    assert x.requires_grad
    x.sum().backward()
    assert x.grad.tolist() == [1.0] * 3


def test_leaf_without_gradient_takes_the_history_of_what_is_written(x):
    buffer = torch.zeros(3)
    buffer += x
    assert buffer.requires_grad
    assert not buffer.is_leaf
    buffer.mul_(2)
    assert gradient(buffer, x).tolist() == [2.0] * 3


def test_integer_leaf_cannot_take_a_history(x):
    counts = torch.zeros(3, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="can't be cast"):
        counts += x
    assert counts.tolist() == [0, 0, 0]


# histories of changed tensors


def test_chain_of_in_place_operations(x):
    y = x * 1
    y.mul_(2).add_(1).mul_(3)
    assert_close(y.detach(), (2 * x.detach() + 1) * 3)
    assert gradient(y, x).tolist() == [6.0] * 3


def test_in_place_returns_the_tensor_itself(x):
    y = x * 1
    before = y
    assert y.mul_(2) is y
    y *= 2
    assert y is before
    assert type(y.grad_fn).__name__ == "MulBackward0"


def test_in_place_with_broadcast_and_dtype(x):
    y = torch.ones(2, 3) * 1
    y.add_(x)
    assert gradient(y, x).tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        (x * 1).add_(torch.ones(2, 3))
    wide = torch.zeros(1, 3)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        wide *= torch.ones(2, 1)


def test_functions_of_the_former_contents_stay_right(x):
    y = x * 1
    s = y.sum()  # sum needs no contents
    y.mul_(5)
    assert gradient(s, x).tolist() == [1.0] * 3
    assert gradient(y, x).tolist() == [5.0] * 3


def test_swapping_through_clones(x):
    y = x * 1
    first, second = y[0].clone(), y[1].clone()
    y[0], y[1] = second, first
    assert gradient(y * torch.tensor([1.0, 10.0, 100.0]), x).tolist() == [10.0, 1.0, 100.0]


def test_value_written_in_no_grad_is_used_by_backward(x):
    y = x.clone()
    with torch.no_grad():
        y[:] = 100.0
    z = y * y
    assert gradient(z, x).tolist() == [200.0] * 3


def test_requires_grad_of_copy_target(x):
    target = torch.zeros(3)
    target.copy_(x)
    assert target.requires_grad
    assert gradient(target * 2, x).tolist() == [2.0] * 3
    target.copy_(torch.ones(3))
    assert target.requires_grad
    assert gradient(target, x).tolist() == [0.0] * 3


# views


def test_views_know_their_base(x):
    y = x * 1
    view = y[1:]
    assert view._is_view()
    assert view._base is y
    assert view[:1]._base is y
    assert not (y + 1)._is_view()
    assert y._base is None


def test_change_of_a_view_reaches_the_history_of_the_base(x):
    y = x * 1
    y[1:] *= 10
    z = (y**2).sum()
    z.backward()
    assert x.grad.tolist() == [2.0, 400.0, 600.0]
    assert type(y.grad_fn).__name__ == "CopySlices"


def test_change_of_the_base_reaches_an_old_view(x):
    y = x * 1
    view = y[1:]
    y *= 10
    assert view.tolist() == [20.0, 30.0]
    assert gradient(view, x).tolist() == [0.0, 10.0, 10.0]


def test_change_of_a_view_reaches_its_siblings(x):
    y = x * 1
    left, right, all_of_it = y[:2], y[1:], y.view(3, 1)
    left.mul_(10)
    assert gradient(right, x).tolist() == [0.0, 10.0, 1.0]
    assert gradient(all_of_it, x).tolist() == [10.0, 10.0, 1.0]
    right.add_(1).mul_(3)
    assert gradient(y, x).tolist() == [10.0, 30.0, 3.0]
    assert gradient(left, x).tolist() == [10.0, 30.0, 0.0]


def test_views_of_views(m):
    y = m * 1
    row = y[1]
    part = row[1:]
    part.mul_(7)
    expected = torch.tensor([[1.0, 1.0, 1.0], [1.0, 7.0, 7.0]], dtype=torch.float64)
    assert_close(gradient(y, m), expected)
    assert_close(gradient(row, m), torch.tensor([[0.0, 0.0, 0.0], [1.0, 7.0, 7.0]], dtype=torch.float64))


VIEWS = {
    "select": lambda t: t[1],
    "slice": lambda t: t[:, 1:],
    "step": lambda t: t[:, ::2],
    "transpose": lambda t: t.t(),
    "view": lambda t: t.view(3, 2),
    "reshape": lambda t: t.reshape(-1),
    "narrow": lambda t: t.narrow(1, 1, 2),
    "unsqueeze": lambda t: t.unsqueeze(1),
    "diagonal": lambda t: t.diagonal(),
    "movedim": lambda t: t.movedim(0, 1)[1:],
    "as_strided": lambda t: t.as_strided((2, 2), (3, 1), 1),
    "flatten": lambda t: t.flatten(),
    "squeeze": lambda t: t[:1].squeeze(0),
    "unfold": lambda t: t.unfold(1, 1, 2),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_in_place_through_every_kind_of_view(m, view):
    def change_view(m):
        y = m * 1
        part = view(y)
        part.mul_(part.detach() * 0 + 2).add_(1)
        return y * y, part * 3

    def change_base(m):
        y = m * 1
        part = view(y)
        y.sin_()
        return part * y.sum()

    assert gradcheck(change_view, (m,))
    assert gradcheck(change_base, (m,))
    y = m * 1
    view(y).mul_(5)
    assert set(gradient(y, m).unique().tolist()) <= {1.0, 5.0}
    assert (gradient(y, m) == 5.0).sum().item() == view(m.detach()).numel()


def test_write_into_a_view_from_another_leaf(x):
    w = torch.tensor([5.0], requires_grad=True)
    y = x * 1
    y[1:2] = w * 2
    (y * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 100.0]
    assert w.grad.tolist() == [20.0]


def test_written_value_keeps_its_own_shape():
    w = torch.ones(1, 2, requires_grad=True)
    y = torch.zeros(3, 2)
    y[1] = w
    y.sum().backward()
    assert w.grad.shape == (1, 2)
    assert w.grad.tolist() == [[1.0, 1.0]]


def test_written_value_is_broadcast():
    w = torch.tensor(2.0, requires_grad=True)
    y = torch.zeros(2, 3)
    y[:, 1:] = w
    assert y.tolist() == [[0.0, 2.0, 2.0]] * 2
    y.sum().backward()
    assert w.grad.item() == 4.0


def test_masked_and_listed_writes(x):
    y = x * 1
    y[y > 1.5] = 0.0
    y[[0]] *= 3
    assert gradient(y, x).tolist() == [3.0, 0.0, 0.0]


def test_base_without_gradient_takes_history_through_a_view(x):
    buffer = torch.zeros(2, 3)
    row = buffer[0]
    row.add_(x)
    assert buffer.requires_grad
    assert row.requires_grad
    buffer[1].copy_(x * 2)
    assert gradient(buffer, x).tolist() == [3.0] * 3
    assert type(buffer.grad_fn).__name__ == "CopySlices"


def test_saved_base_changed_through_a_view_is_noticed(x):
    y = x * 1
    view = y[1:]
    z = y * y
    view.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_hook_on_a_changed_tensor_belongs_to_its_former_history(x):
    seen = []
    y = x * 1
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.mul_(5)
    y.sum().backward()
    assert seen == [[5.0] * 3]


def test_detached_view_does_not_track(x):
    y = x * 1
    z = y.detach()[1:]
    z.zero_()
    assert y.tolist() == [1.0, 0.0, 0.0]
    assert gradient(y, x).tolist() == [1.0] * 3


# views that refuse changes


@pytest.mark.parametrize(
    "views",
    [
        lambda t: t.unbind(0),
        lambda t: t.split(1),
        lambda t: t.chunk(3),
        lambda t: list(t),
        lambda t: t.split([1, 2]),
    ],
)
def test_one_of_many_views_refuses_a_change(x, views):
    y = x * 1
    first = views(y)[0]
    with pytest.raises(RuntimeError, match="is the output of a function that returns multiple views"):
        first.add_(1)
    assert y.tolist() == [1.0, 2.0, 3.0]
    with torch.no_grad():
        first.add_(1)
    assert y.tolist() == [2.0, 2.0, 3.0]


def test_change_of_the_base_after_many_views(x):
    y = x * 1
    first = y.unbind(0)[0]
    y.mul_(2)
    with pytest.raises(RuntimeError, match="returns multiple views"):
        _ = first.grad_fn


def test_view_made_in_no_grad_refuses_a_change_outside(x):
    y = x * 1
    with torch.no_grad():
        view = y[1:]
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        view.mul_(2)
    assert y.tolist() == [1.0, 2.0, 3.0]
    with torch.no_grad():
        view.mul_(2)
    assert y.tolist() == [1.0, 4.0, 6.0]


def test_view_made_in_inference_mode_refuses_a_change_outside(x):
    y = x * 1
    with torch.inference_mode():
        view = y[1:]
    with pytest.raises(RuntimeError, match="nference"):
        view.mul_(2)
    assert y.tolist() == [1.0, 2.0, 3.0]


# overlapping memory


def test_expanded_tensors_refuse_arithmetic_in_place():
    t = torch.zeros(1)
    e = t.expand(4)
    for change in (
        lambda: e.add_(1),
        lambda: e.mul_(2),
        lambda: e.copy_(torch.ones(4)),
        lambda: torch.add(e, 1, out=e),
    ):
        with pytest.raises(
            RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"
        ):
            change()
    assert t.item() == 0.0
    e.zero_()
    e.fill_(3)
    assert t.item() == 3.0
    e[0] = 1
    assert e.tolist() == [1.0] * 4


def test_operands_that_overlap_the_target_partly_are_refused():
    t = torch.arange(4.0)
    words = "some elements of the input tensor and the written-to tensor refer to a single memory location"
    with pytest.raises(RuntimeError, match=words):
        t[1:].add_(t[:-1])
    with pytest.raises(RuntimeError, match=words):
        torch.mul(t[1:], 2, out=t[:-1])
    assert t.tolist() == [0.0, 1.0, 2.0, 3.0]
    t.add_(t)
    assert t.tolist() == [0.0, 2.0, 4.0, 6.0]


def test_gradient_through_expand_adds_up(x):
    e = x.expand(2, 3)
    assert gradient(e * torch.tensor([[1.0], [10.0]]), x).tolist() == [11.0] * 3


# out=


def test_out_refuses_what_is_recorded(x):
    out = torch.zeros(3)
    with pytest.raises(RuntimeError, match=r"out=.*automatic differentiation"):
        torch.mul(x, 2, out=out)
    with pytest.raises(RuntimeError, match=r"out=.*automatic differentiation"):
        torch.mul(torch.ones(3), 2, out=x)
    assert out.tolist() == [0.0] * 3
    assert x.tolist() == [1.0, 2.0, 3.0]
    with torch.no_grad():
        assert torch.mul(x, 2, out=out) is out
    assert out.tolist() == [2.0, 4.0, 6.0]
    assert out._version == 1


# resizing, data, set


def test_resize_refuses_a_history(x):
    with pytest.raises(RuntimeError, match="resize"):
        (x * 1).resize_(2)
    with pytest.raises(RuntimeError, match="resize"):
        x.resize_(5)


def test_data_is_replaced_by_its_kind(x):
    x.data = torch.tensor([7.0, 8.0])
    assert x.tolist() == [7.0, 8.0]
    assert x.requires_grad
    with pytest.raises(RuntimeError, match="incompatible tensor type|[Ii]nteger|floating"):
        x.data = torch.tensor([1, 2])
    assert x.tolist() == [7.0, 8.0]


def test_accumulated_gradient_may_be_changed(x):
    (x * 2).sum().backward()
    x.grad.zero_()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0] * 3
    x.grad.data.mul_(2)
    assert x.grad.tolist() == [6.0] * 3


# second derivatives through changes


def test_in_place_is_differentiable_twice():
    t = torch.tensor([0.3, -0.7, 1.1], dtype=torch.float64, requires_grad=True)

    def func(t):
        y = t * 1
        y[1:].mul_(t[:2])
        y.mul_(y.detach() * 0 + t)
        return y.sin()

    assert gradcheck(func, (t,))
    assert torch.autograd.gradgradcheck(func, (t,))


def test_long_chain_of_changes_of_one_view(x):
    y = x * 1
    view = y[1:]
    for _ in range(2000):
        view.add_(1)
    assert gradient(y, x).tolist() == [1.0] * 3
    assert view.tolist() == [2002.0, 2003.0]
