"""What type checkers see: mypy runs over this file in CI (strictly), pytest runs it too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_type

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn


def test_results_of_functions_and_methods() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    assert_type(x, Tensor)
    assert_type(x + 1, Tensor)
    assert_type(2.0 * x @ x.mT, Tensor)
    assert_type(torch.exp(x), Tensor)
    assert_type(x.sum(0).mean(), Tensor)
    assert_type(x.view(3, 2), Tensor)
    assert_type(x.view((3, 2)), Tensor)
    assert_type(torch.zeros(2, 3, dtype=torch.float64).add_(1), Tensor)
    assert_type(torch.cat([x, x], dim=1), Tensor)
    assert_type(x.unbind(0), tuple[Tensor, ...])
    assert_type(x == x, Tensor)
    assert_type([row for row in x], list[Tensor])  # noqa: C416
    assert_type(x.tolist(), Any)
    assert x.unbind(0)[1].shape == (3,)


def test_results_with_names() -> None:
    values, indices = torch.ones(3).max(0)
    assert_type(values, Tensor)
    assert_type(indices, Tensor)
    assert_type(torch.ones(3).topk(2).indices, Tensor)
    assert_type(torch.sort(torch.ones(3)).values, Tensor)
    assert_type(torch.ones(3).max(), Tensor)
    assert values.item() == 1


def test_attributes() -> None:
    x = torch.ones(2, 3)
    assert_type(x.shape, torch.Size)
    assert_type(x.shape[0], int)
    assert_type(x.shape[1:], torch.Size)
    assert_type(x.size(), torch.Size)
    assert_type(x.size(0), int)
    assert_type(x.dtype, torch.dtype)
    assert_type(x.dtype.is_floating_point, bool)
    assert_type(x.device.type, str)
    assert_type(x.grad, Tensor | None)
    assert_type(x.requires_grad, bool)
    assert_type(x.stride(), tuple[int, ...])
    assert_type(torch.float32, torch.dtype)
    assert_type(torch.default_generator, torch.Generator)
    assert_type(torch.Generator().manual_seed(0), torch.Generator)
    assert x.shape[1:] == (3,)


def test_nodes_and_hooks() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    node = y.grad_fn
    assert node is not None
    assert_type(node.name(), str)
    assert_type(node.metadata, dict[Any, Any])
    y.register_hook(lambda grad: 2 * grad)
    y.sum().backward()
    assert x.grad is not None
    assert_type(x.grad, Tensor)
    assert torch.equal(x.grad, 2 * y)


class Doubled(torch.autograd.Function):
    """A Function as users write it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return 2 * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return 2 * grad


class Net(nn.Module):
    """A module as users write it."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(3, 4)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        assert_type(self.scale, nn.Parameter)
        return F.relu(F.linear(x, self.hidden.weight)) * self.scale


def test_a_training_step() -> None:
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    assert_type(net.parameters(), Iterator[nn.Parameter])
    loss = F.mse_loss(net(torch.ones(2, 3)), torch.zeros(2, 4))
    assert_type(loss, Tensor)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        assert_type(net.scale * 2, Tensor)
        net.scale.mul_(2)
    assert_type(net.scale.detach(), Tensor)
    assert_type(float(loss), float)
    assert net.scale.grad is not None and Doubled.apply(loss).item() == 2 * loss.item()
