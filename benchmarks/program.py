"""Whole programs: small graphs from Python, scientific functions, and training steps."""

from __future__ import annotations

from typing import Any

from .workload import Step, gradient_step, workload


def _pair(torch: Any) -> tuple[Any, Any]:
    return torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)


@workload("program")
def mul_small(torch: Any) -> Step:
    """One recorded product of four numbers."""
    x, y = _pair(torch)
    return lambda: x * y


@workload("program")
def chain100_small(torch: Any) -> Step:
    """A hundred recorded products of four numbers, and their backward."""
    x, y = _pair(torch)

    def step() -> None:
        z = x
        for _ in range(100):
            z = z * y
        z.sum().backward()

    return step


@workload("program")
def mixed50_small(torch: Any) -> Step:
    """Products, sines, sums and quotients of four numbers, and their backward."""
    x, y = _pair(torch)

    def step() -> None:
        z = x
        for _ in range(12):
            z = ((z * y).sin() + 1.0) / 2.0
        z.sum().backward()

    return step


def _rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@workload("program")
def rosenbrock(torch: Any) -> Step:
    """The gradient of the ten-dimensional Rosenbrock function in float64."""
    return gradient_step(torch, _rosenbrock, torch.full((10,), 0.5, dtype=torch.float64, requires_grad=True))


@workload("program")
def hessian_small(torch: Any) -> Step:
    """The Hessian of the same function."""
    x = torch.full((10,), 0.5, dtype=torch.float64)
    return lambda: torch.autograd.functional.hessian(_rosenbrock, x)


@workload("program")
def deep_graph(torch: Any) -> Step:
    """A graph of 200,000 nodes in a row."""
    x = torch.ones(1, requires_grad=True)

    def step() -> None:
        z = x
        for _ in range(200000):
            z = z + 1.0
        z.backward()

    return step


def _mlp(torch: Any, optimizer: Any) -> Step:
    nn = torch.nn
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4))
    opt = optimizer(net.parameters())
    x, target = torch.randn(32, 64), torch.randn(32, 4)

    def step() -> None:
        opt.zero_grad()
        ((net(x) - target) ** 2).mean().backward()
        opt.step()

    return step


@workload("program")
def mlp_sgd(torch: Any) -> Step:
    """A step of a small perceptron with momentum."""
    return _mlp(torch, lambda parameters: torch.optim.SGD(parameters, lr=1e-2, momentum=0.9))


@workload("program")
def mlp_adam(torch: Any) -> Step:
    """A step of the same with Adam."""
    return _mlp(torch, lambda parameters: torch.optim.Adam(parameters, lr=1e-3))


@workload("program")
def lstm(torch: Any) -> Step:
    """A layer of 128 units over 50 steps of 16 sequences, and its backward."""
    torch.manual_seed(0)
    module = torch.nn.LSTM(64, 128, batch_first=True)
    x = torch.randn(16, 50, 64)

    def step() -> None:
        module.zero_grad()
        module(x)[0].sum().backward()

    return step


def _block(torch: Any, width: int, heads: int) -> Any:
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.project, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            parts = self.project(self.before(x)).split(width, dim=2)
            q, k, v = (part.view(batch, length, heads, width // heads).transpose(1, 2) for part in parts)
            seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.join(seen.transpose(1, 2).contiguous().view(batch, length, width))
            return x + self.feed(self.between(x))

    return Block()


@workload("program")
def transformer(torch: Any) -> Step:
    """A step of a two-block causal language model, eight texts of 64 tokens, with AdamW."""
    torch.manual_seed(0)
    nn, words, width = torch.nn, 65, 128
    token, place = nn.Embedding(words, width), nn.Embedding(64, width)
    blocks = nn.Sequential(_block(torch, width, 4), _block(torch, width, 4), nn.LayerNorm(width))
    head = nn.Linear(width, words, bias=False)
    opt = torch.optim.AdamW([p for m in (token, place, blocks, head) for p in m.parameters()], lr=3e-4)
    text, following = torch.randint(0, words, (8, 64)), torch.randint(0, words, (8, 64))

    def step() -> None:
        opt.zero_grad()
        scores = head(blocks(token(text) + place(torch.arange(64))))
        nn.functional.cross_entropy(scores.view(-1, words), following.view(-1)).backward()
        opt.step()

    return step


def _residual_network(torch: Any) -> Any:
    """ResNet-18 (He et al. 2016, table 1) as torchvision lays it out."""
    nn = torch.nn

    class Residual(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inner: int, outer: int, stride: int) -> None:
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer)
            self.conv2, self.bn2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer)
            self.relu = nn.ReLU(inplace=True)
            self.shortcut = nn.Identity()
            if stride != 1 or inner != outer:
                self.shortcut = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

        def forward(self, x: Any) -> Any:
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            return self.relu(y + self.shortcut(x))

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inner = 64
    for outer, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Residual(inner, outer, stride), Residual(outer, outer, 1)]
        inner = outer
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(1), nn.Linear(512, 1000))


def _resnet(batch: int, size: int) -> Any:
    def build(torch: Any) -> Step:
        torch.manual_seed(0)
        net = _residual_network(torch)
        opt = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)
        x, y = torch.rand(batch, 3, size, size), torch.rand(batch, 1000)

        def step() -> None:
            loss = (net(x) - y).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()

        return step

    return build


for _batch, _size in ((1, 64), (8, 64), (4, 224)):
    workload("program", f"resnet18_{_batch}_{_size}")(_resnet(_batch, _size))
