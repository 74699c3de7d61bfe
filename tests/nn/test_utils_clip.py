"""Clipping, vectors of parameters, fusion, modules without initial values, calls with other tensors."""

import math

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.func import functional_call, stack_module_state
from rushlight.nn import utils
from rushlight.nn.utils import stateless


def parameters(*gradients):
    made = []
    for gradient in gradients:
        parameter = nn.Parameter(torch.zeros(2))
        parameter.grad = None if gradient is None else torch.tensor(gradient)
        made.append(parameter)
    return made


@pytest.mark.parametrize("norm_type", [1, 2, 3.0, "inf", math.inf])
def test_norm_of_all_gradients(norm_type):
    made = parameters([3.0, 4.0], None, [0.0, -12.0])
    everything = np.array([3, 4, 0, -12.0])
    norm = np.linalg.norm(everything, float(norm_type))
    assert utils.clip_grad_norm_(made, 1.5, norm_type).item() == pytest.approx(norm)
    clipped = np.concatenate([p.grad.numpy() for p in made if p.grad is not None])
    np.testing.assert_allclose(clipped, everything * 1.5 / norm, rtol=1e-5)
    before = clipped.copy()
    utils.clip_grad_norm_(made, 100.0, norm_type)
    np.testing.assert_array_equal(np.concatenate([p.grad.numpy() for p in made if p.grad is not None]), before)


def test_clipping_of_other_arguments():
    one = parameters([3.0, 4.0])[0]
    assert utils.clip_grad_norm_(one, 1.0).item() == 5
    assert utils.clip_grad_norm_([], 1.0).item() == 0
    assert utils.clip_grad_norm_(parameters(None), 1.0).item() == 0
    assert utils.clip_grad_norm_((p for p in parameters([3.0, 4.0])), 1.0).item() == 5
    with pytest.warns(UserWarning, match="empty generator"):
        utils.clip_grad_norm_(iter([]), 1.0)
    with pytest.warns(FutureWarning, match="in favor of"):
        utils.clip_grad_norm(parameters([3.0, 4.0]), 1.0)
    mixed = parameters([3.0, 4.0])
    mixed.append(nn.Parameter(torch.zeros(1, dtype=torch.float64)))
    mixed[1].grad = torch.tensor([12.0], dtype=torch.float64)
    assert utils.clip_grad_norm_(mixed, 1.0).item() == 13


def test_norms_that_are_not_finite():
    made = parameters([3.0, math.inf])
    with pytest.raises(RuntimeError, match="non-finite, so it cannot be clipped"):
        utils.clip_grad_norm_(made, 1.0, error_if_nonfinite=True)
    assert made[0].grad.tolist() == [3.0, math.inf]
    utils.clip_grad_norm_(made, 1.0)
    assert made[0].grad[0].item() == 0


def test_norm_and_scaling_apart():
    tensors = [torch.tensor([3.0, 4.0]), torch.tensor([12.0])]
    assert utils.get_total_norm(tensors).item() == 13
    assert utils.get_total_norm(tensors[0]).item() == 5
    made = parameters([3.0, 4.0])
    utils.clip_grads_with_norm_(made, 1.0, torch.tensor(10.0))
    np.testing.assert_allclose(made[0].grad.numpy(), [0.3, 0.4], rtol=1e-5)


def test_values():
    made = parameters([3.0, -4.0], None)
    utils.clip_grad_value_(made, 2)
    assert made[0].grad.tolist() == [2, -2]


def test_vectors_of_parameters():
    layer = nn.Linear(2, 3)
    vector = utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (9,)
    assert vector.requires_grad
    weight = layer.weight
    utils.vector_to_parameters(torch.arange(9.0), layer.parameters())
    assert layer.weight is weight
    assert layer.weight.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert layer.bias.tolist() == [6, 7, 8]
    with pytest.raises(TypeError, match=r"expected torch.Tensor, but got: list"):
        utils.vector_to_parameters([1.0], layer.parameters())
    with pytest.raises(RuntimeError):
        utils.vector_to_parameters(torch.arange(8.0), layer.parameters())


def prepared(norm):
    torch.manual_seed(0)
    with torch.no_grad():
        for tensor in (norm.weight, norm.bias, norm.running_mean):
            if tensor is not None:
                tensor.normal_()
        norm.running_var.uniform_(0.5, 2)
    return norm.eval()


