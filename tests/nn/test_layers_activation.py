"""Activations against their formulas in plain Python, in place and with derivatives; dropout of every kind."""

import math

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

POINTS = [-30.0, -4.0, -3.0, -1.0, -0.5, -0.25, 0.25, 0.5, 0.75, 1.0, 2.0, 3.5, 6.5, 30.0]


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805

FORMULAS = [
    (lambda: nn.Threshold(0.6, 7.0), lambda x: x if x > 0.6 else 7.0),
    (lambda: nn.ReLU(), lambda x: max(x, 0.0)),
    (lambda: nn.ReLU6(), lambda x: min(max(x, 0.0), 6.0)),
    (lambda: nn.Hardtanh(-0.7, 1.2), lambda x: min(max(x, -0.7), 1.2)),
    (lambda: nn.Sigmoid(), sigmoid),
    (lambda: nn.Hardsigmoid(), lambda x: min(max(x / 6 + 0.5, 0.0), 1.0)),
    (lambda: nn.Tanh(), math.tanh),
    (lambda: nn.SiLU(), lambda x: x * sigmoid(x)),
    (lambda: nn.Mish(), lambda x: x * math.tanh(math.log1p(math.exp(x)))),
    (lambda: nn.Hardswish(), lambda x: x * min(max(x + 3, 0.0), 6.0) / 6),
    (lambda: nn.ELU(0.7), lambda x: x if x > 0 else 0.7 * math.expm1(x)),
    (lambda: nn.CELU(0.7), lambda x: max(x, 0.0) + min(0.0, 0.7 * math.expm1(x / 0.7))),
    (lambda: nn.SELU(), lambda x: SELU_SCALE * (x if x > 0 else SELU_ALPHA * math.expm1(x))),
    (lambda: nn.GELU(), lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2)))),
    (lambda: nn.GELU("tanh"), lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    (lambda: nn.Hardshrink(0.6), lambda x: x if abs(x) > 0.6 else 0.0),
    (lambda: nn.Softshrink(0.6), lambda x: x - math.copysign(0.6, x) if abs(x) > 0.6 else 0.0),
    (lambda: nn.LeakyReLU(0.2), lambda x: x if x > 0 else 0.2 * x),
    (lambda: nn.LogSigmoid(), lambda x: min(x, 0.0) - math.log1p(math.exp(-abs(x)))),
    (lambda: nn.Softplus(2.0, 3.0), lambda x: x if 2 * x > 3 else math.log1p(math.exp(2 * x)) / 2),
    (lambda: nn.Softsign(), lambda x: x / (1 + abs(x))),
    (lambda: nn.Tanhshrink(), lambda x: x - math.tanh(x)),
    (lambda: nn.PReLU(init=0.3, dtype=torch.float64), lambda x: x if x > 0 else 0.3 * x),
    (lambda: nn.RReLU(0.1, 0.3).eval(), lambda x: x if x > 0 else 0.2 * x),
]
IDS = [repr(make()) for make, _ in FORMULAS]


@pytest.mark.parametrize(("make", "formula"), FORMULAS, ids=IDS)
def test_values(make, formula):
    x = torch.tensor(POINTS, dtype=torch.float64)
    expected = torch.tensor([formula(p) for p in POINTS], dtype=torch.float64)
    assert torch.allclose(make()(x), expected, rtol=1e-12, atol=1e-15)
    assert make()(x.reshape(2, 1, 7).transpose(0, 2)).shape == (7, 1, 2)
    assert make()(torch.empty(0, 3, dtype=torch.float64)).shape == (0, 3)


@pytest.mark.parametrize(("make", "formula"), FORMULAS, ids=IDS)
def test_derivatives(make, formula):
    points = [p for p in POINTS if abs(p) < 10 and p != -3]  # where Hardsigmoid and Hardswish have kinks
    x = torch.tensor(points, dtype=torch.float64, requires_grad=True)
    make()(x).sum().backward()
    step = 1e-6
    for p, found in zip(points, x.grad.tolist(), strict=True):
        slope = (formula(p + step) - formula(p - step)) / (2 * step)
        assert found == pytest.approx(slope, rel=1e-5, abs=1e-8), p


IN_PLACE = ["ReLU", "ReLU6", "Hardtanh", "Hardsigmoid", "SiLU", "Mish", "Hardswish", "ELU", "CELU", "SELU", "LeakyReLU"]


@pytest.mark.parametrize("name", [*IN_PLACE, "RReLU"])
def test_in_place_forms(name):
    x = torch.tensor(POINTS)
    expected = getattr(nn, name)().eval()(x.clone())
    result = getattr(nn, name)(inplace=True).eval()(x)
    assert result is x and torch.equal(x, expected)


