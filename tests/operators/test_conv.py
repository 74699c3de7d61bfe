"""Convolutions against their definition, with first and second derivatives."""

import itertools

import numpy as np
import pytest

import rushlight as torch


def numbers(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).requires_grad_()


def as_tuple(value, n):
    return (value,) * n if isinstance(value, int) else tuple(value)


def by_definition(x, w, b, stride=1, padding=0, dilation=1, groups=1):
    """The sum over channels and taps at each place, written out."""
    n = x.ndim - 2
    stride, padding, dilation = (as_tuple(v, n) for v in (stride, padding, dilation))
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    size = [(x.shape[i + 2] - dilation[i] * (w.shape[i + 2] - 1) - 1) // stride[i] + 1 for i in range(n)]
    y = np.zeros((x.shape[0], w.shape[0], *size))
    ins, outs = x.shape[1] // groups, w.shape[0] // groups
    for tap in itertools.product(*(range(k) for k in w.shape[2:])):
        window = tuple(
            slice(t * d, t * d + (k - 1) * s + 1, s) for t, d, s, k in zip(tap, dilation, stride, size, strict=True)
        )
        for g in range(groups):
            part = x[(slice(None), slice(g * ins, (g + 1) * ins), *window)]
            factors = w[(slice(g * outs, (g + 1) * outs), slice(None), *tap)]
            y[:, g * outs : (g + 1) * outs] += np.einsum("ni...,oi->no...", part, factors)
    return y if b is None else y + b.reshape(1, -1, *[1] * n)


CASES = [
    ((2, 3, 6, 5), (4, 3, 3, 3), {}),
    ((2, 3, 6, 5), (4, 3, 3, 2), {"stride": 2, "padding": 1}),
    ((2, 4, 9, 9), (6, 2, 3, 3), {"stride": (2, 1), "padding": (1, 2), "dilation": (2, 1), "groups": 2}),
    ((2, 4, 4, 4), (6, 4, 1, 1), {}),
    ((2, 4, 5, 5), (3, 4, 1, 1), {"stride": 2}),
    ((2, 4, 5, 5), (4, 1, 3, 3), {"groups": 4, "padding": 1}),
    ((2, 4, 6, 6), (4, 1, 3, 3), {"groups": 4, "padding": 1, "stride": 2}),
    ((2, 4, 5, 5), (8, 1, 3, 3), {"groups": 4, "padding": 2, "dilation": 2}),
    ((2, 3, 7), (4, 3, 3), {"padding": 1}),
    ((1, 3, 10), (6, 1, 3), {"groups": 3, "padding": 2, "stride": 3}),
    ((2, 2, 3, 4, 3), (3, 2, 2, 3, 2), {"padding": 1, "stride": (1, 2, 1)}),
]


@pytest.mark.parametrize(("shape", "kernel", "options"), CASES)
@pytest.mark.parametrize("with_bias", [True, False])
def test_convolution(shape, kernel, options, with_bias):
    x, w = numbers(*shape), numbers(*kernel, seed=1)
    b = numbers(kernel[0], seed=2) if with_bias else None
    function = getattr(torch, f"conv{len(shape) - 2}d")
    arrays = [None if t is None else t.detach().numpy() for t in (x, w, b)]
    np.testing.assert_allclose(
        function(x, w, b, **options).detach().numpy(), by_definition(*arrays, **options), atol=1e-10
    )
    inputs = [t for t in (x, w, b) if t is not None]
    assert torch.autograd.gradcheck(lambda *t: function(*t, **options), inputs)
    assert torch.autograd.gradgradcheck(lambda *t: function(*t, **options), inputs)


@pytest.mark.parametrize("shape", [(1, 3, 70, 80), (3, 40, 3, 3), (2, 24, 30, 33), (9, 16, 1, 1), (40, 3, 12, 12)])
@pytest.mark.parametrize("kernel", [1, 3])
def test_blocks_of_any_size_add_up(shape, kernel):
    x, w, b = numbers(*shape), numbers(20, shape[1], kernel, kernel, seed=1), numbers(20, seed=2)
    y = torch.conv2d(x, w, b, padding=kernel // 2)
    expected = by_definition(*(t.detach().numpy() for t in (x, w, b)), padding=kernel // 2)
    np.testing.assert_allclose(y.detach().numpy(), expected, atol=1e-10)
    g = numbers(*y.shape, seed=3).detach()
    gx, gw, gb = torch.autograd.grad(y, (x, w, b), g)
    # the sum of products that all three share
    total = float((y.detach() - b.detach().reshape(1, -1, 1, 1)).mul(g).sum())
    assert float((gx * x.detach()).sum()) == pytest.approx(total, rel=1e-9)
    assert float((gw * w.detach()).sum()) == pytest.approx(total, rel=1e-9)
    np.testing.assert_allclose(gb.numpy(), g.numpy().sum((0, 2, 3)), rtol=1e-9)


@pytest.mark.parametrize(
    ("shape", "kernel", "options"),
    [
        ((2, 3, 4, 3), (3, 4, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
        ((2, 4, 3, 4), (4, 3, 3, 2), {"stride": 2, "groups": 2, "dilation": 2}),
        ((2, 4, 3, 4), (4, 1, 3, 2), {"stride": 2, "groups": 4}),
        ((2, 3, 5), (3, 4, 3), {"stride": 2, "padding": 1}),
        ((1, 3, 3, 2, 2), (3, 4, 2, 2, 2), {"stride": 2}),
        ((2, 3, 4, 3), (3, 4, 1, 1), {}),
    ],
)
def test_transposed_convolution(shape, kernel, options):
    n = len(shape) - 2
    function, plain = getattr(torch, f"conv_transpose{n}d"), getattr(torch, f"conv{n}d")
    groups = options.get("groups", 1)
    x, w, b = numbers(*shape), numbers(*kernel, seed=1), numbers(kernel[1] * groups, seed=2)
    y = function(x, w, **options)
    # <T x, u> = <x, C u>
    u = numbers(*y.shape, seed=3).detach()
    back = plain(u, w, **{k: v for k, v in options.items() if k != "output_padding"})
    assert back.shape == x.shape
    assert float((y * u).sum()) == pytest.approx(float((x * back).sum()), rel=1e-10)
    wide = b.detach().numpy().reshape(1, -1, *[1] * n)
    np.testing.assert_allclose(
        function(x, w, b, **options).detach().numpy(), y.detach().numpy() + wide, rtol=1e-12, atol=1e-12
    )
    assert torch.autograd.gradcheck(lambda *t: function(*t, **options), (x, w, b))
    assert torch.autograd.gradgradcheck(lambda *t: function(*t, **options), (x, w, b))


def test_same_padding_has_its_odd_element_behind():
    x = numbers(1, 2, 6, 5)
    w = numbers(3, 2, 2, 4, seed=1)
    y = torch.conv2d(x, w, padding="same", dilation=(1, 2))
    padded = np.pad(x.detach().numpy(), ((0, 0), (0, 0), (0, 1), (3, 3)))
    np.testing.assert_allclose(
        y.detach().numpy(), by_definition(padded, w.detach().numpy(), None, dilation=(1, 2)), atol=1e-12
    )
    assert torch.conv2d(x, w, padding="valid").tolist() == torch.conv2d(x, w).tolist()


def test_without_a_batch():
    x, w, b = numbers(3, 6, 5), numbers(4, 3, 3, 3, seed=1), numbers(4, seed=2)
    assert torch.conv2d(x, w, b).tolist() == torch.conv2d(x.unsqueeze(0), w, b)[0].tolist()
    assert torch.conv_transpose2d(x, numbers(3, 4, 2, 2)).shape == (4, 7, 6)


def test_strided_operands():
    x, w = numbers(2, 6, 5, 3), numbers(3, 3, 3, 4, seed=1)
    a = torch.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1))
    b = torch.conv2d(x.permute(0, 3, 1, 2).contiguous(), w.permute(3, 2, 0, 1).contiguous())
    assert a.tolist() == b.tolist()


def test_empty_batch():
    x, w = numbers(0, 3, 6, 5), numbers(4, 3, 3, 3)
    y = torch.conv2d(x, w)
    assert y.shape == (0, 4, 4, 3)
    assert torch.autograd.grad(y.sum(), w)[0].abs().sum().item() == 0


def test_half_types_and_integers():
    x = torch.arange(16).reshape(1, 1, 4, 4)
    w = torch.ones(1, 1, 2, 2).long()
    expected = [[10, 14, 18], [26, 30, 34], [42, 46, 50]]
    assert torch.conv2d(x, w)[0, 0].tolist() == expected
    assert torch.conv2d(x.bfloat16(), w.bfloat16()).dtype == torch.bfloat16
    assert torch.conv2d(x.bfloat16(), w.bfloat16())[0, 0].float().tolist() == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda o: torch.conv2d(o(1, 3, 8, 8), o(4, 2, 3, 3)),
            r"Given groups=1, weight of size \[4, 2, 3, 3\], expected input\[1, 3, 8, 8\] to have 2 channels",
        ),
        (lambda o: torch.conv2d(o(1, 3, 8, 8), o(4, 3, 9, 3)), r"Kernel size: \(9 x 3\). Kernel size can't be greater"),
        (
            lambda o: torch.conv2d(o(3, 3), o(4, 3, 3, 3)),
            r"Expected 3D \(unbatched\) or 4D \(batched\) input to conv2d",
        ),
        (
            lambda o: torch.conv2d(o(1, 3, 8, 8), o(4, 3, 3, 3), o(3)),
            "bias to be 1-dimensional with 4 elements",
        ),
        (lambda o: torch.conv2d(o(1, 3, 8, 8), o(4, 3, 3, 3), stride=0), "non-positive stride is not supported"),
        (lambda o: torch.conv2d(o(1, 3, 8, 8), o(4, 3, 3, 3), padding=-1), "negative padding is not supported"),
        (lambda o: torch.conv2d(o(1, 3, 8, 8), o(4, 3, 3, 3), padding="some"), "Invalid padding string: 'some'"),
        (
            lambda o: torch.conv2d(o(1, 3, 8, 8), o(4, 3, 3, 3), padding="same", stride=2),
            "padding='same' is not supported for strided convolutions",
        ),
        (lambda o: torch.conv2d(o(1, 3, 8, 8), o(4, 3, 3, 3).double()), "expected scalar type Float but found Double"),
        (lambda o: torch.conv2d(o(1, 3, 8, 8), o(4, 1, 3, 3), groups=3), "expected weight to be divisible by 3"),
        (
            lambda o: torch.conv_transpose2d(o(1, 3, 8, 8), o(3, 4, 3, 3), output_padding=1),
            "output padding must be smaller than either stride or dilation",
        ),
        (lambda o: torch.conv_transpose2d(o(1, 3, 8, 8), o(4, 4, 3, 3)), "to have 4 channels, but got 3 channels"),
    ],
)
def test_refuses_what_does_not_fit(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(torch.ones)
