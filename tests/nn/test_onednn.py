"""Convolutions by oneDNN against those by our own kernels, and the layouts that their numbers lie in."""

import copy
import io
import pickle
import threading

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

mkldnn = torch.backends.mkldnn
pytestmark = pytest.mark.skipif(not mkldnn.is_available(), reason="the core was built without oneDNN")

Case = tuple[int, tuple[int, ...], int, int, dict[str, object]]

# dimensions, size of the input, output channels, kernel, options
CASES: list[Case] = [
    (1, (3, 6, 17), 8, 3, {"padding": 1}),
    (1, (2, 4, 9), 6, 4, {"stride": 3, "dilation": 2}),
    (2, (2, 3, 17, 13), 16, 7, {"stride": 2, "padding": 3}),
    (2, (3, 16, 9, 10), 32, 3, {"padding": 1}),
    (2, (1, 32, 8, 8), 16, 3, {"stride": 2, "padding": 1}),
    (2, (2, 32, 7, 5), 48, 1, {}),
    (2, (2, 32, 8, 8), 48, 1, {"stride": 2}),
    (2, (2, 16, 6, 6), 32, 3, {"groups": 4, "padding": 2, "dilation": 2}),
    (2, (2, 24, 6, 7), 24, 3, {"groups": 24, "padding": 1}),
    (2, (2, 5, 6, 7), 10, 3, {"groups": 5}),
    (2, (2, 16, 3, 3), 16, 3, {}),
    (2, (2, 7, 5, 6), 5, (2, 3), {"stride": (2, 1), "padding": (0, 2)}),
    (2, (1, 1, 5, 5), 1, 3, {}),
    (3, (2, 16, 4, 5, 6), 16, 3, {"padding": 1}),
    (3, (1, 2, 5, 6, 4), 3, 2, {"stride": 2, "dilation": 2, "padding": 1}),
]


