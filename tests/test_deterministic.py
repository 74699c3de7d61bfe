"""Under deterministic algorithms a training step gives the same bits whatever the number of threads."""

import pytest

import rushlight as torch
from rushlight import nn


@pytest.fixture(autouse=True)
def deterministic():
    threads = torch.get_num_threads()
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_num_threads(threads)


class Attention(nn.MultiheadAttention):
    def forward(self, x):
        return super().forward(x, x, x, need_weights=False)[0]


class Network(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(3, 32, 7, stride=2, padding=3),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(3, 2),
            nn.Conv2d(32, 64, 3),
            nn.GroupNorm(8, 64),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(64, 10),
        )


STEPS = {
    "conv": (lambda: nn.Conv2d(64, 64, 3, padding=1), (8, 64, 16, 16)),
    "conv_grouped": (lambda: nn.Conv2d(24, 136, 3, stride=2, padding=1, groups=2), (7, 24, 36, 36)),
    "conv_odd": (lambda: nn.Conv2d(29, 48, 3, stride=2), (2, 29, 14, 14)),
    "conv_transpose": (lambda: nn.ConvTranspose2d(29, 31, 5), (4, 29, 13, 13)),
    "linear": (lambda: nn.Linear(1000, 513), (100, 1000)),
    "linear_narrow": (lambda: nn.Linear(300, 515), (16, 300)),
    "lstm": (lambda: nn.LSTM(100, 131), (20, 33, 100)),
    "attention": (lambda: Attention(96, 3, batch_first=True), (5, 130, 96)),
    "network": (Network, (6, 3, 64, 64)),
}


def gradients(make, shape, threads):
    """Result, gradients of input and parameters, and the parameters after a step."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model, x = make(), torch.randn(*shape).requires_grad_()
    result = model(x)
    result = result[0] if isinstance(result, tuple) else result
    result.square().mean().backward()
    found = [result.detach(), x.grad, *[p.grad for p in model.parameters()]]
    torch.optim.Adam(model.parameters()).step()
    return found + [p.detach() for p in model.parameters()]


@pytest.mark.parametrize("name", STEPS)
def test_bits_do_not_depend_on_threads(name):
    make, shape = STEPS[name]
    one = gradients(make, shape, 1)
    for threads in (2, 3):
        assert [torch.equal(a, b) for a, b in zip(one, gradients(make, shape, threads), strict=True)] == [True] * len(
            one
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("sizes", [(100, 100, 513), (513, 100, 100), (3, 1000, 1030), (700, 700, 1), (64, 64, 64)])
def test_products_do_not_depend_on_threads(sizes, dtype):
    rows, inner, columns = sizes
    a, b = torch.randn(rows, inner, dtype=dtype), torch.randn(columns, inner, dtype=dtype)
    found = []
    for threads in (1, 2, 3, 5):
        torch.set_num_threads(threads)
        found.append(a @ b.t())
    assert all(torch.equal(found[0], other) for other in found[1:])


def test_convolutions_leave_the_library():
    """Its sums depend on how its threads share the work."""

    def laid():
        return torch._C._layout_stats()["laid"]

    def convolve():
        torch.nn.functional.conv2d(torch.ones(1, 19, 9, 9), torch.ones(23, 19, 3, 3))

    before = laid()
    convolve()
    with torch.backends.mkldnn.flags(enabled=True, deterministic=True):
        assert torch.backends.mkldnn.deterministic
        torch.use_deterministic_algorithms(False)
        convolve()
    assert not torch.backends.mkldnn.deterministic
    assert laid() == before
    if torch.backends.mkldnn.is_available():
        convolve()
        assert laid() > before
