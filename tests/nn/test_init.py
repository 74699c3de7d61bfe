"""Initial values: their distributions, shapes that are refused, what stays out of the graph."""

import math
import warnings

import pytest

import rushlight as torch
from rushlight.nn import init

ALL = ["uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_"]
ALL += ["kaiming_normal_", "orthogonal_", "eye_", "ones_", "zeros_"]


@pytest.mark.parametrize(
    ("name", "param", "gain"),
    [
        ("linear", None, 1),
        ("conv2d", None, 1),
        ("conv_transpose3d", None, 1),
        ("sigmoid", None, 1),
        ("tanh", None, 5 / 3),
        ("relu", None, math.sqrt(2)),
        ("selu", None, 0.75),
        ("leaky_relu", None, math.sqrt(2 / (1 + 0.01**2))),
        ("leaky_relu", 0.2, math.sqrt(2 / 1.04)),
        ("leaky_relu", 2, math.sqrt(2 / 5)),
    ],
)
def test_gain(name, param, gain):
    assert init.calculate_gain(name, param) == pytest.approx(gain, rel=1e-12)


@pytest.mark.parametrize("slope", [True, "0.1"])
def test_gain_refuses_slopes_that_are_no_numbers(slope):
    with pytest.raises(ValueError, match="not a valid number"):
        init.calculate_gain("leaky_relu", slope)
    with pytest.raises(ValueError, match="Unsupported nonlinearity softmax"):
        init.calculate_gain("softmax")


@pytest.mark.parametrize("name", ALL)
def test_every_function_fills_in_place_outside_of_the_graph(name):
    tensor = torch.full((4, 3), 7.0, requires_grad=True)
    assert getattr(init, name)(tensor) is tensor
    assert tensor.is_leaf and tensor.requires_grad and tensor.grad_fn is None
    assert not (tensor == 7).any()


@pytest.mark.parametrize(
    "name", ["uniform_", "normal_", "xavier_normal_", "kaiming_uniform_", "orthogonal_", "trunc_normal_"]
)
def test_a_generator_of_ones_own(name):
    def draw(seed):
        generator = torch.Generator().manual_seed(seed)
        return getattr(init, name)(torch.empty(20, 20), generator=generator)

    state = torch.get_rng_state()
    assert torch.equal(draw(1), draw(1)) and not torch.equal(draw(1), draw(2))
    assert torch.equal(torch.get_rng_state(), state)


def moments(tensor):
    return tensor.mean().item(), tensor.std().item(), tensor.abs().max().item()


def test_distributions():
    torch.manual_seed(0)
    weight = torch.empty(200, 100, dtype=torch.float64)
    n = weight.numel()
    for name, options, std in [
        ("uniform_", {"a": -2.0, "b": 2.0}, 4 / math.sqrt(12)),
        ("normal_", {"std": 3.0}, 3),
        ("xavier_uniform_", {"gain": 2.0}, 2 * math.sqrt(2 / 300)),
        ("xavier_normal_", {}, math.sqrt(2 / 300)),
        ("kaiming_uniform_", {"nonlinearity": "relu"}, math.sqrt(2 / 100)),
        ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "linear"}, math.sqrt(1 / 200)),
    ]:
        mean, found, _ = moments(getattr(init, name)(weight, **options))
        assert abs(mean) < 5 * std / math.sqrt(n), name
        assert found == pytest.approx(std, rel=0.03), name


def test_fans_of_convolutions():
    weight = torch.empty(6, 4, 3, 5)
    assert init._calculate_fan_in_and_fan_out(weight) == (60, 90)
    assert init._calculate_correct_fan(weight, "FAN_OUT") == 90


@pytest.mark.parametrize(
    ("mean", "std", "a", "b"),
    [(0, 1, -2, 2), (0.5, 2, -2, 2), (0, 1, 1, 2), (3, 1, -2, 2), (0, 1, -0.1, 0.1), (0, 1, 3, 9)],
)
def test_truncated_normal(mean, std, a, b):
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = init.trunc_normal_(torch.empty(4000, dtype=torch.float64), mean, std, a, b)
    assert x.min() >= a and x.max() <= b
    low, high = (a - mean) / std, (b - mean) / std

    def density(z):
        return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    mass = (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2))) / 2
    expected = mean + std * (density(low) - density(high)) / mass
    assert x.mean().item() == pytest.approx(expected, abs=0.1 * min(std, b - a))