def gradients(function, case: Case, transposed: bool = False) -> list[np.ndarray]:
    n, size, out, kernel, options = case
    torch.manual_seed(0)
    kernel = kernel if isinstance(kernel, tuple) else (kernel,) * n
    groups = int(options.get("groups", 1))
    weight_size = (size[1], out // groups) if transposed else (out, size[1] // groups)
    x = torch.randn(*size, requires_grad=True)
    w = torch.randn(*weight_size, *kernel, requires_grad=True)
    b = torch.randn(out, requires_grad=True)
    y = function(x, w, b, **options)
    (y * torch.randn(y.shape)).sum().backward()
    return [t.detach().numpy() for t in (y, x.grad, w.grad, b.grad)]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_convolution_agrees_with_our_own_kernels(case, transposed):
    function = getattr(F, f"conv_transpose{case[0]}d" if transposed else f"conv{case[0]}d")
    found = gradients(function, case, transposed)
    with mkldnn.flags(enabled=False):
        expected = gradients(function, case, transposed)
    for f, e in zip(found, expected):
        np.testing.assert_allclose(f, e, rtol=1e-4, atol=1e-4 * max(1.0, float(np.abs(e).max())))


def test_switch_is_the_cores_own():
    assert mkldnn.enabled
    with mkldnn.flags(enabled=False):
        assert not mkldnn.enabled
        before = torch._C._layout_stats()["laid"]
        F.conv2d(torch.randn(2, 16, 8, 8), torch.randn(16, 16, 3, 3))
        assert torch._C._layout_stats()["laid"] == before
    assert mkldnn.enabled
    mkldnn.enabled = False
    assert not torch._C._onednn_enabled()
    mkldnn.enabled = True
    assert torch._C._onednn_enabled()


def laid_pair(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """A convolution's result in oneDNN's layout, and the same numbers in rows."""
    torch.manual_seed(seed)
    x, w = torch.randn(2, 16, 6, 5), torch.randn(32, 16, 3, 3)
    before = torch._C._layout_stats()["laid"]
    y = F.conv2d(x, w, padding=1)
    assert torch._C._layout_stats()["laid"] == before + 1
    rows = torch.from_numpy(F.conv2d(x, w, padding=1).numpy().copy())
    return y, rows


READERS = {
    "numpy": lambda t: t.numpy(),
    "item": lambda t: t[1, 3, 2, 4].item(),
    "list": lambda t: t.tolist(),
    "view": lambda t: t.view(2, 8, -1),
    "transpose": lambda t: t.transpose(1, 3).contiguous(),
    "slice": lambda t: t[:, 2:9:3, 1:],
    "narrow": lambda t: t[1],
    "flatten": lambda t: t.flatten(1) @ torch.ones(32 * 30, 1),
    "expand": lambda t: t[:1].expand(3, 32, 6, 5) + t[1:],
    "relu": lambda t: t.relu(),
    "number": lambda t: (2 * t + 1) / 3,
    "pair": lambda t: t * t + t,
    "compare": lambda t: t > 0,
    "where": lambda t: torch.where(t > 0, t, -t),
    "broadcast": lambda t: t + torch.arange(32.0).view(32, 1, 1),
    "own view": lambda t: t + t.view(32, 2, 6, 5).view(2, 32, 6, 5),
    "sum": lambda t: t.sum(),
    "sum of space": lambda t: t.sum((2, 3)),
    "sum of all but channels": lambda t: t.sum((0, 2, 3)),
    "mean of space": lambda t: t.mean((2, 3), keepdim=True),
    "mean of width": lambda t: t.mean(3),
    "max": lambda t: t.amax((1, 2)),
    "max_pool": lambda t: F.max_pool2d(t, 3, 2, 1),
    "max_pool places": lambda t: F.max_pool2d(t, 2, return_indices=True)[1],
    "max_pool dilated": lambda t: F.max_pool2d(t, 2, 1, 1, dilation=2),
    "avg_pool": lambda t: F.avg_pool2d(t, 2),
    "adaptive": lambda t: F.adaptive_avg_pool2d(t, 1),
    "batch_norm": lambda t: F.batch_norm(t, None, None, training=True),
    "group_norm": lambda t: F.group_norm(t, 4),
    "interpolate": lambda t: F.interpolate(t, scale_factor=2),
    "cat": lambda t: torch.cat([t, t], 1),
    "clone": lambda t: t.clone(),
    "double": lambda t: t.double(),
    "channels_last": lambda t: t.contiguous(memory_format=torch.channels_last),
    "pickle": lambda t: pickle.loads(pickle.dumps(t)),
    "deepcopy": lambda t: copy.deepcopy(t),
    "storage": lambda t: torch.tensor([t.untyped_storage().data_ptr() - t.data_ptr(), t.untyped_storage().nbytes()]),
    "as_strided": lambda t: t.as_strided((5, 3), (7, 2), 11),
    "index": lambda t: t[torch.tensor([1, 0]), torch.tensor([3, 30])],
    "memoryview": lambda t: np.asarray(memoryview(t.numpy())),
}


@pytest.mark.parametrize("name", READERS)
def test_a_layout_cannot_be_seen(name):
    y, rows = laid_pair()
    assert y.stride() == rows.stride() and y.is_contiguous()
    found, expected = READERS[name](y), READERS[name](rows)
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(y.numpy(), rows.numpy())


def test_data_ptr_is_stable_and_plain():
    y, rows = laid_pair()
    view = y.view(-1)
    address = y.data_ptr()
    F.conv2d(y, torch.randn(8, 32, 1, 1))
    y.relu()
    assert y.data_ptr() == address == view.data_ptr()
    np.testing.assert_array_equal(view.numpy(), rows.numpy().ravel())


CHANGES = {
    "add number": lambda t: t.add_(1),
    "relu": lambda t: t.relu_(),
    "scaled": lambda t: t.mul_(t),
    "add rows": lambda t: t.add_(torch.arange(5.0)),
    "fill": lambda t: t.fill_(3),
    "zero": lambda t: t.zero_(),
    "slice": lambda t: t[:, 1:3].mul_(2),
    "assign": lambda t: t.__setitem__((0, 1), 7.0),
    "copy": lambda t: t.copy_(torch.ones(2, 32, 6, 5)),
    "numpy": lambda t: t.numpy().__imul__(2),
    "resize": lambda t: t.resize_(3, 4),
    "set": lambda t: t.data.add_(1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_in_place(name):
    y, rows = laid_pair()
    alias, rows_alias = y.view(2, -1), rows.view(2, -1)
    version = y._version
    CHANGES[name](y)
    CHANGES[name](rows)
    np.testing.assert_array_equal(y.numpy(), rows.numpy())
    if name != "resize":
        np.testing.assert_array_equal(alias.numpy(), rows_alias.numpy())
    assert (y._version > version) == (name not in ("numpy", "set"))


def test_large_results_stay_pending_in_a_layout():
    torch.manual_seed(0)
    x = torch.randn(4, 16, 40, 40)
    y = F.conv2d(x, torch.randn(32, 16, 3, 3), padding=1)
    with mkldnn.flags(enabled=False):
        plain = F.conv2d(x, torch.ones(32, 16, 3, 3), padding=1)
    z = (y * 2 + 1).relu() - y
    rows = torch.from_numpy(y.clone().numpy().copy())
    mixed = z + plain  # one in a layout, one in rows
    expected = (rows * 2 + 1).relu() - rows
    np.testing.assert_array_equal(z.numpy(), expected.numpy())
    np.testing.assert_allclose(mixed.numpy(), (expected + plain).numpy(), rtol=1e-6)


def test_pending_work_survives_a_change_of_what_it_reads():
    y, _ = laid_pair()
    y = F.conv2d(torch.randn(2, 16, 64, 64), torch.randn(32, 16, 3, 3), padding=1)
    z = y * 3
    expected = y.clone().numpy() * 3
    y.view(-1)[0].item()  # brings y into rows while z is pending
    np.testing.assert_array_equal(z.numpy(), expected)


class Chain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32)
        self.conv2, self.bn2 = nn.Conv2d(32, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32)
        self.relu = nn.ReLU(inplace=True)
        self.pool = nn.MaxPool2d(3, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.relu(self.bn1(self.conv1(x))))
        return F.adaptive_avg_pool2d(self.relu(self.bn2(self.conv2(x)) + x), 1)


def train(steps: int, batch: int = 4) -> tuple[nn.Module, list[float]]:
    torch.manual_seed(0)
    model = Chain()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    x, losses = torch.randn(batch, 16, 12, 12), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses


def test_a_chain_is_not_rearranged():
    model, _ = train(2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x = torch.randn(4, 16, 12, 12)

    def step() -> int:
        before = torch._C._layout_stats()["rearranged"]
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        return torch._C._layout_stats()["rearranged"] - before

    step()
    assert step() == 1  # the gradient of the mean, which is one number for each channel


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_anomaly_mode_looks_at_numbers_as_they_lie():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 16, 3, padding=1))
    x = torch.randn(2, 16, 8, 8)

    def rearrangements():
        before = torch._C._layout_stats()["rearranged"]
        net(x).square().mean().backward()
        return torch._C._layout_stats()["rearranged"] - before

    rearrangements()
    plain = rearrangements()
    with torch.autograd.detect_anomaly():
        assert rearrangements() <= plain
    y = net[0](x)
    y.register_hook(lambda g: torch.where(g > 0, float("nan"), g))
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="'ConvolutionBackward0' returned nan"):
        net[2](y).sum().backward()


def test_training_agrees_with_our_own_kernels():
    model, losses = train(6)
    with mkldnn.flags(enabled=False):
        other, expected = train(6)
    np.testing.assert_allclose(losses, expected, rtol=1e-3)
    for (name, a), b in zip(model.state_dict().items(), other.state_dict().values()):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-2, atol=1e-3, err_msg=name)


