"""Convolution layers against loops over the output."""

import itertools

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

CONVS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}


def random(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def correlate(x, weight, stride, dilation, groups):
    """The cross-correlation of a sample (C, *) with `weight`, number by number."""
    out_channels, per_group, *kernel = weight.shape
    sizes = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[1:], kernel, stride, dilation, strict=True)]
    y = torch.zeros(out_channels, *sizes, dtype=x.dtype)
    for place in itertools.product(*map(range, sizes)):
        ends = [(p * s, p * s + d * (k - 1) + 1, d) for p, s, d, k in zip(place, stride, dilation, kernel, strict=True)]
        window = x[(slice(None), *[slice(*end) for end in ends])]
        for channel in range(out_channels):
            group = channel // (out_channels // groups)
            part = window[group * per_group : (group + 1) * per_group]
            y[(channel, *place)] = (part * weight[channel]).sum()
    return y


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("options", [{}, {"stride": 2, "groups": 2}, {"dilation": 2}, {"padding": "same"}])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_convolutions(dims, options, mode):
    layer = CONVS[dims](2, 4, 3, **{"padding": 1, "padding_mode": mode, **options}).double()
    x = random(2, *[5] * dims)
    width = 1 if layer.padding != "same" else layer.dilation[0]
    padded = F.pad(x, [width, width] * dims, "constant" if mode == "zeros" else mode)
    expected = correlate(padded, layer.weight.detach(), layer.stride, layer.dilation, layer.groups)
    expected = expected + layer.bias.detach().reshape(-1, *[1] * dims)
    assert torch.allclose(layer(x), expected)
    assert torch.allclose(layer(x.unsqueeze(0)), expected.unsqueeze(0))


def test_kernels_of_even_size_keep_the_length():
    layer = nn.Conv1d(1, 1, 4, padding="same", padding_mode="replicate", bias=False)
    assert layer(torch.ones(1, 1, 6)).shape == (1, 1, 6)
    assert nn.Conv1d(1, 1, 4, padding="same")(torch.ones(1, 6)).shape == (1, 6)
    assert nn.Conv1d(1, 1, 4, padding="valid")(torch.ones(1, 6)).shape == (1, 3)


@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 2, "dilation": 2}]
)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed_convolutions_are_transposes(dims, options):
    """<conv(x), y> = <x, transposed(y)> for equal weights."""
    layer = TRANSPOSED[dims](4, 2, 3, bias=False, **options).double()
    y = random(1, 4, *[3] * dims)
    z = layer(y)
    x = random(*z.shape)
    forward = {k: v for k, v in options.items() if k != "output_padding"}
    convolved = (F.conv1d, F.conv2d, F.conv3d)[dims - 1](x, layer.weight, **forward)
    assert torch.allclose((convolved * y).sum(), (x * z).sum())


def test_output_size_chooses_among_the_sizes_of_a_transposed_convolution():
    layer = nn.ConvTranspose2d(2, 4, 3, stride=2)
    x = torch.ones(1, 2, 4, 4)
    assert layer(x).shape == (1, 4, 9, 9)
    assert layer(x, output_size=(9, 10)).shape == layer(x, output_size=(1, 4, 9, 10)).shape == (1, 4, 9, 10)
    assert layer(x[0], output_size=[10, 10]).shape == (4, 10, 10)
    with pytest.raises(ValueError, match=r"requested an output size of \(11, 9\), but valid sizes range from \[9, 9\]"):
        layer(x, output_size=(11, 9))
    with pytest.raises(ValueError, match=r"for 4D input, output_size must have 2 or 4 elements .got 3."):
        layer(x, output_size=(9, 9, 9))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"groups": 0}, "groups must be a positive integer"),
        ({"in_channels": 3, "groups": 2}, "in_channels must be divisible by groups"),
        ({"out_channels": 3, "groups": 2}, "out_channels must be divisible by groups"),
        ({"padding": "full"}, "Invalid padding string 'full'"),
        ({"padding": "same", "stride": 2}, "padding='same' is not supported for strided convolutions"),
        ({"padding_mode": "mirror"}, "padding_mode must be one of .* but got padding_mode='mirror'"),
    ],
)
def test_options_that_do_not_go_together(arguments, text):
    with pytest.raises(ValueError, match=text):
        nn.Conv2d(**{"in_channels": 4, "out_channels": 4, "kernel_size": 3, **arguments})


def test_transposed_convolutions_pad_by_zeros_only():
    with pytest.raises(ValueError, match='Only "zeros" padding mode is supported for ConvTranspose1d'):
        nn.ConvTranspose1d(1, 1, 1, padding_mode="circular")


def test_a_subclass_may_convolve_with_another_weight():
    class Standardized(nn.Conv2d):
        def forward(self, x):
            return self._conv_forward(x, self.weight * 0 + 1, None)

    layer = Standardized(1, 1, 2, padding=1, padding_mode="circular")
    assert torch.equal(layer(torch.ones(1, 2, 2)), torch.full((1, 3, 3), 4.0))


def test_time_first_convolution():
    x, weight, bias = random(6, 2, 3), random(2, 3, 4), random(4)
    expected = F.conv1d(x.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=1).permute(2, 0, 1)
    assert torch.allclose(F.conv_tbc(x, weight, bias, 1), expected)
    with pytest.raises(RuntimeError, match="Input dim 2"):
        F.conv_tbc(x, random(2, 2, 4), bias)
    with pytest.raises(RuntimeError, match="Bias size must equal dim 2"):
        F.conv_tbc(x, weight, random(3))
