"""Pooling layers against loops over their windows, and unpooling."""

import itertools
import math

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def spans(size, kernel, stride, padding, dilation=1, ceil_mode=False):
    """For each window along one dimension, the places it covers, those in the padding included."""
    rounded = math.ceil if ceil_mode else math.floor
    count = rounded((size + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return [[i * stride - padding + j * dilation for j in range(kernel)] for i in range(count)]


def pool(x, per_dim, reduce):
    """`reduce` of the numbers of each window of x (C, *), called with the window's places inside and all of them."""
    sizes = [len(windows) for windows in per_dim]
    y = torch.zeros(x.shape[0], *sizes, dtype=x.dtype)
    for channel in range(x.shape[0]):
        for place in itertools.product(*map(range, sizes)):
            places = list(itertools.product(*[windows[i] for windows, i in zip(per_dim, place, strict=True)]))
            inside = [p for p in places if all(0 <= q < n for q, n in zip(p, x.shape[1:], strict=True))]
            y[(channel, *place)] = reduce([x[(channel, *p)].item() for p in inside], places, inside)
    return y


LAYERS = {1: (nn.MaxPool1d, nn.AvgPool1d), 2: (nn.MaxPool2d, nn.AvgPool2d), 3: (nn.MaxPool3d, nn.AvgPool3d)}
OPTIONS = [
    {},
    {"stride": 1},
    {"padding": 1},
    {"stride": 2, "ceil_mode": True},
    {"stride": 3, "padding": 1, "ceil_mode": True},
]


@pytest.mark.parametrize("options", [*OPTIONS, {"dilation": 2, "stride": 1}])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_max_pooling(dims, options):
    x = random(2, *[6, 5, 7][:dims])
    layer = LAYERS[dims][0](2, **options)
    stride = options.get("stride", 2)
    rest = [options.get(key, default) for key, default in (("padding", 0), ("dilation", 1), ("ceil_mode", False))]
    per_dim = [spans(size, 2, stride, *rest) for size in x.shape[1:]]
    expected = pool(x, per_dim, lambda numbers, places, inside: max(numbers))
    assert torch.equal(layer(x), expected)
    assert torch.equal(layer(x.unsqueeze(0)), expected.unsqueeze(0))
    y, indices = type(layer)(2, **options, return_indices=True)(x)
    assert indices.dtype == torch.int64
    assert torch.equal(x.flatten(1).gather(1, indices.flatten(1)), y.flatten(1))


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_average_pooling(dims, options, include):
    x = random(2, *[6, 5, 7][:dims])
    layer = LAYERS[dims][1](2, **options, count_include_pad=include)
    stride, padding = options.get("stride", 2), options.get("padding", 0)
    per_dim = [spans(size, 2, stride, padding, ceil_mode=options.get("ceil_mode", False)) for size in x.shape[1:]]

    def average(numbers, places, inside):
        # A window that begins in the input may end behind the padding; what is there does not count.
        counted = [p for p in places if all(q < n + padding for q, n in zip(p, x.shape[1:], strict=True))]
        return sum(numbers) / len(counted if include else inside)

    assert torch.allclose(layer(x), pool(x, per_dim, average))


def test_average_with_another_divisor():
    assert nn.AvgPool2d(2, divisor_override=8)(torch.ones(1, 4, 4)).tolist() == [[[0.5, 0.5], [0.5, 0.5]]]


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_adaptive_pooling(dims):
    x = random(2, *[7, 5, 6][:dims])
    size = (3, 5, 4)[:dims]
    per_dim = [
        [list(range(i * n // m, -(-(i + 1) * n // m))) for i in range(m)]
        for n, m in zip(x.shape[1:], size, strict=True)
    ]
    average = (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)[dims - 1]
    largest = (nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d)[dims - 1]
    size = size[0] if dims == 1 else size
    assert torch.allclose(average(size)(x), pool(x, per_dim, lambda numbers, *_: sum(numbers) / len(numbers)))
    y, indices = largest(size, return_indices=True)(x)
    assert torch.equal(y, pool(x, per_dim, lambda numbers, *_: max(numbers)))
    assert torch.equal(x.flatten(1).gather(1, indices.flatten(1)), y.flatten(1))
    assert torch.equal(largest(size)(x), y)


def test_adaptive_pooling_keeps_sizes_that_are_none():
    assert nn.AdaptiveAvgPool2d((None, 3))(torch.ones(2, 5, 7)).shape == (2, 5, 3)
    assert nn.AdaptiveMaxPool3d((None, 1, None))(torch.ones(1, 2, 3, 4, 5)).shape == (1, 2, 3, 1, 5)
    with pytest.raises(ValueError, match="Input dimension should be at least 3"):
        F.adaptive_avg_pool2d(torch.ones(4, 4), (None, 3))


@pytest.mark.parametrize("norm", [1, 2, 3.0])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_power_pooling(dims, norm):
    x = random(2, *[6, 5, 4][:dims]).abs()
    layer = (nn.LPPool1d, nn.LPPool2d, nn.LPPool3d)[dims - 1](norm, 2, stride=1)
    per_dim = [spans(size, 2, 1, 0) for size in x.shape[1:]]
    expected = pool(x, per_dim, lambda numbers, *_: sum(n**norm for n in numbers) ** (1 / norm))
    assert torch.allclose(layer(x), expected)


def test_power_pooling_of_kernels_with_sides():
    x = random(1, 4, 6)
    expected = pool(x, [spans(4, 2, 2, 0), spans(6, 3, 3, 0)], lambda numbers, *_: math.hypot(*numbers))
    assert torch.allclose(F.lp_pool2d(x, 2, (2, 3)), expected)


# Unpooling --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling_puts_the_maxima_back(dims):
    x = random(2, 3, *[6, 5, 4][:dims]).requires_grad_()
    y, indices = LAYERS[dims][0](2, return_indices=True)(x)
    unpool = (nn.MaxUnpool1d, nn.MaxUnpool2d, nn.MaxUnpool3d)[dims - 1](2)
    back = unpool(y, indices, output_size=list(x.shape))
    assert back.shape == x.shape
    assert torch.equal(back != 0, back == x) and (back != 0).sum() == y.numel()
    back.sum().backward()
    assert torch.equal(x.grad, (back != 0).double())
    assert torch.equal(unpool(y[0], indices[0], output_size=list(x.shape[2:])), back[0])
    zeros = torch.zeros_like(indices)
    assert unpool(y, zeros).shape == (2, 3, *[2 * n for n in y.shape[2:]])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x, i: F.max_unpool2d(x, i + 90, 2), RuntimeError, "Found an invalid max index: 9[0-3]"),
        (lambda x, i: F.max_unpool2d(x, i - 9, 2), RuntimeError, "output volumes are of size 4x4"),
        (lambda x, i: F.max_unpool2d(x, i.int(), 2), RuntimeError, "elements in indices should be type int64"),
        (lambda x, i: F.max_unpool2d(x, i[:, :1], 2), RuntimeError, "Expected shape of indices to be same"),
        (lambda x, i: F.max_unpool2d(x[0], i[0], 2), RuntimeError, "should be a 3d or 4d Tensor"),
        (lambda x, i: F.max_unpool2d(x, i, 2, output_size=(4,)), ValueError, "containing 2 or 4 elements"),
        (lambda x, i: F.max_unpool2d(x, i, 2, output_size=(9, 4)), ValueError, "dim 0 must be between 2 and 6"),
    ],
)
def test_what_unpooling_refuses(call, error, text):
    with pytest.raises(error, match=text):
        call(torch.ones(1, 2, 2), torch.arange(4).reshape(1, 2, 2))


# Fractional -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [2, 3])
def test_fractional_pooling(dims):
    torch.manual_seed(0)
    x = random(2, 3, *[9, 8, 7][:dims]).requires_grad_()
    layer = (nn.FractionalMaxPool2d, nn.FractionalMaxPool3d)[dims - 2](2, output_size=4, return_indices=True)
    y, indices = layer(x)
    assert y.shape == indices.shape == (2, 3, *[4] * dims)
    assert torch.equal(x.detach().flatten(2).gather(2, indices.flatten(2)), y.detach().flatten(2))
    y.sum().backward()
    assert x.grad.sum().item() == y.numel()
    assert torch.equal(
        x.grad != 0, torch.zeros_like(x.grad).flatten(2).scatter(2, indices.flatten(2), 1).view_as(x) != 0
    )
    again, _ = layer(x)
    assert not torch.equal(again, y)


def test_fractional_pooling_at_given_places():
    x = torch.arange(36.0).reshape(1, 6, 6)
    samples = torch.zeros(1, 1, 2)
    result = F.fractional_max_pool2d(x, 2, output_size=3, _random_samples=samples)
    # Windows begin at 0, 2 and 4: the maximum is their last number.
    assert result.tolist() == [[[7, 9, 11], [19, 21, 23], [31, 33, 35]]]
    assert F.fractional_max_pool2d(x, 2, output_ratio=(0.5, 0.5), _random_samples=samples).shape == (1, 3, 3)
    assert F.fractional_max_pool2d(x, 2, output_size=1).tolist() == [[[35]]]
    assert F.fractional_max_pool2d(x, 2, output_size=0).shape == (1, 0, 0)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "requires specifying either an output size, or a pooling ratio"),
        ({"output_size": 3, "output_ratio": 0.5}, "only one of output_size and output_ratio"),
        ({"output_ratio": 1.5}, "output_ratio must be between 0 and 1 .got 1.5."),
        ({"output_ratio": (0.5, 0)}, "output_ratio must be between 0 and 1"),
    ],
)
def test_options_that_fractional_layers_refuse(options, text):
    with pytest.raises(ValueError, match=text):
        nn.FractionalMaxPool2d(2, **options)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({}, ValueError, "requires specifying either an output_size or an output_ratio"),
        ({"output_size": 4}, RuntimeError, "pool height 2 too large relative to input height 4"),
        ({"output_size": (2, 2, 2)}, RuntimeError, "output_size must either be a single Int or tuple of Ints"),
        ({"output_size": 2, "_random_samples": torch.ones(1, 2)}, RuntimeError, "to have 3 dimensions, got 2"),
        ({"output_size": 2, "_random_samples": torch.ones(1, 1, 3)}, RuntimeError, "equals to 2; got 3"),
        ({"output_size": 2, "_random_samples": torch.ones(1, 2, 2)}, RuntimeError, "equals to input channel size"),
        ({"output_size": 2, "_random_samples": torch.ones(1, 1, 2).double()}, RuntimeError, "the same dtype as input"),
    ],
)
def test_what_fractional_pooling_refuses(options, error, text):
    with pytest.raises(error, match=text):
        F.fractional_max_pool2d(torch.ones(1, 4, 4), 2, **options)


def test_fractional_kernels_have_a_size():
    with pytest.raises(ValueError, match="kernel_size must be greater than 0, but got 0"):
        nn.FractionalMaxPool3d(0, output_size=2)