def test_laid_parameters_are_saved_plain():
    model, _ = train(2)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other = Chain()
    other.load_state_dict(torch.load(file))
    x = torch.randn(2, 16, 8, 8)
    np.testing.assert_allclose(model.eval()(x).detach().numpy(), other.eval()(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    same = copy.deepcopy(model)
    np.testing.assert_array_equal(same.conv1.weight.detach().numpy(), model.conv1.weight.detach().numpy())


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "Adagrad", "SGD"])
def test_optimizers_follow_the_layout_of_weights(name):
    def run() -> list[np.ndarray]:
        torch.manual_seed(1)
        conv = nn.Conv2d(16, 16, 3)
        optimizer = getattr(torch.optim, name)(conv.parameters(), lr=0.01)
        x = torch.randn(2, 16, 6, 6)
        for i in range(4):
            optimizer.zero_grad()
            (conv(x) ** 2).mean().backward()
            if i == 2:
                conv.weight.grad.clamp_(-1, 1)
                conv.weight.sum().item()  # somebody looks
            optimizer.step()
        state = optimizer.state[conv.weight]
        return [conv.weight.detach().numpy()] + [v.numpy() for v in state.values() if v is not None and v.numel() > 1]

    found = run()
    with mkldnn.flags(enabled=False):
        expected = run()
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(f, e, rtol=2e-3, atol=2e-4)