def test_truncated_normal_warns_of_means_far_outside():
    with pytest.warns(UserWarning, match="mean is more than 2 std from"):
        init.trunc_normal_(torch.empty(2), 5.0)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (2, 3, 4)])
def test_orthogonal(shape):
    torch.manual_seed(0)
    x = init.orthogonal_(torch.empty(*shape, dtype=torch.float64), gain=2.0).reshape(shape[0], -1)
    small = x @ x.T if x.shape[0] <= x.shape[1] else x.T @ x
    assert torch.allclose(small, 4 * torch.eye(small.shape[0], dtype=torch.float64), atol=1e-10)


def test_orthogonal_of_nothing():
    assert init.orthogonal_(torch.empty(0, 3)).shape == (0, 3)


def test_sparse():
    torch.manual_seed(0)
    x = init.sparse_(torch.empty(10, 6), sparsity=0.35, std=2.0)
    assert ((x == 0).sum(0) == 4).all()
    assert 0.5 < x[x != 0].std().item() < 4


def test_eye_and_constants():
    assert init.eye_(torch.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert init.constant_(torch.empty(2), 3.5).tolist() == [3.5, 3.5]
    assert init.ones_(torch.empty(2, dtype=torch.int64)).tolist() == [1, 1]


@pytest.mark.parametrize(("shape", "groups"), [((4, 4, 3), 1), ((4, 2, 3, 3), 2), ((6, 3, 1, 3, 5), 2), ((2, 5, 3), 1)])
def test_dirac_passes_channels_on(shape, groups):
    from rushlight.nn import functional as F

    dims = len(shape) - 2
    weight = init.dirac_(torch.full(shape, 9.0), groups)
    assert weight.sum().item() == groups * min(shape[0] // groups, shape[1])
    x = torch.rand(1, shape[1] * groups, *[7] * dims)
    convolve = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]
    y = convolve(x, weight, padding=tuple(k // 2 for k in shape[2:]), groups=groups)
    per_group = shape[0] // groups
    for channel in range(shape[0]):
        group, place = divmod(channel, per_group)
        if place < shape[1]:
            assert torch.equal(y[0, channel], x[0, group * shape[1] + place])
        else:
            assert not y[0, channel].any()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: init.eye_(torch.empty(2)), "Only tensors with 2 dimensions are supported"),
        (lambda: init.dirac_(torch.empty(2, 2)), "Only tensors with 3, 4, or 5 dimensions are supported"),
        (lambda: init.dirac_(torch.empty(3, 2, 2), 2), "dim 0 must be divisible by groups"),
        (lambda: init.xavier_uniform_(torch.empty(3)), "fewer than 2 dimensions"),
        (lambda: init.kaiming_normal_(torch.empty(3)), "fewer than 2 dimensions"),
        (lambda: init.kaiming_normal_(torch.empty(3, 3), mode="fan"), "Mode fan not supported"),
        (lambda: init.orthogonal_(torch.empty(3)), "Only tensors with 2 or more dimensions are supported"),
        (lambda: init.sparse_(torch.empty(3), 0.1), "Only tensors with 2 dimensions are supported"),
    ],
)
def test_shapes_that_are_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("name", ["kaiming_uniform_", "kaiming_normal_"])
def test_nothing_to_fill(name):
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        assert getattr(init, name)(torch.empty(0, 3)).shape == (0, 3)


def test_old_names_warn():
    for name in ("uniform", "xavier_normal", "constant", "sparse", "orthogonal", "eye"):
        arguments = {"constant": (3.0,), "sparse": (0.5,)}.get(name, ())
        tensor = torch.empty(3, 3)
        with pytest.warns(FutureWarning, match=f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`."):
            assert getattr(init, name)(tensor, *arguments) is tensor
