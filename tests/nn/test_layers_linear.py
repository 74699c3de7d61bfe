"""Linear and bilinear layers, flattening, and layers that learn their sizes from the first input."""

import copy
import pickle

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 0, 3), (4, 1, 2, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_is_a_product_and_a_sum(shape, bias):
    layer = nn.Linear(3, 5, bias=bias).double()
    x = torch.randn(*shape, dtype=torch.float64)
    expected = (x.unsqueeze(-2) * layer.weight).sum(-1)
    assert torch.allclose(layer(x), expected + layer.bias if bias else expected)
    assert layer(x).shape == (*shape[:-1], 5)


def test_linear_without_inputs_gives_its_bias():
    with pytest.warns(UserWarning, match="zero-element"):
        layer = nn.Linear(0, 3)
    assert torch.equal(layer(torch.ones(2, 0)), layer.bias.expand(2, 3))
    assert layer.bias.tolist() == [0.0] * 3


def test_identity_takes_anything():
    x = torch.ones(2)
    assert nn.Identity(3, a=4)(x) is x


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0,)])
@pytest.mark.parametrize("bias", [True, False])
def test_bilinear_is_a_double_sum(shape, bias):
    layer = nn.Bilinear(2, 3, 4, bias=bias).double()
    x, y = torch.randn(*shape, 2, dtype=torch.float64), torch.randn(*shape, 3, dtype=torch.float64)
    expected = (x[..., None, :, None] * layer.weight * y[..., None, None, :]).sum((-1, -2))
    assert torch.allclose(layer(x, y), expected + layer.bias if bias else expected)
    assert layer(x, y).shape == (*shape, 4)


def test_gradients_of_bilinear():
    x, y = (torch.randn(3, n, dtype=torch.float64, requires_grad=True) for n in (2, 4))
    weight, bias = (torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in ((5, 2, 4), (5,)))
    F.bilinear(x, y, weight, bias).sum().backward()
    assert torch.allclose(x.grad, (weight.sum(0) @ y.detach().T).T)
    assert torch.allclose(y.grad, x.detach() @ weight.detach().sum(0))
    assert torch.allclose(bias.grad, torch.full((5,), 3.0, dtype=torch.float64))
    assert torch.allclose(weight.grad, (x.detach().T @ y.detach()).expand(5, 2, 4))


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (((2, 3), (3, 4), (5, 3, 4)), "input batch dimensions do not match at dim 0: got 2 and 3"),
        (((2, 3), (2, 3), (5, 3, 4)), "input2 size does not match weight size: got 3 but expected 4"),
        (((2, 2), (2, 4), (5, 3, 4)), "input1 size does not match weight size: got 2 but expected 3"),
        (((2, 3), (2, 2, 4), (5, 3, 4)), "input dimensions do not match: got 2 and 3"),
        (((2, 3), (2, 4), (5, 3, 4), (4,)), "bias size does not match weight size: got 4 but expected 5"),
    ],
)
def test_shapes_that_bilinear_refuses(shapes, text):
    with pytest.raises(RuntimeError, match=text):
        F.bilinear(*[torch.ones(*shape) for shape in shapes])


def test_bilinear_needs_inputs():
    with pytest.raises(ValueError, match="in1_features must be > 0"):
        nn.Bilinear(0, 1, 1)


# Flatten ----------------------------------------------------------------------------------------------------------


def test_flatten_and_unflatten():
    x = torch.arange(24).reshape(2, 3, 4)
    assert torch.equal(nn.Flatten()(x), x.reshape(2, 12))
    assert torch.equal(nn.Flatten(0, 1)(x), x.reshape(6, 4))
    assert torch.equal(nn.Unflatten(1, (3, 4))(x.reshape(2, 12)), x)
    assert torch.equal(nn.Unflatten(-1, [2, -1])(x), x.reshape(2, 3, 2, 2))


@pytest.mark.parametrize(
    ("dim", "size", "text"),
    [
        (1, 3, "must be a tuple of ints, but found type int"),
        (1, (2, "a"), "found element of type str at pos 1"),
        ("a", (("b", 2),), "found element of type tuple at pos 0"),
    ],
)
def test_sizes_that_unflatten_refuses(dim, size, text):
    with pytest.raises(TypeError, match=text):
        nn.Unflatten(dim, size)


# Lazy layers ------------------------------------------------------------------------------------------------------