@pytest.mark.parametrize("bias", [True, False])
def test_fusion(bias):
    x = torch.randn(2, 3, 5, 5)
    conv, norm = nn.Conv2d(3, 4, 3, bias=bias).eval(), prepared(nn.BatchNorm2d(4))
    torch.testing.assert_close(utils.fuse_conv_bn_eval(conv, norm)(x), norm(conv(x)))
    transposed = nn.ConvTranspose2d(3, 4, 3, bias=bias).eval()
    torch.testing.assert_close(utils.fuse_conv_bn_eval(transposed, norm, True)(x), norm(transposed(x)))
    y = torch.randn(6, 3)
    linear, norm = nn.Linear(3, 4, bias=bias).eval(), prepared(nn.BatchNorm1d(4))
    torch.testing.assert_close(utils.fuse_linear_bn_eval(linear, norm)(y), norm(linear(y)))
    plain = nn.BatchNorm1d(4, affine=False).eval()
    torch.testing.assert_close(utils.fuse_linear_bn_eval(linear, plain)(y), plain(linear(y)))
    with pytest.raises(AssertionError, match="Fusion only for eval"):
        utils.fuse_linear_bn_eval(linear.train(), norm)
    with pytest.raises(AssertionError, match=r"linear.out_features=4 and bn.num_features=3"):
        utils.fuse_linear_bn_eval(linear.eval(), nn.BatchNorm1d(3).eval())


def test_skip_init_draws_nothing():
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    layer = utils.skip_init(nn.Linear, 3, 2, bias=False)
    assert torch.equal(torch.rand(1), expected)
    assert layer.weight.shape == (2, 3)
    with pytest.raises(RuntimeError, match="must support a 'device' arg"):
        utils.skip_init(nn.ReLU)
    with pytest.raises(RuntimeError, match="Expected a Module"):
        utils.skip_init(int)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
        self.b.weight = self.a.weight
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count = self.count + 1
        return self.b(self.a(x))


def test_functional_call():
    layer, x = nn.Linear(2, 2), torch.tensor([[1.0, 2.0]])
    before = layer.weight
    own = {"weight": torch.eye(2), "bias": torch.ones(2)}
    assert functional_call(layer, own, x).tolist() == [[2, 3]]
    assert functional_call(layer, own, (x,)).tolist() == [[2, 3]]
    assert functional_call(layer, own, kwargs={"input": x}).tolist() == [[2, 3]]
    assert functional_call(layer, ({"weight": torch.eye(2)}, {"bias": torch.ones(2)}), x).tolist() == [[2, 3]]
    assert layer.weight is before
    weight = torch.eye(2, requires_grad=True)
    functional_call(layer, {"weight": weight}, x).sum().backward()
    assert weight.grad.tolist() == [[1, 2], [1, 2]]
    assert layer.weight.grad is None


def test_functional_call_restores_after_an_error():
    layer = nn.Linear(2, 2)
    before = layer.weight
    with pytest.raises(RuntimeError):
        functional_call(layer, {"weight": torch.ones(5, 5)}, torch.ones(1, 2))
    assert layer.weight is before


def test_functional_call_of_tied_weights_and_buffers():
    module, x = Tied(), torch.ones(1, 2)
    eye = {"a.weight": torch.eye(2), "a.bias": torch.zeros(2), "b.bias": torch.zeros(2)}
    assert functional_call(module, eye, x).tolist() == [[1, 1]]
    assert functional_call(module, eye, x, tie_weights=False).tolist() != [[1, 1]]
    with pytest.raises(ValueError, match="multiple values for keys"):
        functional_call(module, {**eye, "b.weight": torch.ones(2, 2)}, x)
    given = {"count": torch.tensor([5.0])}
    functional_call(module, given, x)
    assert given["count"].item() == 6
    assert module.count.item() == 2  # the two calls that did not replace it


def test_functional_call_refusals():
    layer, x = nn.Linear(2, 2), torch.ones(1, 2)
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): 'bias'"):
        functional_call(layer, {"weight": torch.eye(2)}, x, strict=True)
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'foo'"):
        functional_call(layer, {"weight": torch.eye(2), "bias": torch.ones(2), "foo": x}, x, strict=True)
    with pytest.raises(ValueError, match="appeared in multiple dictionaries"):
        functional_call(layer, ({"weight": x}, {"weight": x}), x)
    with pytest.raises(ValueError, match="Expected parameter_and_buffer_dicts to be a dict"):
        functional_call(layer, 3, x)
    with pytest.raises(TypeError, match=r"is not an instance of torch.Tensor"):
        functional_call(layer, {"weight": 3}, x)
    with pytest.warns(FutureWarning, match="deprecated"):
        stateless.functional_call(layer, {}, x)


def test_stacked_states():
    models = [Tied() for _ in range(3)]
    stacked, buffers = stack_module_state(models)
    assert {name: tuple(t.shape) for name, t in stacked.items()} == {
        "a.weight": (3, 2, 2),
        "a.bias": (3, 2),
        "b.bias": (3, 2),
    }
    assert torch.equal(stacked["a.bias"][1], models[1].a.bias)
    assert stacked["a.bias"].is_leaf
    assert stacked["a.bias"].requires_grad
    assert buffers["count"].shape == (3, 1)
    for bad, phrase in [
        ([], "at least one model"),
        ([nn.Linear(1, 1), nn.ReLU()], "same class"),
        ([nn.Linear(1, 1), nn.Linear(1, 1).eval()], "training/eval mode"),
    ]:
        with pytest.raises(RuntimeError, match=phrase):
            stack_module_state(bad)
