"""Pooling against windows written out, and rows looked up."""

import itertools
import math

import numpy as np
import pytest

import rushlight as torch

F = torch.nn.functional


def numbers(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).requires_grad_()


def spread(value, n):
    return (value,) * n if isinstance(value, int) else tuple(value)


def sized_windows(space, kernel, stride, padding, dilation, ceil_mode):
    """For each output position: the taps of each dimension, with those in the padding."""
    lines = []
    for size, k, s, p, d in zip(space, kernel, stride, padding, dilation, strict=True):
        steps = (size + 2 * p - d * (k - 1) - 1) / s
        out = (math.ceil(steps) if ceil_mode else math.floor(steps)) + 1
        if ceil_mode and (out - 1) * s >= size + p:
            out -= 1
        lines.append([[o * s - p + t * d for t in range(k)] for o in range(out)])
    return lines


def pooled(x, n, reduce, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
    space = x.shape[-n:]
    kernel = spread(kernel, n)
    stride = kernel if stride is None else spread(stride, n)
    padding = spread(padding, n)
    lines = sized_windows(space, kernel, stride, padding, spread(dilation, n), ceil_mode)
    flat = x.reshape(-1, *space)
    out = np.zeros((len(flat), *(len(line) for line in lines)))
    for at in itertools.product(*(range(len(line)) for line in lines)):
        taps = [line[i] for line, i in zip(lines, at, strict=True)]
        inside = [[t for t in tap if 0 <= t < size] for tap, size in zip(taps, space, strict=True)]
        padded = math.prod(sum(t < s + p for t in tap) for tap, s, p in zip(taps, space, padding, strict=True))
        for plane, result in zip(flat, out, strict=True):
            result[at] = reduce(plane[np.ix_(*inside)], padded)
    return out.reshape(*x.shape[:-n], *out.shape[1:])


SIZES = [
    {"kernel": 2},
    {"kernel": 3, "stride": 2, "padding": 1},
    {"kernel": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    {"kernel": 2, "stride": 3, "padding": 1, "ceil_mode": True},
]
SHAPES = {1: (2, 3, 9), 2: (2, 2, 7, 8), 3: (1, 2, 5, 6, 5)}


def called(function, x, options, **more):
    options = dict(options)
    return function(x, options.pop("kernel"), **options, **more)


@pytest.mark.parametrize("n", SHAPES)
@pytest.mark.parametrize("options", [*SIZES, {"kernel": 2, "stride": 1, "padding": 1, "dilation": 2}])
def test_max_pool(n, options):
    x = numbers(*SHAPES[n])
    function = getattr(F, f"max_pool{n}d")
    values, places = called(function, x, options, return_indices=True)
    expected = pooled(x.detach().numpy(), n, lambda window, _: window.max(), **options)
    np.testing.assert_array_equal(values.detach().numpy(), expected)
    flat = x.detach().numpy().reshape(*x.shape[:2], -1)
    found = np.take_along_axis(flat, places.numpy().reshape(*x.shape[:2], -1), 2)
    np.testing.assert_array_equal(found.reshape(values.shape), expected)
    assert not places.requires_grad
    assert torch.autograd.gradcheck(lambda t: called(function, t, options), x)
    assert torch.autograd.gradgradcheck(lambda t: called(function, t, options), x)


def test_of_equal_numbers_the_first_and_of_nans_the_last():
    nan = float("nan")
    x = torch.tensor([[[[1.0, 2.0, 0.0, nan], [2.0, 2.0, nan, 5.0]]]])
    values, places = F.max_pool2d(x, 2, return_indices=True)
    assert values[0, 0, 0, 0].item() == 2 and places[0, 0, 0, 0].item() == 1
    assert math.isnan(values[0, 0, 0, 1].item()) and places[0, 0, 0, 1].item() == 6
    lowest = torch.full((1, 1, 2, 2), -float("inf"))
    assert F.max_pool2d(lowest, 2, return_indices=True)[1].item() == 0


@pytest.mark.parametrize("n", SHAPES)
@pytest.mark.parametrize("options", SIZES)
@pytest.mark.parametrize("include", [True, False])
def test_avg_pool(n, options, include):
    x = numbers(*SHAPES[n])
    function = getattr(F, f"avg_pool{n}d")

    def mean(window, padded):
        return window.sum() / (padded if include else window.size)

    expected = pooled(x.detach().numpy(), n, mean, **options)
    result = called(function, x, options, count_include_pad=include)
    np.testing.assert_allclose(result.detach().numpy(), expected, rtol=1e-12, atol=1e-14)
    assert torch.autograd.gradcheck(lambda t: called(function, t, options, count_include_pad=include), x)
    assert torch.autograd.gradgradcheck(lambda t: called(function, t, options, count_include_pad=include), x)


def test_avg_pool_with_a_divisor():
    x = numbers(2, 2, 7, 8)
    result = F.avg_pool2d(x, 3, 2, 1, divisor_override=5)
    expected = pooled(x.detach().numpy(), 2, lambda window, _: window.sum() / 5, 3, 2, 1)
    np.testing.assert_allclose(result.detach().numpy(), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", SHAPES)
@pytest.mark.parametrize("out", [1, 2, 3, 5])
def test_adaptive_pools(n, out):
    x = numbers(*SHAPES[n])
    space = x.shape[-n:]
    array = x.detach().numpy()
    expected = {"avg": np.zeros((*x.shape[:2], *[out] * n)), "max": np.zeros((*x.shape[:2], *[out] * n))}
    for at in itertools.product(range(out), repeat=n):
        window = tuple(slice(i * s // out, -(-(i + 1) * s // out)) for i, s in zip(at, space, strict=True))
        part = array[(..., *window)].reshape(*x.shape[:2], -1)
        expected["avg"][(..., *at)] = part.mean(-1)
        expected["max"][(..., *at)] = part.max(-1)
    for kind, wanted in expected.items():
        function = getattr(F, f"adaptive_{kind}_pool{n}d")
        np.testing.assert_allclose(function(x, out).detach().numpy(), wanted, rtol=1e-12, atol=1e-14)
        assert torch.autograd.gradcheck(lambda t, f=function: f(t, out), x)
        assert torch.autograd.gradgradcheck(lambda t, f=function: f(t, out), x)


def test_without_a_batch_and_strided():
    x = numbers(6, 7, 3)
    planes = x.permute(2, 0, 1)
    for function in (F.max_pool2d, F.avg_pool2d):
        a, b = function(planes, 2), function(planes.contiguous().unsqueeze(0), 2)
        assert a.tolist() == b[0].tolist()
    assert F.max_pool2d(torch.ones(0, 3, 8, 8), 2).shape == (0, 3, 4, 4)


def test_integers_and_half_types():
    x = torch.arange(16).reshape(1, 4, 4)
    assert F.max_pool2d(x, 2)[0].tolist() == [[5, 7], [13, 15]]
    assert F.avg_pool2d(x.bfloat16(), 2)[0].float().tolist() == [[2.5, 4.5], [10.5, 12.5]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda o: F.max_pool2d(o(1, 3, 8, 8), 3, padding=2), "pad should be at most half of effective kernel size"),
        (lambda o: F.max_pool2d(o(1, 3, 8, 8), 9), r"Given input size: \(3x8x8\). Calculated output size: \(3x0x0\)"),
        (lambda o: F.max_pool2d(o(1, 3, 8, 8), 2, 0), "stride should not be zero"),
        (lambda o: F.max_pool2d(o(1, 3, 8, 8), 2, dilation=0), "dilation should be greater than zero"),
        (lambda o: F.max_pool2d(o(3, 3), 2), r"non-empty 3D or 4D \(batch mode\) tensor expected for input"),
        (
            lambda o: F.max_pool2d(o(1, 3, 8, 8), (2, 2, 2)),
            "kernel_size must either be a single int, or a tuple of two",
        ),
        (lambda o: F.avg_pool2d(o(1, 3, 8, 8), 2, divisor_override=0), "divisor must be not zero"),
        (lambda o: F.adaptive_avg_pool2d(o(1, 3, 8, 8), (2, -1)), "must be greater than or equal to 0"),
        (lambda o: F.adaptive_avg_pool2d(o(1, 3, 0, 3), 2), "with dimension 2 being empty"),
        (lambda o: F.adaptive_max_pool2d(o(3, 3), 2), r"adaptive_max_pool2d\(\): Expected 3D or 4D tensor"),
    ],
)
def test_refuses_what_does_not_fit(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(torch.ones)


@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"scale_grad_by_freq": True}])
def test_embedding(options):
    weight = numbers(5, 3)
    indices = np.array([[0, 2, 2], [4, 1, 0]])
    found = F.embedding(torch.from_numpy(indices), weight, **options)
    np.testing.assert_array_equal(found.detach().numpy(), weight.detach().numpy()[indices])
    g = numbers(2, 3, 3, seed=1).detach()
    (gradient,) = torch.autograd.grad(found, weight, g)
    expected = np.zeros((5, 3))
    np.add.at(expected, indices, g.numpy())
    if "padding_idx" in options:
        expected[2] = 0
    if "scale_grad_by_freq" in options:
        expected /= np.maximum(np.bincount(indices.ravel(), minlength=5), 1)[:, None]
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-12)
    g.requires_grad_()

    def backward(t):
        again = F.embedding(torch.from_numpy(indices), weight, **options)
        return torch.autograd.grad(again, weight, t, create_graph=True)[0]

    assert torch.autograd.gradcheck(backward, g)


def test_embedding_refuses_indices_outside():
    for index in (-1, 3):
        with pytest.raises(IndexError, match="index out of range in self"):
            F.embedding(torch.tensor([index]), torch.ones(3, 2))
    with pytest.raises(RuntimeError, match="'weight' must be 2-D"):
        torch.embedding(torch.ones(3), torch.tensor([1]))
    with pytest.raises(RuntimeError, match="scalar types: Long, Int; but got"):
        torch.embedding(torch.ones(3, 2), torch.tensor([1.0]))