def test_thresholds_in_place():
    x = torch.tensor(POINTS)
    assert nn.Threshold(0.5, 2.0, True)(x) is x and x.min().item() == 0.75


@pytest.mark.parametrize(("make", "formula"), FORMULAS, ids=IDS)
def test_not_a_number_stays_one(make, formula):
    x = torch.tensor([math.nan], dtype=torch.float64)
    result = make()(x)
    assert math.isnan(result.item()) or "Hardshrink" in repr(make()) or "Threshold" in repr(make())


def test_prelu_per_channel():
    layer = nn.PReLU(3)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([0.1, 0.2, 0.3]))
    x = -torch.ones(2, 3, 2)
    assert torch.allclose(layer(x), -layer.weight.reshape(1, 3, 1).expand(2, 3, 2))
    layer(x).sum().backward()
    assert layer.weight.grad.tolist() == [-4.0] * 3


def test_gated_halves():
    x = torch.randn(4, 6, dtype=torch.float64)
    a, b = x[:, :3], x[:, 3:]
    assert torch.allclose(nn.GLU()(x), a * torch.sigmoid(b))
    assert torch.allclose(nn.GLU(0)(x), x[:2] * torch.sigmoid(x[2:]))
    with pytest.raises(RuntimeError, match="Halving dimension must be even, but dimension 0 is size 3"):
        F.glu(torch.ones(3))
    with pytest.raises(RuntimeError, match="glu does not support scalars"):
        F.glu(torch.tensor(1.0))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.Hardtanh(1.0, -1.0), AssertionError, "max_val .-1.0. must be greater than min_val .1.0."),
        (lambda: F.hardtanh(torch.ones(1), 1.0, -1.0), ValueError, "min_val cannot be greater than max_val"),
        (lambda: F.rrelu(torch.ones(1), 0.5, 0.1), RuntimeError, "Lower bound should be less than or equal"),
        (lambda: F.rrelu(torch.ones(1), 0.5, math.inf), RuntimeError, "upper bound must be finite"),
        (lambda: F.rrelu(torch.ones(1), -math.inf, 1.0, True), RuntimeError, "lower bound must be finite"),
        (lambda: nn.Softmax2d()(torch.ones(2, 2)), ValueError, "expected input to be 3D or 4D, got 2D instead"),
        (lambda: nn.Sigmoid(1), TypeError, r"Sigmoid.__init__\(\) takes 1 positional argument but 2 were given"),
    ],
)
def test_what_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_bounds_of_hardtanh_had_other_names():
    with pytest.warns(FutureWarning, match="keyword argument `min_value` is deprecated and renamed to `min_val`"):
        assert nn.Hardtanh(min_value=-2).min_val == -2


def test_random_slopes():
    torch.manual_seed(0)
    x = torch.full((1000,), -1.0, requires_grad=True)
    y = nn.RReLU(0.2, 0.4)(x)
    slopes = -y.detach()
    assert slopes.min() >= 0.2 and slopes.max() <= 0.4 and slopes.std() > 0.03
    y.sum().backward()
    assert torch.allclose(x.grad, slopes)
    positive = torch.rand(10) + 0.1
    assert torch.equal(nn.RReLU()(positive), positive)
    changed = x.detach().clone()
    assert F.rrelu_(changed, 0.2, 0.4, True) is changed and (changed < 0).all() and (changed > -0.41).all()


# Softmax ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax(dim):
    x = torch.randn(3, 4, dtype=torch.float64)
    powers = x.exp()
    assert torch.allclose(nn.Softmax(dim)(x), powers / powers.sum(dim, keepdim=True))
    assert torch.allclose(nn.LogSoftmax(dim)(x), (powers / powers.sum(dim, keepdim=True)).log())
    assert torch.allclose(nn.Softmin(dim)(x), nn.Softmax(dim)(-x))
    assert F.softmax(x.float(), dim, dtype=torch.float64).dtype == torch.float64


@pytest.mark.parametrize(("shape", "dim"), [((3,), 0), ((2, 3), 1), ((2, 3, 4), 0), ((2, 3, 4, 5), 1)])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_a_dimension_is_chosen_with_a_warning(name, shape, dim):
    x = torch.randn(*shape)
    with pytest.warns(UserWarning, match=f"Implicit dimension choice for {name} has been deprecated"):
        assert torch.equal(getattr(F, name)(x), getattr(F, name)(x, dim))