LAZY = [
    (lambda: nn.LazyLinear(4), (2, 3), nn.Linear, "in_features"),
    (lambda: nn.LazyConv1d(4, 2), (1, 3, 5), nn.Conv1d, "in_channels"),
    (lambda: nn.LazyConv2d(4, 2), (3, 5, 5), nn.Conv2d, "in_channels"),
    (lambda: nn.LazyConv3d(4, 2, groups=1), (1, 3, 4, 4, 4), nn.Conv3d, "in_channels"),
    (lambda: nn.LazyConvTranspose1d(4, 2), (1, 3, 5), nn.ConvTranspose1d, "in_channels"),
    (lambda: nn.LazyConvTranspose2d(4, 2), (1, 3, 5, 5), nn.ConvTranspose2d, "in_channels"),
    (lambda: nn.LazyConvTranspose3d(4, 2), (3, 4, 4, 4), nn.ConvTranspose3d, "in_channels"),
    (lambda: nn.LazyBatchNorm1d(), (2, 3, 5), nn.BatchNorm1d, "num_features"),
    (lambda: nn.LazyBatchNorm2d(), (2, 3, 5, 5), nn.BatchNorm2d, "num_features"),
    (lambda: nn.LazyBatchNorm3d(), (2, 3, 2, 2, 2), nn.BatchNorm3d, "num_features"),
    (lambda: nn.LazyInstanceNorm1d(), (3, 5), nn.InstanceNorm1d, "num_features"),
    (lambda: nn.LazyInstanceNorm2d(), (2, 3, 5, 5), nn.InstanceNorm2d, "num_features"),
    (lambda: nn.LazyInstanceNorm3d(), (3, 2, 2, 2), nn.InstanceNorm3d, "num_features"),
]


@pytest.mark.parametrize(("make", "shape", "become", "size"), LAZY)
def test_the_first_input_decides(make, shape, become, size):
    layer = make()
    assert layer.has_uninitialized_params() and getattr(layer, size) == 0
    layer(torch.rand(*shape))
    assert type(layer) is become and getattr(layer, size) == 3
    assert not layer._forward_pre_hooks and not layer._load_state_dict_pre_hooks
    assert all(type(p) is nn.Parameter for p in layer.parameters())
    layer(torch.rand(*shape))


@pytest.mark.parametrize(("make", "shape", "become", "size"), LAZY)
def test_a_state_dict_decides_as_well(make, shape, become, size):
    known, layer = make(), make()
    known(torch.rand(*shape))
    layer.load_state_dict(known.state_dict())
    assert not layer.has_uninitialized_params()
    x = torch.rand(*shape)
    assert torch.equal(layer.eval()(x), known.eval()(x))
    assert type(layer) is become and getattr(layer, size) == 3


def test_what_needs_the_shape_is_refused():
    layer = nn.LazyLinear(2)
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        _ = layer.weight.shape
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        layer.weight + 1
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        nn.Linear(1, 2).load_state_dict(layer.state_dict())


def test_conversion_before_the_first_input():
    layer = nn.LazyLinear(2).double()
    layer(torch.ones(1, 3, dtype=torch.float64))
    assert layer.weight.dtype == torch.float64


def test_copies_before_the_first_input():
    layer = nn.LazyLinear(2, dtype=torch.float64)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        other(torch.ones(1, 3, dtype=other.weight.dtype))
        assert type(other) is nn.Linear and layer.has_uninitialized_params()
    assert copy.deepcopy(layer).weight.dtype == torch.float64
    state = nn.LazyLinear(2).state_dict()
    layer.load_state_dict(state)
    assert layer.has_uninitialized_params()


def test_inputs_that_lazy_layers_refuse():
    with pytest.raises(RuntimeError, match=r"Expected 3D \(unbatched\) or 4D \(batched\) input to LazyConv2d"):
        nn.LazyConv2d(2, 1)(torch.ones(2, 2))
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        nn.LazyConv2d(2, 1, groups=2)(torch.ones(1, 3, 2, 2))
    layer = nn.LazyLinear(2)
    layer.load_state_dict(nn.Linear(3, 2).state_dict())
    with pytest.raises(AssertionError, match="inferred from input: 4 is not equal to in_features"):
        layer(torch.ones(1, 4))


def test_a_lazy_layer_of_ones_own():
    class Own(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def forward(self, x, scale=1):
            return x * self.weight * scale

    with pytest.raises(NotImplementedError, match="initialize_parameters is not implemented for Own"):
        Own()(torch.ones(2))

    class Half(Own):
        def initialize_parameters(self, x, scale=1):
            pass

    with pytest.raises(RuntimeError, match="has not been fully initialized"):
        Half()(torch.ones(2))

    class Whole(Own):
        def initialize_parameters(self, x, scale=1):
            self.weight.materialize(x.shape)
            nn.init.constant_(self.weight, 2.0)

    whole = Whole()
    assert whole(torch.ones(2), scale=3).tolist() == [6.0, 6.0]
    assert type(whole) is Whole
