"""Custom Functions: inputs and views among the outputs, and changes in place."""

import pytest

import rushlight as torch
from rushlight.autograd import Function, grad
from sample_functions import function


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


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


def test_dirty_is_only_what_came_in():
    class Fresh(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="a tensor that was not an input"):
        Fresh.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]