def test_softmax_over_channels():
    x = torch.randn(2, 3, 4, 5)
    assert torch.equal(nn.Softmax2d()(x), F.softmax(x, 1))
    assert torch.equal(nn.Softmax2d()(x[0]), F.softmax(x[0], 0))


# Dropout ----------------------------------------------------------------------------------------------------------

KINDS = [
    (nn.Dropout, (200, 50)),
    (nn.Dropout1d, (200, 50, 3)),
    (nn.Dropout2d, (200, 50, 3, 2)),
    (nn.Dropout3d, (200, 50, 1, 2, 2)),
    (nn.AlphaDropout, (200, 50)),
    (nn.FeatureAlphaDropout, (200, 50, 3)),
]


@pytest.mark.parametrize(("kind", "shape"), KINDS)
def test_dropout(kind, shape):
    torch.manual_seed(0)
    x = torch.ones(*shape, requires_grad=True)
    layer = kind(0.3)
    y = layer(x)
    values = sorted(set(y.detach().flatten().tolist()))
    assert len(values) == 2
    # Zero is kept as zero by plain dropout; the alpha kinds move it to the affine image of SELU's floor.
    dropped = (y == values[0]).double()
    assert dropped.mean().item() == pytest.approx(0.3, abs=0.02)
    if "Alpha" not in kind.__name__:
        assert values[0] == 0 and values[1] == pytest.approx(1 / 0.7)
    if len(shape) > 2:
        assert torch.equal(dropped.flatten(2).amin(2), dropped.flatten(2).amax(2)), "whole channels"
    y.sum().backward()
    assert torch.equal(x.grad == 0, y == values[0])
    assert layer.eval()(x) is x
    assert kind(0.0)(x) is x


@pytest.mark.parametrize(("kind", "shape"), KINDS)
def test_everything_is_dropped_at_one(kind, shape):
    assert not kind(1.0)(torch.ones(*shape)).any()


def test_alpha_dropout_keeps_mean_and_variance():
    torch.manual_seed(0)
    x = torch.randn(200000, dtype=torch.float64)
    y = nn.AlphaDropout(0.4)(x)
    assert abs(y.mean().item()) < 0.01 and abs(y.std().item() - 1) < 0.01


@pytest.mark.parametrize(
    "name", ["dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"]
)
def test_dropout_in_place(name):
    shape = (2, 3, 4, 5, 6)[: {"dropout1d": 3, "dropout2d": 4}.get(name, 5)]
    x = torch.ones(*shape)
    torch.manual_seed(0)
    expected = getattr(F, name)(x, 0.5, True)
    torch.manual_seed(0)
    assert getattr(F, name)(x, 0.5, True, inplace=True) is x and torch.equal(x, expected)


def test_channels_without_a_batch():
    torch.manual_seed(0)
    y = F.dropout1d(torch.ones(100, 5), 0.5)
    assert set(y.amin(1).tolist()) == {0.0, 2.0} and torch.equal(y.amin(1), y.amax(1))
    x = torch.ones(100, 5)
    assert F.dropout1d(x, 0.5, inplace=True) is x and torch.equal(x.amin(1), x.amax(1))


@pytest.mark.parametrize("p", [-0.1, 1.1, 2])
def test_probabilities(p):
    text = f"dropout probability has to be between 0 and 1, but got {p}"
    for kind, _ in KINDS:
        with pytest.raises(ValueError, match=text):
            kind(p)
    for name in ("dropout", "dropout2d", "alpha_dropout", "feature_alpha_dropout"):
        with pytest.raises(ValueError, match=text):
            getattr(F, name)(torch.ones(2, 2, 2, 2), p)


def test_dimensions_of_channel_dropout():
    with pytest.raises(RuntimeError, match="dropout1d: Expected 2D or 3D input, but received a 4D input"):
        F.dropout1d(torch.ones(1, 1, 1, 1))
    with pytest.warns(UserWarning, match="dropout2d: Received a 5-D input to dropout2d"):
        F.dropout2d(torch.ones(1, 1, 1, 1, 1))
    with pytest.warns(UserWarning, match="dropout2d: Received a 3D input to dropout2d and assuming"):
        F.dropout2d(torch.ones(1, 1, 1))
    with pytest.warns(UserWarning, match="dropout3d: Received a 3-D input to dropout3d"):
        F.dropout3d(torch.ones(1, 1, 1))
    with pytest.raises(RuntimeError, match="Feature dropout requires at least 2 dimensions in the input"):
        F.feature_alpha_dropout(torch.ones(3), 0.5, True)
