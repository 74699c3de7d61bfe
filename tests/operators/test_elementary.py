"""Loops of elementary functions against the C library in a wider type: accuracy, special values, all layouts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import rushlight as torch

RNG = np.random.default_rng(0)
SPECIAL = [0.0, -0.0, 1, -1, 2, -2, 0.5, 2.5, -2.5, 3, -3, math.inf, -math.inf, math.nan, 1e-40, -1e-40, 1e38, -1e38]
SPECIAL += [1e10, 16777217, 1e-45]


def units_in_the_last_place(found, expected):
    """How far results are from values of a wider type, in steps of the results' type."""
    with np.errstate(over="ignore"):
        rounded = expected.astype(found.dtype)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    assert np.isfinite(found[~same]).all() and np.isfinite(rounded[~same]).all()
    return (np.abs(found[~same] - expected[~same]) / np.spacing(np.abs(rounded[~same]))).max(initial=0)


def values(name, *arrays):
    return getattr(torch, name)(*[torch.from_numpy(a.copy()) for a in arrays]).numpy()


@pytest.mark.parametrize(
    ("name", "dtype", "scale", "exact", "bound"),
    [
        ("exp", np.float32, 30, lambda x: np.exp(x), 1.1),
        ("erf", np.float32, 1.5, np.vectorize(math.erf), 2),
        ("sigmoid", np.float32, 10, lambda x: 1 / (1 + np.exp(-x)), 2.5),
        ("sigmoid", np.float64, 10, lambda x: 1 / (1 + np.exp(-x)), 2),
        ("sin", np.float64, 3, np.sin, 1.5),
        ("sin", np.float64, 3e5, np.sin, 1.5),
        ("sin", np.float64, 1e8, np.sin, 1.5),
        ("cos", np.float64, 3, np.cos, 1.5),
        ("cos", np.float64, 3e5, np.cos, 1.5),
    ],
)
def test_accuracy(name, dtype, scale, exact, bound):
    x = (RNG.standard_normal(100_000) * scale).astype(dtype)
    wide = x.astype(np.float64 if dtype is np.float32 else np.longdouble)
    assert units_in_the_last_place(values(name, x), exact(wide)) <= bound


def test_sine_near_its_zeros():
    x = np.arange(-2000, 2000) * (math.pi / 2)
    assert units_in_the_last_place(values("sin", x), np.sin(x.astype(np.longdouble))) <= 1.5
    assert units_in_the_last_place(values("cos", x), np.cos(x.astype(np.longdouble))) <= 1.5


def test_powers():
    x = np.abs(RNG.standard_normal(100_000) * 5).astype(np.float32)
    y = (RNG.standard_normal(100_000) * 12).astype(np.float32)
    with np.errstate(over="ignore", under="ignore"):
        assert units_in_the_last_place(values("pow", x, y), x.astype(np.float64) ** y.astype(np.float64)) <= 1
        whole = np.round(y)
        negative = (-x).astype(np.float64) ** whole.astype(np.float64)
        assert units_in_the_last_place(values("pow", -x, whole), negative) <= 1


@pytest.mark.parametrize(("x", "y"), list(itertools.product(SPECIAL, SPECIAL)))
def test_powers_of_special_values(x, y):
    x, y = np.array([x], np.float32), np.array([y], np.float32)
    with np.errstate(all="ignore"):
        expected = np.float64(x[0]) ** np.float64(y[0])
        expected = np.array([expected]).astype(np.float32)
    found = values("pow", x, y)
    assert units_in_the_last_place(found, expected) <= 1
    assert np.isnan(found[0]) or np.signbit(found[0]) == np.signbit(expected[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1, 1e5, 1e12, 1e30])
def test_remainders_are_exact(dtype, scale):
    x = (RNG.standard_normal(20_000) * scale).astype(dtype)
    y = (RNG.standard_normal(20_000) * RNG.choice([1e-3, 1, 30], 20_000)).astype(dtype)
    x[:2000] = (y[:2000] * np.round(RNG.standard_normal(2000) * 1000)).astype(dtype)  # near whole quotients
    x[-(len(SPECIAL) ** 2) :] = np.repeat(np.array(SPECIAL, dtype), len(SPECIAL))
    y[-(len(SPECIAL) ** 2) :] = np.tile(np.array(SPECIAL, dtype), len(SPECIAL))
    with np.errstate(all="ignore"):
        for name, exact in (("fmod", np.fmod), ("remainder", np.remainder), ("floor_divide", np.floor_divide)):
            found, expected = values(name, x, y), exact(x, y)
            defined = ~((name != "fmod") & np.isinf(y)) & ~((name == "floor_divide") & np.isinf(x))  # NumPy's own ideas
            assert np.array_equal(found[defined], expected[defined], equal_nan=True)


