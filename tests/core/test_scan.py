"""Running sums, products, extremes and log-sum-exps against plain loops."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rushlight as torch

floats = st.lists(st.sampled_from([0.0, -0.0, 1.0, -1.5, 2.0, math.inf, -math.inf, math.nan]), min_size=1, max_size=30)


def layouts(numbers: np.ndarray) -> list[tuple[Any, np.ndarray]]:
    """One array as tensors of several layouts, each with what it holds."""
    x = torch.from_numpy(numbers)
    return [
        (x, numbers),
        (x.permute(2, 0, 1), numbers.transpose(2, 0, 1)),
        (x[::2, :, 1::2], numbers[::2, :, 1::2]),
        (x[:, :1].expand(*numbers.shape), np.broadcast_to(numbers[:, :1], numbers.shape)),
    ]


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 1, 1), (2, 0, 3), (40, 2, 33)])
def test_sums_and_products_along_any_dimension(dim: int, shape: tuple[int, ...]) -> None:
    numbers = np.random.default_rng(0).uniform(0.5, 1.5, shape)
    for x, reference in layouts(numbers):
        np.testing.assert_allclose(torch.cumsum(x, dim).numpy(), np.cumsum(reference, dim), rtol=1e-13)
        np.testing.assert_allclose(torch.cumprod(x, dim).numpy(), np.cumprod(reference, dim), rtol=1e-12)
        expected = np.log(np.cumsum(np.exp(reference), dim))
        np.testing.assert_allclose(torch.logcumsumexp(x, dim).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("dim", [0, 1])
def test_float_runs_in_double(dim: int) -> None:
    """Every float32 output is the exact running sum, rounded once or nearly so; a float accumulator would drift off."""
    numbers = np.random.default_rng(1).standard_normal((3000, 3)).astype(np.float32)
    x = torch.from_numpy(numbers if dim == 0 else numbers.T.copy())
    expected = np.cumsum(numbers.astype(np.float64), 0).astype(np.float32)
    np.testing.assert_array_equal(torch.cumsum(x, dim).numpy(), expected if dim == 0 else expected.T)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_halves_run_in_float(name: str) -> None:
    x = torch.full((3000,), 0.125).to(getattr(torch, name))
    assert torch.cumsum(x, 0)[-1].item() == torch.tensor(375.0).to(getattr(torch, name)).item()


@pytest.mark.parametrize("name", ["bool", "uint8", "int8", "int16", "int32", "int64"])
def test_integers_run_in_int64(name: str) -> None:
    x = torch.tensor([1, 0, 1, 1] * 100).to(getattr(torch, name))
    total = torch.cumsum(x, 0)
    assert total.dtype is torch.int64
    assert total.tolist() == list(itertools.accumulate(x.long().tolist()))
    assert torch.cumprod(x, 0).dtype is torch.int64


def test_integers_wrap_around() -> None:
    x = torch.tensor([2**62, 2**62, 1])
    assert torch.cumsum(x, 0).tolist() == [2**62, -(2**63), -(2**63) + 1]
    assert torch.cumprod(torch.tensor([2**40, 2**23, 2]), 0).tolist() == [2**40, -(2**63), 0]


@pytest.mark.parametrize("largest", [True, False])
@given(floats)
def test_running_extremes(largest: bool, numbers: list[float]) -> None:
    """The last place of the extreme so far; NaN takes over and stays, at its last place."""
    best, place, values, places = math.nan, 0, [], []
    for i, number in enumerate(numbers):
        replaces = number >= best if largest else number <= best
        if i == 0 or math.isnan(number) or (not math.isnan(best) and replaces):
            best, place = number, i
        values.append(best)
        places.append(place)
    function = torch.cummax if largest else torch.cummin
    column = torch.tensor(numbers, dtype=torch.float64).reshape(-1, 1).expand(-1, 3).contiguous()
    for x, line in [(torch.tensor(numbers, dtype=torch.float64), slice(None)), (column, (slice(None), 1))]:
        found = function(x, 0)
        np.testing.assert_array_equal(found.values.numpy()[line], values)
        assert found.indices.numpy()[line].tolist() == places


def test_running_extremes_of_other_types() -> None:
    x = torch.tensor([3, 1, 3, 4, 2])
    for name in ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32"]:
        values, indices = torch.cummax(x.to(getattr(torch, name)), 0)
        assert values.tolist() == [3, 3, 3, 4, 4]
        assert indices.tolist() == [0, 0, 2, 3, 3]
    values, indices = torch.cummin(torch.tensor([True, True, False, True]), 0)
    assert values.tolist() == [True, True, False, False]
    assert indices.tolist() == [0, 1, 2, 2]


def test_logcumsumexp_of_infinities_and_large_numbers() -> None:
    inf = math.inf
    x = torch.tensor([-inf, -inf, 0.0, 1000.0, 1000.0, inf, inf, -inf], dtype=torch.float64)
    expected = [-inf, -inf, 0.0, 1000.0, 1000.0 + math.log(2), inf, inf, inf]
    np.testing.assert_allclose(torch.logcumsumexp(x, 0).numpy(), expected, rtol=1e-15)
    found = torch.logcumsumexp(torch.tensor([1.0, math.nan, 2.0]), 0).tolist()
    assert found[0] == 1.0
    assert all(math.isnan(number) for number in found[1:])


def test_scans_refuse_what_is_no_dimension() -> None:
    x = torch.zeros(2, 3)
    for function in (torch.cumsum, torch.cumprod, torch.cummax, torch.cummin, torch.logcumsumexp):
        with pytest.raises(IndexError, match="out of range"):
            function(x, 2)
