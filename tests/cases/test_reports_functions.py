"""What trips people up, part three: user-defined functions.

Every test bears the number of a case of public reports; the values are PyTorch's.
"""

import gc
import weakref

import pytest

import rushlight as torch


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


class DirtyNotReturned(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.add_(1)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad


class DirtyWithTwoOutputs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.add_(1)
        return x, x.clone()

    @staticmethod
    def backward(ctx, grad, other):
        return grad + other


def test_A59_dirty_input_that_is_not_returned():
    with pytest.raises(RuntimeError, match="marked as dirty during the forward method were not returned as output"):
        DirtyNotReturned.apply(leaf(1.0) * 1)


def test_A59_dirty_view_and_two_outputs():
    with pytest.raises(RuntimeError, match="cannot return more than one Tensor"):
        DirtyWithTwoOutputs.apply((leaf(1.0, 2.0) * 1)[:1])
    x = leaf(1.0, 2.0)
    first, second = DirtyWithTwoOutputs.apply(x * 1)
    (first + second).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def apply_with_gradients(give):
    class Give(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 2 + y

        @staticmethod
        def backward(ctx, grad):
            return give(grad)

    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    Give.apply(x, y).sum().backward()
    return x.grad, y.grad


@pytest.mark.parametrize(
    ("give", "words"),
    [
        (lambda grad: grad, r"incorrect number of gradients \(expected 2, got 1\)"),
        (lambda grad: (grad, grad, grad), r"incorrect number of gradients \(expected 2, got 3\)"),
        (lambda grad: (grad, torch.ones(3)), r"invalid gradient at index 1 - got \[3\] but expected .*\[2\]"),
        (lambda grad: (torch.ones(1), grad), r"invalid gradient at index 0 - got \[1\] but expected .*\[2\]"),
    ],
)
def test_A62_wrong_gradients(give, words):
    with pytest.raises(RuntimeError, match=words):
        apply_with_gradients(give)


def test_A62_gradients_that_are_made_to_fit():
    x, y = apply_with_gradients(lambda grad: (grad, grad * 2, None, None))
    assert (x.tolist(), y.tolist()) == ([1.0, 1.0], [2.0, 2.0])
    x, y = apply_with_gradients(lambda grad: (grad.to(torch.float64), torch.ones(2, 2)))
    assert (x.dtype, x.tolist(), y.tolist()) == (torch.float32, [1.0, 1.0], [2.0, 2.0])
    x, y = apply_with_gradients(lambda grad: (None, grad))
    assert x is None
    assert y.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("materialize", [True, False])
def test_A64_gradient_of_an_unused_output(materialize):
    seen = []

    class TwoOutputs(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, first, second):
            seen.append((first, second))
            return first * 2

    x = leaf(1.0, 2.0)
    TwoOutputs.apply(x)[0].sum().backward()
    ((first, second),) = seen
    assert first.tolist() == [1.0, 1.0]
    assert second.tolist() == [0.0, 0.0] if materialize else second is None
    assert x.grad.tolist() == [2.0, 2.0]


def test_A64_placeholder_of_an_integer_output():
    seen = []

    class WithCount(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            count = torch.tensor([3])
            ctx.mark_non_differentiable(count)
            return x * 2, count

        @staticmethod
        def backward(ctx, grad, placeholder):
            seen.append(placeholder)
            return grad * 2

    y, count = WithCount.apply(leaf(1.0, 2.0))
    assert not count.requires_grad
    y.sum().backward()
    assert (seen[0].tolist(), seen[0].dtype) == ([0], torch.int64)


class Held:
    """Something whose life can be watched."""


def keep_by_saving(ctx, x):
    y = x * 2
    ctx.save_for_backward(y)
    return y


def keep_as_attribute(ctx, x):
    ctx.y = x * 2
    return ctx.y


def keep_dirty_view(ctx, x):
    ctx.mark_dirty(x)
    ctx.x = x
    return x.mul_(2)


@pytest.mark.parametrize("keep", [keep_by_saving, keep_as_attribute, keep_dirty_view])
def test_A66_context_that_holds_its_output_is_reclaimed(keep):
    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, held):
            ctx.held = held
            return keep(ctx, x)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2, None

    held = Held()
    watched = weakref.ref(held)
    x = leaf(1.0, 2.0)
    y = Keep.apply((x * 1)[:1], held)
    del held
    gc.collect()
    assert watched() is not None
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0]
    del y
    gc.collect()
    assert watched() is None


def test_A67_input_changed_in_place_without_mark_dirty():
    class Quiet(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    a = leaf(1.0, 2.0)
    b = a * 1
    b.retain_grad()
    Quiet.apply(b).sum().backward()
    assert a.grad.tolist() == [1.0, 1.0]
    assert b.grad.tolist() == [1.0, 1.0]


def test_A68_needs_input_grad():
    seen = []

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, number):
            seen.append(ctx.needs_input_grad)
            return x * number + y

        @staticmethod
        def backward(ctx, grad):
            return grad, None, None

    Scale.apply(leaf(1.0), torch.ones(1), 3)
    assert seen == [(True, False, False)]


def test_A68_tensors_in_a_list_are_not_tracked():
    class First(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tensors):
            return tensors[0] * 2

        @staticmethod
        def backward(ctx, grad):
            return None

    y = First.apply([leaf(1.0)])
    assert y.tolist() == [2.0]
    assert not y.requires_grad


class SaveInput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x


def test_A68_saved_input_changed_before_backward():
    x = leaf(1.0) * 1
    y = SaveInput.apply(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*version 1; expected version 0"):
        y.sum().backward()


def test_A69_function_without_setup_context_inside_transforms():
    with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
        torch.func.grad(lambda x: SaveInput.apply(x).sum())(torch.ones(1))
    with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
        torch.func.vmap(SaveInput.apply)(torch.ones(2, 1))