@pytest.mark.parametrize("name", ["exp", "sigmoid", "erf", "sin", "cos"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_result_does_not_depend_on_its_place(name, dtype):
    x = torch.randn(700, dtype=dtype) * 3
    x[::97] = 1e7  # beyond what the fast way of sine serves
    function = getattr(torch, name)
    whole = function(x)
    assert torch.equal(whole, torch.stack([function(v) for v in x]))
    wide = torch.zeros(700, 3, dtype=dtype)
    wide[:, 1] = x
    assert torch.equal(whole, function(wide[:, 1]))
    assert torch.equal(whole, getattr(torch, name + "_")(x))


@pytest.mark.parametrize("name", ["pow", "fmod", "remainder", "floor_divide"])
def test_layouts_of_two_operands(name):
    x, y = torch.rand(300) * 9 + 0.1, torch.rand(300) * 3 + 0.5
    y[7] = 1e-12  # a quotient beyond what the fast way serves
    function = getattr(torch, name)
    whole = function(x, y)
    assert torch.equal(whole, torch.stack([function(a, b) for a, b in zip(x, y, strict=True)]))
    pair = torch.stack([x, y], 1)
    assert torch.equal(whole, function(pair[:, 0], pair[:, 1]))
    assert torch.equal(function(x, 1.7), function(x, torch.full((300,), 1.7)))
    assert torch.equal(function(torch.tensor(5.5), y), function(torch.full((300,), 5.5), y))
    assert torch.equal(whole, getattr(x.clone(), name + "_")(y))
    assert torch.equal(whole, function(x, y, out=y) if name != "floor_divide" else whole)


def test_all_numbers_of_half_precision():
    bits = np.arange(1 << 16, dtype=np.uint16)
    halves = torch.from_numpy(bits.view(np.float16).copy())
    wide = halves.float()
    assert np.array_equal(wide.numpy(), bits.view(np.float16).astype(np.float32), equal_nan=True)
    assert np.array_equal(wide.half().numpy(), bits.view(np.float16), equal_nan=True)
    x = RNG.integers(0, 2**32, 100_001, dtype=np.uint32).view(np.float32)
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    assert np.array_equal(torch.from_numpy(x.copy()).half().numpy(), expected, equal_nan=True)
    strided = torch.from_numpy(np.stack([x, x], 1))[:, 1].half()
    assert (
        strided.numpy().view(np.uint16).tolist() == torch.from_numpy(x.copy()).half().numpy().view(np.uint16).tolist()
    )


EDGES = [*SPECIAL, 5e-324, -5e-324, 2.3e-308, 1.7e308, -1.7e308, 3.4e38, 1e-310]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hypotenuses_and_neighbours(dtype):
    x, y = (RNG.standard_normal((2, 50_000)) * 10 ** RNG.uniform(-30, 30, 50_000)).astype(dtype)
    wide = np.longdouble
    assert units_in_the_last_place(values("hypot", x, y), np.hypot(x.astype(wide), y.astype(wide))) <= 1.5
    with np.errstate(all="ignore"):
        pairs = np.array(list(itertools.product(EDGES, EDGES))).astype(dtype).T.copy()
        large = np.hypot(*pairs.astype(wide))
        assert units_in_the_last_place(values("hypot", *pairs), large) <= 1.5
        for a, b in ((x, y), pairs):
            found, expected = values("nextafter", a, b), np.nextafter(a, b)
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_logarithms_of_sums(name, dtype):
    exact = getattr(np, name)
    x, y = (RNG.standard_normal((2, 50_000)) * 8).astype(dtype)
    found = values(name, x, y)
    expected = exact(x.astype(np.longdouble), y.astype(np.longdouble))
    size = np.maximum(np.abs(x), np.abs(y))  # a sum near zero is a difference of larger terms
    assert (np.abs(found - expected) / np.spacing(np.maximum(size, np.abs(found)))).max() <= 3
    for a, b in itertools.product([-math.inf, math.inf, math.nan, 0.0, 3.0], repeat=2):
        a, b = np.array([a], dtype), np.array([b], dtype)
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(values(name, a, b), exact(a, b), rtol=1e-6)


def _gelu(x):
    return np.array([float(0.5 * v * math.erfc(-v * math.sqrt(0.5))) for v in x])


@pytest.mark.parametrize(
    ("name", "exact", "bound"),
    [
        ("gelu", _gelu, 5e-6),
        ("silu", lambda x: x / (1 + np.exp(-x)), 4e-7),
        ("mish", lambda x: x * np.tanh(np.log1p(np.exp(x))), 6e-7),
        ("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6, 4e-7),
        ("hardsigmoid", lambda x: np.clip(x + 3, 0, 6) / 6, 4e-7),
        ("hardshrink", lambda x: np.where(np.abs(x) <= 0.5, 0, x), 0),
        ("softshrink", lambda x: np.where(np.abs(x) <= 0.5, 0, x - np.copysign(0.5, x)), 2e-7),
        ("leaky_relu", lambda x: np.where(x > 0, x, 0.01 * x), 2e-7),
    ],
)
def test_activations(name, exact, bound):
    function = getattr(torch.nn.functional, name)
    borders = [0.0, 0.5, -0.5, 3.0, -3.0, 40.0, 88.0, 1e4]
    x = np.concatenate([RNG.standard_normal(20_000) * 4, borders]).astype(np.float32)
    wide = x.astype(np.float64)
    found, expected = function(torch.from_numpy(x)).numpy(), exact(wide)
    size = np.where(expected == 0, 1, np.abs(expected))
    distinct = size > 1e-30  # results that vanish in float do so a little earlier or later
    near = np.maximum(size, np.abs(wide) * 0.05) if name.startswith("hards") else size
    assert (np.abs(found - expected) / near)[distinct].max() <= bound
    doubled = function(torch.from_numpy(wide)).numpy()
    assert (np.abs(doubled - expected) / near)[distinct].max() <= max(bound * 1e-8, 1e-15)
    for special in (math.nan, math.inf):
        assert math.isnan(function(torch.tensor(special)).item()) == math.isnan(special)
    one_by_one = torch.stack([function(torch.tensor(float(v))) for v in x[-300:]])
    assert torch.equal(function(torch.from_numpy(x))[-300:], one_by_one)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["gelu", "silu", "mish", "hardswish"])
def test_activations_at_infinity(name, dtype):
    function = getattr(torch.nn.functional, name)
    below, above = function(torch.tensor([-math.inf, math.inf], dtype=dtype)).tolist()
    assert math.isnan(below) and above == math.inf  # -inf times 0
    far = function(torch.tensor(-1e4, dtype=dtype)).item()
    assert far == 0 and math.copysign(1, far) == -1
