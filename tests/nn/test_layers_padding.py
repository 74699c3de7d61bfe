"""Padding against places counted by hand, and what does not fit."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F


def reflect(place, size):
    last = size - 1
    return abs(last - abs(last - abs(place))) if size > 1 else 0


PLACE = {
    "reflect": reflect,
    "replicate": lambda place, size: min(max(place, 0), size - 1),
    "circular": lambda place, size: place % size,
}


def by_hand(x, sides, mode):
    for dim, (before, behind) in zip(range(x.dim() - 1, -1, -1), sides, strict=False):
        if mode == "circular":
            x = x.narrow(dim, max(-before, 0), x.shape[dim] - max(-before, 0) - max(-behind, 0))
            before, behind = max(before, 0), max(behind, 0)
        size = x.shape[dim]
        places = [PLACE[mode](place, size) for place in range(-before, size + behind)]
        x = torch.stack([x.select(dim, place) for place in places], dim)
    return x


@pytest.mark.parametrize("mode", PLACE)
@pytest.mark.parametrize("sides", [[(1, 2)], [(2, 0), (1, 1)], [(1, 1), (0, 2), (2, 1)], [(-1, 2)], [(2, -1), (-1, 0)]])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_modes(mode, sides, batch):
    shape = (*batch, 2, *(3, 4, 5)[: len(sides)])
    x = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    flat = [n for side in sides for n in side]
    assert torch.equal(F.pad(x, flat, mode), by_hand(x, sides, mode))


@pytest.mark.parametrize("value", [None, 0, -1.5])
def test_constant(value):
    x = torch.ones(2, 3)
    padded = F.pad(x, (1, 2, 0, 1), value=value)
    assert padded.shape == (3, 6) and torch.equal(padded[:2, 1:4], x)
    assert padded.sum().item() == pytest.approx(6 + (18 - 6) * (value or 0))
    assert torch.equal(F.pad(x, (-1, -1)), x[:, 1:2])
    assert torch.equal(F.pad(x, ()), x)


@pytest.mark.parametrize("mode", PLACE)
def test_gradients_count_the_copies(mode):
    x = torch.rand(1, 4, dtype=torch.float64, requires_grad=True)
    F.pad(x, (2, 1), mode).sum().backward()
    places = [PLACE[mode](place, 4) for place in range(-2, 5)]
    assert x.grad.tolist() == [[float(places.count(i)) for i in range(4)]]


@pytest.mark.parametrize("mode", PLACE)
def test_integers_are_padded_as_well(mode):
    assert F.pad(torch.arange(3).reshape(1, 3), (1, 0), mode).dtype == torch.int64


@pytest.mark.parametrize(
    ("shape", "pad", "mode", "error", "text"),
    [
        ((2,), (1,), "constant", RuntimeError, "Padding length must be divisible by 2"),
        ((2, 2), (1,), "reflect", RuntimeError, "Padding length must be divisible by 2"),
        ((2,), (1, 1, 1, 1), "constant", RuntimeError, "got padding length 4 and input of dimension 1"),
        ((2,), (1, 1), "mirror", NotImplementedError, "Unrecognised padding mode mirror"),
        ((2,), (1, 1), "reflect", NotImplementedError, "Padding size 2 is not supported for 1D input tensor"),
        ((2, 2), (1, 1, 1, 1), "replicate", NotImplementedError, "Padding size 4 is not supported for 2D input"),
        ((1, 1, 2, 2), (1, 1), "circular", NotImplementedError, "Padding size 2 is not supported for 4D input"),
        ((2, 2), (2, 1), "reflect", RuntimeError, r"got: padding \(2, 1\) at dimension 1 of input \[2, 2\]"),
        ((1, 2, 3), (0, 0, 2, 0), "reflect", RuntimeError, r"Argument #6: .* padding \(2, 0\) at dimension 1"),
        ((2, 2), (-3, 1), "reflect", RuntimeError, r"input \(W: 2\) is too small. Calculated output W: 0"),
        ((2, 2), (-3, 0), "replicate", RuntimeError, r"input \(W: 2\) is too small. Calculated output W: -1"),
        ((2, 0), (1, 1), "replicate", RuntimeError, "possibly 0 batch size and other non-zero dimensions"),
        ((2, 2), (3, 3), "circular", RuntimeError, "wrapping around more than once"),
        ((2, 2), (-3, 0), "circular", RuntimeError, "resulting in an empty dimension"),
    ],
)
def test_what_does_not_fit(shape, pad, mode, error, text):
    with pytest.raises(error, match=text):
        F.pad(torch.ones(*shape), pad, mode)


def test_values_are_for_constant_padding_only():
    with pytest.raises(RuntimeError, match=r'Padding mode "reflect" doesn.t take in value argument'):
        F.pad(torch.ones(1, 3), (1, 1), "reflect", value=3)
    assert F.pad(torch.ones(1, 3), (1, 1), "reflect", value=0).shape == (1, 5)
    with pytest.raises(TypeError, match="must be tuple of ints, not int"):
        F.pad(torch.ones(3), 1)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_layers(dims):
    x = torch.rand(2, 3, *[4] * dims)
    for kind, mode in (("Reflection", "reflect"), ("Replication", "replicate"), ("Circular", "circular")):
        layer = getattr(nn, f"{kind}Pad{dims}d")(2)
        assert layer.padding == (2,) * 2 * dims
        assert torch.equal(layer(x), F.pad(x, layer.padding, mode))
    assert torch.equal(getattr(nn, f"ConstantPad{dims}d")(1, 3.5)(x), F.pad(x, (1,) * 2 * dims, value=3.5))
    assert torch.equal(getattr(nn, f"ZeroPad{dims}d")((1, 0) * dims)(x), F.pad(x, (1, 0) * dims))
    with pytest.raises(ValueError, match=f"expected {dims + 1}D or {dims + 2}D input"):
        getattr(nn, f"CircularPad{dims}d")(1)(torch.ones([1] * (dims + 3)))
