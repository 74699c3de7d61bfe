"""Sorting, selecting, distinct elements and bins against Python's sort and NumPy, NaN and ties included."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rushlight as torch

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
LENGTHS = [0, 1, 2, 3, 17, 64, 256, 257, 1000]  # both sides of the switch from comparisons to a radix sort

floats = st.lists(st.sampled_from([0.0, -0.0, 1.0, -1.5, 2.0, math.inf, -math.inf, math.nan]), min_size=1, max_size=40)


def sample(name: str, n: int, seed: int = 0) -> Any:
    generator = np.random.default_rng(seed)
    low, high = (0, 12) if name == "uint8" else (-6, 6)
    return torch.from_numpy(generator.integers(low, high, n)).to(getattr(torch, name))


def wide_sample(name: str, n: int) -> Any:
    generator = np.random.default_rng(1)
    if name in INTEGERS:
        limits = np.iinfo(name)
        return torch.from_numpy(generator.integers(limits.min, limits.max, n, dtype=name, endpoint=True))
    return torch.from_numpy(generator.standard_normal(n) * 1000).to(getattr(torch, name))


def order_of(numbers: list[Any], descending: bool = False) -> list[int]:
    """Indices in stable order, NaN greatest."""

    def key(i: int) -> tuple[bool, float]:
        nan = math.isnan(numbers[i])
        return nan, 0.0 if nan else numbers[i]

    if descending:
        return sorted(range(len(numbers)), key=lambda i: tuple(-part for part in key(i)))
    return sorted(range(len(numbers)), key=key)


def same(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(x == y or (math.isnan(x) and math.isnan(y)) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("descending", [False, True])
def test_sort_is_stable(name: str, n: int, descending: bool) -> None:
    for x in [sample(name, n)] + ([wide_sample(name, n)] if name != "bool" else []):
        numbers = x.tolist()
        values, indices = torch.sort(x, descending=descending, stable=True)
        expected = order_of(numbers, descending)
        assert indices.tolist() == expected
        assert values.tolist() == [numbers[i] for i in expected]
        assert values.dtype is x.dtype
        assert indices.dtype is torch.int64


@given(floats, st.booleans())
def test_sort_with_nan_and_signed_zeros(numbers: list[float], descending: bool) -> None:
    values, indices = torch.sort(torch.tensor(numbers, dtype=torch.float64), descending=descending, stable=True)
    expected = order_of(numbers, descending)
    assert indices.tolist() == expected
    assert same(values.tolist(), [numbers[i] for i in expected])
    assert [math.copysign(1, v) for v in values.tolist() if v == 0] == [
        math.copysign(1, numbers[i]) for i in expected if numbers[i] == 0
    ]


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_sort_along_any_dimension_of_any_layout(dim: int) -> None:
    numbers = np.random.default_rng(3).integers(0, 50, (4, 5, 6))
    for x, reference in [
        (torch.from_numpy(numbers), numbers),
        (torch.from_numpy(numbers).permute(2, 0, 1), numbers.transpose(2, 0, 1)),
        (torch.from_numpy(numbers)[::2, :, ::3], numbers[::2, :, ::3]),
        (torch.from_numpy(numbers[:, :1]).expand(4, 5, 6), np.broadcast_to(numbers[:, :1], (4, 5, 6))),
    ]:
        np.testing.assert_array_equal(torch.sort(x, dim=dim).values.numpy(), np.sort(reference, axis=dim))
        np.testing.assert_array_equal(
            torch.argsort(x, dim=dim, stable=True).numpy(), np.argsort(reference, axis=dim, kind="stable")
        )
        np.testing.assert_array_equal(x.numpy(), reference)


@pytest.mark.parametrize("largest", [True, False])
@given(numbers=floats, data=st.data())
def test_topk(largest: bool, numbers: list[float], data: st.DataObject) -> None:
    k = data.draw(st.integers(0, len(numbers)))
    values, indices = torch.topk(torch.tensor(numbers, dtype=torch.float64), k, largest=largest)
    expected = [numbers[i] for i in order_of(numbers, largest)[:k]]
    assert same(values.tolist(), expected)
    assert same([numbers[i] for i in indices.tolist()], expected)
    assert len(set(indices.tolist())) == k


def test_topk_few_of_many() -> None:
    x = torch.from_numpy(np.random.default_rng(4).permutation(5000))
    values, indices = torch.topk(x, 7)
    assert values.tolist() == list(range(4999, 4992, -1))
    assert x[indices].tolist() == values.tolist()
    unsorted = torch.topk(x, 900, sorted=False).values
    assert sorted(unsorted.tolist()) == list(range(4100, 5000))


@given(floats)
def test_kthvalue_and_medians(numbers: list[float]) -> None:
    x, n = torch.tensor(numbers, dtype=torch.float64), len(numbers)
    ordered = [numbers[i] for i in order_of(numbers)]
    for k in range(1, n + 1):
        value, index = torch.kthvalue(x, k)
        assert same([value.item(), numbers[index.item()]], [ordered[k - 1]] * 2)

    value, index = torch.median(x, 0)
    first_nan = next((i for i in range(n) if math.isnan(numbers[i])), None)
    assert index.item() == (order_of(numbers)[(n - 1) // 2] if first_nan is None else first_nan)
    assert same([value.item(), torch.median(x).item()], [numbers[index.item()]] * 2)

    kept = [number for number in ordered if not math.isnan(number)]
    expected = kept[(len(kept) - 1) // 2] if kept else math.nan
    assert same([torch.nanmedian(x, 0).values.item(), torch.nanmedian(x).item()], [expected] * 2)


@pytest.mark.parametrize("k", [0, 4, -1])
def test_selections_out_of_range_are_refused(k: int) -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    with pytest.raises(RuntimeError, match="out of range"):
        torch.kthvalue(x, k)
    if k:
        with pytest.raises(RuntimeError, match="out of range"):
            torch.topk(x, k)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=60))
def test_mode_is_the_smallest_of_the_most_frequent(numbers: list[int]) -> None:
    value, index = torch.mode(torch.tensor(numbers))
    counts = Counter(numbers)
    assert value.item() == min(number for number in counts if counts[number] == max(counts.values()))
    assert numbers[index.item()] == value.item()


@given(st.lists(st.integers(-4, 4), max_size=50))
def test_unique(numbers: list[int]) -> None:
    x = torch.tensor(numbers, dtype=torch.int64)
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    expected, expected_inverse, expected_counts = np.unique(
        np.array(numbers, np.int64), return_inverse=True, return_counts=True
    )
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == (
        expected.tolist(),
        expected_inverse.tolist(),
        expected_counts.tolist(),
    )

    values, inverse, counts = torch.unique_consecutive(x, return_inverse=True, return_counts=True)
    runs = [i for i in range(len(numbers)) if i == 0 or numbers[i] != numbers[i - 1]]
    assert values.tolist() == [numbers[i] for i in runs]
    assert [values.tolist()[i] for i in inverse.tolist()] == numbers
    assert counts.tolist() == np.diff([*runs, len(numbers)]).tolist()


def test_unique_keeps_every_nan() -> None:
    x = torch.tensor([math.nan, 1.0, math.nan, 0.0, -0.0])
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    assert same(values.tolist(), [0.0, 1.0, math.nan, math.nan])
    assert sorted([inverse[0].item(), inverse[2].item()]) == [2, 3]
    assert counts.tolist() == [2, 1, 1, 1]
    assert same(torch.unique_consecutive(torch.tensor([math.nan, math.nan])).tolist(), [math.nan, math.nan])


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30))
def test_unique_rows(rows: list[tuple[int, int]]) -> None:
    x = torch.tensor(rows)
    values, inverse, counts = torch.unique(x, dim=0, return_inverse=True, return_counts=True)
    counter = Counter(rows)
    assert [tuple(row) for row in values.tolist()] == sorted(counter)
    assert counts.tolist() == [counter[row] for row in sorted(counter)]
    assert values[inverse].tolist() == x.tolist()
    assert torch.unique(x.t(), dim=1).tolist() == values.t().tolist()
    runs = [row for i, row in enumerate(rows) if i == 0 or row != rows[i - 1]]
    assert [tuple(row) for row in torch.unique_consecutive(x, dim=0).tolist()] == runs


@given(st.lists(st.integers(-5, 5), max_size=20), st.lists(st.integers(-6, 6), max_size=20), st.booleans())
def test_searchsorted(boundaries: list[int], values: list[int], right: bool) -> None:
    b, v = torch.tensor(boundaries, dtype=torch.int32), torch.tensor(values, dtype=torch.int32)
    expected = np.searchsorted(np.sort(b.numpy()), v.numpy(), side="right" if right else "left")
    ordered = torch.sort(b).values
    np.testing.assert_array_equal(torch.searchsorted(ordered, v, right=right).numpy(), expected)
    np.testing.assert_array_equal(torch.bucketize(v, ordered, right=right, out_int32=True).numpy(), expected)
    sorter = torch.argsort(b)
    np.testing.assert_array_equal(torch.searchsorted(b, v, right=right, sorter=sorter).numpy(), expected)


def test_searchsorted_puts_nan_at_the_end() -> None:
    b = torch.tensor([1.0, 2.0, 3.0])
    for right in (False, True):
        assert torch.searchsorted(b, torch.tensor([math.nan, math.inf, -math.inf]), right=right).tolist() == [3, 3, 0]


def test_histc() -> None:
    x = torch.tensor([0.0, 1.0, 0.5, 0.25, 2.0, -1.0, math.nan, 0.999])
    assert torch.histc(x, bins=4, min=0, max=1).tolist() == [1, 1, 1, 2]
    assert torch.histc(torch.tensor([1.0, 2.0, 4.0]), bins=3).tolist() == [1, 1, 1]
    assert torch.histc(torch.tensor([2.0, 2.0]), bins=5).tolist() == [0, 0, 2, 0, 0]


def test_bincount() -> None:
    x = torch.tensor([1, 3, 1, 0])
    assert torch.bincount(x).tolist() == [1, 2, 0, 1]
    assert torch.bincount(x, minlength=6).tolist() == [1, 2, 0, 1, 0, 0]
    weighted = torch.bincount(x, weights=torch.tensor([0.5, 1.0, 0.25, 2.0]))
    assert weighted.tolist() == [2.0, 0.75, 0.0, 1.0]
    with pytest.raises(RuntimeError, match="1-d non-negative integral"):
        torch.bincount(torch.tensor([1, -1]))


def _orders(n: int) -> list[np.ndarray]:
    """Numbers in the orders that selections by pivots find hard, and in others."""
    generator = np.random.default_rng(n)
    rising = np.arange(n)
    halves = np.concatenate([rising[::2], rising[1::2][::-1]])
    return [
        rising,
        rising[::-1].copy(),
        halves,
        rising * 0,
        rising % 3,
        generator.permutation(n),
        generator.integers(0, 9, n),
    ]


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "uint8", "int64"])
@pytest.mark.parametrize("n", [31, 33, 200, 511, 513, 5000])
def test_medians_of_longer_lines(name: str, n: int) -> None:
    for numbers in _orders(n):
        x = torch.from_numpy(numbers % 200 if name == "uint8" else numbers).to(getattr(torch, name))
        at = np.argsort(x.numpy(), kind="stable")[(n - 1) // 2]
        value, place = x.median(0)
        assert (value.item(), place.item()) == (x[at].item(), at)
        assert x.median().item() == x[at].item()
    y = torch.from_numpy(np.random.default_rng(0).standard_normal(n))
    y[::4] = math.nan
    rest = np.sort(y.numpy()[~np.isnan(y.numpy())])
    assert y.nanmedian().item() == rest[(len(rest) - 1) // 2]
    assert y.median(0)[1].item() == 0 and math.isnan(y.median().item())


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [1, 3, 15])
def test_topk_few_of_many_in_any_order(k: int, largest: bool) -> None:
    for numbers in _orders(1001):
        x = torch.from_numpy(numbers.astype(np.float32))
        x[500] = math.nan
        wide = torch.zeros(1001, 2)
        wide[:, 1] = x
        for line in (x, wide[:, 1]):
            values, places = line.topk(k, largest=largest)
            expected = x.sort(descending=largest)[0][:k]
            assert torch.equal(values.nan_to_num(-7), expected.nan_to_num(-7))
            assert torch.equal(x[places].nan_to_num(-7), values.nan_to_num(-7))
            assert len(set(places.tolist())) == k


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9, 1000])
def test_searchsorted_in_sequences_of_any_length(n: int, right: bool) -> None:
    generator = np.random.default_rng(n)
    boundaries, values = np.sort(generator.integers(0, n + 1, n)), generator.integers(-1, n + 2, 10_000)
    expected = np.searchsorted(boundaries, values, side="right" if right else "left")
    b, v = torch.from_numpy(boundaries), torch.from_numpy(values)
    assert torch.searchsorted(b, v, right=right).numpy().tolist() == expected.tolist()
    assert torch.searchsorted(b.flip(0), v, right=right, sorter=torch.arange(n).flip(0)).tolist() == expected.tolist()
    b = b.double()
    if n > 2:
        b[-1] = math.nan  # not above anything: found as bisection finds it
        few = torch.searchsorted(b, v[:1].double(), right=right)
        assert torch.searchsorted(b, v.double(), right=right)[0] == few[0]


@pytest.mark.parametrize("bins", [1, 5, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("name", INTEGERS)
def test_bincount_of_many(name: str, bins: int) -> None:
    numbers = np.random.default_rng(bins).integers(0, min(bins, np.iinfo(name).max), 70_003).astype(name)
    assert torch.bincount(torch.from_numpy(numbers)).tolist() == np.bincount(numbers).tolist()
