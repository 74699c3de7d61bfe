"""Gradients of convolutions on their own, models on several devices, keyword arguments of factories."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F
from rushlight.nn import grad


@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "groups": 2}])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_convolutions(dims, options):
    x = torch.randn(2, 4, *[6] * dims, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(2, 4 // options.get("groups", 1), *[3] * dims, dtype=torch.float64, requires_grad=True)
    y = (F.conv1d, F.conv2d, F.conv3d)[dims - 1](x, weight, **options)
    cotangent = torch.randn(*y.shape, dtype=torch.float64)
    y.backward(cotangent)
    of_input = getattr(grad, f"conv{dims}d_input")(x.shape, weight, cotangent, **options)
    of_weight = getattr(grad, f"conv{dims}d_weight")(x, weight.shape, cotangent, **options)
    assert torch.allclose(of_input, x.grad) and torch.allclose(of_weight, weight.grad)


def test_a_gradient_of_another_shape_is_refused():
    with pytest.raises(RuntimeError, match=r"shape \[1, 1, 2, 2\] that the convolution's output has, but got"):
        grad.conv2d_input((1, 1, 3, 3), torch.ones(1, 1, 2, 2), torch.ones(1, 1, 3, 3))


def test_data_parallel_is_the_model():
    model = nn.Linear(2, 3)
    parallel = nn.DataParallel(model, device_ids=[0, 1])
    x = torch.ones(4, 2)
    assert torch.equal(parallel(x), model(x)) and parallel.module is model and parallel.device_ids == []
    assert list(parallel.state_dict()) == ["module.weight", "module.bias"]
    assert torch.equal(nn.parallel.data_parallel(model, x), model(x))
    two = nn.Bilinear(2, 2, 1)
    assert torch.equal(nn.parallel.data_parallel(two, (x, x)), two(x, x))


def test_factory_arguments():
    assert nn.factory_kwargs({"dtype": 1, "factory_kwargs": {"device": 2}}) == {"dtype": 1, "device": 2}
    assert nn.factory_kwargs(None) == {}
    with pytest.raises(TypeError, match=r"unexpected kwargs {'foo'}"):
        nn.factory_kwargs({"foo": 1})
    with pytest.raises(TypeError, match="device specified twice"):
        nn.factory_kwargs({"device": 1, "factory_kwargs": {"device": 2}})
