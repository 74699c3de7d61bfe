"""Sums and products that are done two at a time have the bits of one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rushlight as torch
from rushlight import _C

LARGE = 1 << 17  # elements; such results stay pending
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
}


@pytest.fixture
def one_by_one() -> Iterator[Callable[[Callable[[], Any]], Any]]:
    def compute(f: Callable[[], Any]) -> Any:
        _C._set_deferral(False)
        try:
            return f()
        finally:
            _C._set_deferral(True)

    yield compute


def numbers(n: int, seed: int, dtype: Any) -> torch.Tensor:
    """Numbers with zeros of both signs, infinities and NaN among them."""
    x = torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    special = torch.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-40], dtype=dtype)
    at = torch.randint(0, n, (n // 8,), generator=torch.Generator().manual_seed(seed + 1))
    return x.index_copy(0, at, special[torch.arange(len(at)) % len(special)])


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    equal = (a == b) & (a.signbit() == b.signbit())
    return bool((equal | (a.isnan() & b.isnan())).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("outer", OPERATIONS)
@pytest.mark.parametrize("inner", OPERATIONS)
def test_pairs(inner: str, outer: str, dtype: Any, one_by_one: Any) -> None:
    f, g = OPERATIONS[inner], OPERATIONS[outer]
    tensors = [numbers(LARGE, seed, dtype) for seed in (1, 5, 9)]
    for places in itertools.product((True, False), repeat=3):
        a, b, c = [t if place else 1.7 for t, place in zip(tensors, places)]
        if not (places[0] or places[1]):
            continue
        for swapped in (False, True):
            run = lambda: g(c, f(a, b)) if swapped else g(f(a, b), c)  # noqa: E731
            assert same_bits(run(), one_by_one(run)), (places, swapped)


def test_what_is_read_twice_or_kept_is_there(one_by_one: Any) -> None:
    x, y = numbers(LARGE, 3, torch.float32), numbers(LARGE, 4, torch.float32)

    def run() -> tuple[torch.Tensor, ...]:
        product = x * y
        total = product + x
        return product, total, product * product, (total - y) * total, +total

    for ours, theirs in zip(run(), one_by_one(run)):
        assert same_bits(ours, theirs)
    assert all(same_bits(a, b) for a, b in zip(reversed(run()), reversed(one_by_one(run))))


def test_long_chains_and_their_gradients(one_by_one: Any) -> None:
    start = numbers(LARGE, 3, torch.float32).nan_to_num(0.5, 2.0, -2.0)

    def run() -> tuple[torch.Tensor, torch.Tensor]:
        x = start.clone().requires_grad_()
        y = 0.5 * x * (1 + torch.tanh(0.8 * (x + 0.04 * x * x * x)))
        z = y - x * y + (2 - y) * y - 3 + (x - y - 1) * 2
        z.sum().backward()
        return z.detach(), x.grad

    for ours, theirs in zip(run(), one_by_one(run)):
        assert same_bits(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.complex64])
def test_operators_made_of_pairs(dtype: Any) -> None:
    @torch.pointwise
    def combined(a: Any, b: Any, c: Any) -> Any:
        return (a * b + c) * (a - b) - (c + b + a) * c + 2 * a * b

    def plain(a: Any, b: Any, c: Any) -> Any:
        return (a * b + c) * (a - b) - (c + b + a) * c + 2 * a * b

    def some(*shape: int) -> torch.Tensor:
        return torch.arange(torch.zeros(shape).numel()).view(shape).sub(3).mul(2).to(dtype)

    a, b, c = some(3, 4), some(4), some(3, 1)
    exact = dtype in (torch.float32, torch.float64)
    for x, y, z in (
        (a, b, c),
        (a.t()[:3], b[:3], c),
        (a, a.flip(1), a[:, ::1]),
        (b, b[:1], c),
        (a[::2, ::2], b[::2], c[::2]),
    ):
        ours, theirs = combined(x, y, z), plain(x, y, z)
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        if exact:
            assert torch.equal(ours, theirs)
        else:
            torch.testing.assert_close(ours, theirs)