def test_shared_parameters_in_one_step():
    torch.manual_seed(0)
    conv = nn.Conv2d(16, 16, 3, bias=False)
    tied = nn.Parameter(conv.weight.detach())  # another tensor over the same memory
    optimizer = torch.optim.SGD([conv.weight, tied], lr=0.1, momentum=0.9)
    before = conv.weight.detach().clone().numpy()
    x = torch.randn(2, 16, 6, 6)
    (conv(x).sum() + F.conv2d(x, tied).sum()).backward()
    gradient = conv.weight.grad.clone().numpy()
    optimizer.step()
    np.testing.assert_allclose(conv.weight.detach().numpy(), before - 0.2 * gradient, rtol=1e-4, atol=1e-4)


def test_second_derivatives():
    def run() -> np.ndarray:
        torch.manual_seed(0)
        x, w = torch.randn(2, 16, 6, 6, requires_grad=True), torch.randn(16, 16, 3, 3, requires_grad=True)
        y = F.conv2d(x, w, padding=1).relu()
        (g,) = torch.autograd.grad((y**2).sum(), x, create_graph=True)
        return torch.autograd.grad((g**2).sum(), w)[0].numpy()

    found = run()
    with mkldnn.flags(enabled=False):
        expected = run()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * float(np.abs(expected).max()))


def test_plans_are_bounded():
    most = torch._C._layout_stats()["most_plans"]
    assert 0 < most <= 1024
    w = torch.randn(1, 1, 1, 1)
    for n in range(1, most + 20):
        F.conv2d(torch.ones(1, 1, 1, n), w)
    assert torch._C._layout_stats()["plans"] <= most


def test_results_do_not_depend_on_the_calling_thread():
    model, _ = train(1)
    model.eval()
    x = torch.randn(3, 16, 12, 12)
    expected = model(x).detach().numpy()
    found: list[np.ndarray] = []

    def work() -> None:
        for _ in range(5):
            found.append(model(x).detach().numpy())
            model.conv1.weight.detach().sum().item()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 20
    for f in found:
        np.testing.assert_array_equal(f, expected)


def test_channels_last_strides_are_read_as_they_are():
    torch.manual_seed(0)
    x, w = torch.randn(2, 16, 8, 8), torch.randn(16, 16, 3, 3)
    expected = F.conv2d(x, w).numpy()
    before = torch._C._layout_stats()["in_library"]
    F.conv2d(x, w)
    in_rows = torch._C._layout_stats()["in_library"] - before
    last = x.contiguous(memory_format=torch.channels_last)
    before = torch._C._layout_stats()["in_library"]
    np.testing.assert_allclose(F.conv2d(last, w).numpy(), expected, rtol=1e-5, atol=1e-5)
    assert torch._C._layout_stats()["in_library"] - before == in_rows - 1


def test_empty_and_odd_inputs():
    assert F.conv2d(torch.randn(0, 16, 8, 8), torch.randn(16, 16, 3, 3)).shape == (0, 16, 6, 6)
    with pytest.raises(RuntimeError, match="Kernel size can't be greater than actual input size"):
        F.conv2d(torch.randn(1, 16, 2, 2), torch.randn(16, 16, 3, 3))
    weights = torch.randn(16, 16, 4, 4)
    np.testing.assert_allclose(
        F.conv2d(weights, weights).numpy(),
        F.conv2d(weights.clone(), weights.clone()).numpy(),
        rtol=1e-5,
        atol=1e-4,
    )
