"""torch._foreach_*: operators over lists of tensors."""

import pytest

import rushlight as torch


def test_results_are_tuples_and_changes_give_the_list_back() -> None:
    tensors = [torch.ones(2), torch.full((3,), 2.0)]
    assert [t.tolist() for t in torch._foreach_mul(tensors, [2, 3])] == [[2, 2], [6, 6, 6]]
    assert type(torch._foreach_neg(tensors)) is tuple
    assert torch._foreach_add_(tensors, 1) is tensors
    assert [t.tolist() for t in tensors] == [[2, 2], [3, 3, 3]]
    assert [t.item() for t in torch._foreach_norm([torch.tensor([3.0, 4.0])])] == [5]


def test_histories_are_the_operators() -> None:
    x = torch.ones(2, requires_grad=True)
    (y,) = torch._foreach_addcmul([x], [x], [x], value=2)
    y.sum().backward()
    assert x.grad.tolist() == [5, 5]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        torch._foreach_mul_([x], 2)


def test_lists_of_unequal_length_change_nothing() -> None:
    tensors = [torch.ones(2), torch.ones(2)]
    with pytest.raises(RuntimeError, match="same number of tensors, got 2 and 1"):
        torch._foreach_add_(tensors, [torch.ones(2)])
    with pytest.raises(RuntimeError, match="same number of elements as scalar list"):
        torch._foreach_add_(tensors, [1.0])
    with pytest.raises(RuntimeError, match="must have at least one tensor"):
        torch._foreach_sqrt([])
    with pytest.raises(TypeError, match="'self' .position 1. must be tuple of Tensors, not"):
        torch._foreach_sqrt(tensors[0])
    with pytest.raises(TypeError, match="element of type str at position 1"):
        torch._foreach_sqrt([tensors[0], "x"])
    with pytest.raises(TypeError, match="multiple values for argument 'scalar'"):
        torch._foreach_add(tensors, 1, scalar=2)
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        torch._foreach_sqrt(tensors, 1)
    assert [t.tolist() for t in tensors] == [[1, 1], [1, 1]]
