"""Reading and writing the same memory at once: refused where PyTorch refuses it, right elsewhere."""

import pytest

import rushlight as torch


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.copy_(x[0]),
        lambda x: x.copy_(x.unbind(0)[0]),
        lambda x: x[:1].copy_(x[0]),
        lambda x: x.view(-1)[1:].copy_(x.view(-1)[:-1]),
        lambda x: x.add_(x[0]),
    ],
)
def test_memory_that_is_shared_in_part_is_refused(write):
    x = torch.arange(6.0).view(2, 3)
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
        write(x)
    assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] and x._version == 0


def test_the_same_or_other_memory_is_copied():
    x = torch.arange(6.0).view(2, 3)
    assert x.copy_(x) is x and x[0].copy_(x.unbind(0)[0]).tolist() == [0.0, 1.0, 2.0]
    assert x[:, 1:].copy_(x[:, :2]).tolist() == [[0.0, 1.0], [3.0, 4.0]]  # where PyTorch reads what it has written
    assert x[0].copy_(x[1]).tolist() == [3.0, 3.0, 4.0]
    one = torch.ones(1).expand(3)
    assert one.copy_(one) is one


def test_a_view_whose_base_came_to_require_gradients_says_that_its_history_is_lost():
    base = torch.ones(2, 3)
    with torch.no_grad():
        part = base[0]
    part_of_part = part[1:]
    several = base.unbind(0)[1]
    base.mul_(torch.ones(3, requires_grad=True))
    for view in (part, part_of_part, several):
        for look in (lambda v: v.is_leaf, lambda v: v.grad_fn, lambda v: v.sum()):
            with pytest.raises(RuntimeError, match="modified inplace"):
                look(view)
