"""The generator and its distributions against the reference stream of MT19937, which NumPy has too, and against statistics.

Equality with PyTorch, bit for bit, is tested in tests/oracle/test_random_streams.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight as torch


def words(seed: int, n: int) -> np.ndarray:
    """The first n words of the Mersenne Twister."""
    return np.random.RandomState(seed).randint(0, 2**32, size=n, dtype=np.uint64)


def double_words(seed: int, n: int) -> np.ndarray:
    pairs = words(seed, 2 * n)
    return (pairs[0::2] << np.uint64(32)) | pairs[1::2]


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**32 - 1])
def test_integers_are_words_modulo_the_range(seed: int) -> None:
    torch.manual_seed(seed)
    drawn = torch.randint(-10, 1000, (1500,)).numpy()
    np.testing.assert_array_equal(drawn, (words(seed, 1500) % np.uint64(1010)).astype(np.int64) - 10)


def test_wide_ranges_take_two_words() -> None:
    torch.manual_seed(3)
    drawn = torch.randint(0, 2**40 + 1, (700,)).numpy()
    np.testing.assert_array_equal(drawn, (double_words(3, 700) % np.uint64(2**40 + 1)).astype(np.int64))


def test_uniform_numbers_are_low_bits() -> None:
    torch.manual_seed(8)
    expected = (words(8, 900) & np.uint64(2**24 - 1)).astype(np.float32) * np.float32(2.0**-24)
    np.testing.assert_array_equal(torch.rand(900).numpy(), expected)
    torch.manual_seed(8)
    expected = (double_words(8, 900) & np.uint64(2**53 - 1)).astype(np.float64) * 2.0**-53
    np.testing.assert_array_equal(torch.rand(900, dtype=torch.float64).numpy(), expected)


def test_bernoulli_compares_a_uniform_number() -> None:
    torch.manual_seed(8)
    uniform = (double_words(8, 900) & np.uint64(2**53 - 1)).astype(np.float64) * 2.0**-53
    np.testing.assert_array_equal(torch.empty(900).bernoulli_(0.3).numpy(), (uniform < 0.3).astype(np.float32))


def test_normal_pairs() -> None:
    """Two numbers are the cosine and sine halves of one Box-Muller pair, whose angle is drawn first."""
    torch.manual_seed(21)
    turn, v = (double_words(21, 2) & np.uint64(2**53 - 1)).astype(np.float64) * 2.0**-53
    radius = math.sqrt(-2 * math.log1p(-v))
    expected = [radius * math.cos(2 * math.pi * turn), radius * math.sin(2 * math.pi * turn)]
    np.testing.assert_allclose(torch.randn(2, dtype=torch.float64).numpy(), expected, rtol=1e-15)


@pytest.mark.parametrize("n", [16, 17, 40, 1000])
def test_normal_blocks(n: int) -> None:
    def transform(u: np.ndarray) -> np.ndarray:
        radius, angle = np.sqrt(-2 * np.log(1 - u[:8])), 2 * np.pi * u[8:]
        return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])

    drawn = (words(5, n + 16) & np.uint64(2**24 - 1)).astype(np.float64) * 2.0**-24
    expected = drawn[:n].copy()
    for begin in range(0, n - 15, 16):
        expected[begin : begin + 16] = transform(expected[begin : begin + 16])
    if n % 16:
        expected[n - 16 :] = transform(drawn[n:])
    torch.manual_seed(5)
    np.testing.assert_allclose(torch.randn(n).numpy(), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("n", [0, 1, 2, 17, 1000])
def test_randperm_is_a_permutation(n: int) -> None:
    torch.manual_seed(n)
    assert sorted(torch.randperm(n).tolist()) == list(range(n))


def test_state_brings_a_stream_back() -> None:
    torch.manual_seed(11)
    torch.randn(3)  # one normal number waits
    state = torch.get_rng_state()
    assert state.dtype is torch.uint8
    assert tuple(state.shape) == (5056,)

    def follow() -> list[Any]:
        return [torch.randn(2).tolist(), torch.rand(700).tolist(), torch.randperm(10).tolist()]

    first = follow()
    torch.manual_seed(99)
    torch.set_rng_state(state)
    assert follow() == first


@pytest.mark.parametrize("size", [0, 1, 5048, 5055, 5057])
def test_states_of_a_wrong_size_are_refused(size: int) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state().tolist()
    with pytest.raises(RuntimeError, match=f"5056.*{size}"):
        torch.set_rng_state(torch.zeros(size, dtype=torch.uint8))
    assert torch.get_rng_state().tolist() == before


def test_a_state_that_would_read_past_the_words_is_refused() -> None:
    torch.manual_seed(1)
    torch.rand(2)
    state = torch.get_rng_state().numpy().copy()
    state[8:12] = np.array([624], np.int32).view(np.uint8)  # 623 words left after word 2
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        torch.set_rng_state(torch.from_numpy(state))


REFUSED = {
    "uniform": (lambda: torch.empty(3).uniform_(3, 2), "found from=3 > to=2"),
    "uniform range": (lambda: torch.empty(3).uniform_(-3e38, 3e38), "to-from <= std::numeric_limits"),
    "normal": (lambda: torch.empty(3).normal_(0, -1), "expects std >= 0.0, but found std -1"),
    "log_normal": (lambda: torch.empty(3).log_normal_(0, 0), "expects std > 0.0, but found std=0"),
    "exponential": (lambda: torch.empty(3).exponential_(0), "expects lambda > 0.0, but found lambda=0"),
    "geometric": (lambda: torch.empty(3).geometric_(1), r"expects p to be in \(0, 1\), but got p=1"),
    "bernoulli": (lambda: torch.empty(3).bernoulli_(2), r"expects p to be in \[0, 1\], but got p=2"),
    "cauchy": (lambda: torch.empty(3).cauchy_(0, 0), "expects sigma > 0.0, but found sigma=0"),
    "randint": (lambda: torch.randint(5, 5, (2,)), "'from' to be less than 'to', but got from=5 >= to=5"),
    "poisson": (lambda: torch.poisson(torch.tensor([-1.0])), "expected rate to be non-negative"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_parameters_are_refused_before_anything_is_drawn(name: str) -> None:
    call, message = REFUSED[name]
    torch.manual_seed(4)
    before = torch.get_rng_state().tolist()
    with pytest.raises(RuntimeError, match=message):
        call()
    assert torch.get_rng_state().tolist() == before


N = 40_000
# Of each distribution: a sample, its mean and its standard deviation.
MOMENTS = {
    "uniform": (lambda: torch.rand(N), 0.5, math.sqrt(1 / 12)),
    "normal": (lambda: torch.randn(N), 0.0, 1.0),
    "normal in pairs": (lambda: torch.empty(2 * N)[::2].normal_(), 0.0, 1.0),
    "exponential": (lambda: torch.empty(N).exponential_(2.0), 0.5, 0.5),
    "geometric": (lambda: torch.empty(N).geometric_(0.25), 4.0, math.sqrt(12)),
    "bernoulli": (lambda: torch.empty(N).bernoulli_(0.2), 0.2, 0.4),
    "log_normal": (
        lambda: torch.empty(N).log_normal_(0.0, 0.5),
        math.exp(0.125),
        math.sqrt((math.exp(0.25) - 1) * math.exp(0.25)),
    ),
    "poisson, small": (lambda: torch.poisson(torch.full((N,), 3.0)), 3.0, math.sqrt(3)),
    "poisson, large": (lambda: torch.poisson(torch.full((N,), 300.0)), 300.0, math.sqrt(300)),
    "binomial, small": (lambda: torch.binomial(torch.full((N,), 10.0), torch.full((N,), 0.3)), 3.0, math.sqrt(2.1)),
    "binomial, large": (lambda: torch.binomial(torch.full((N,), 1000.0), torch.full((N,), 0.7)), 700.0, math.sqrt(210)),
    "gamma, small": (lambda: torch._standard_gamma(torch.full((N,), 0.3)), 0.3, math.sqrt(0.3)),
    "gamma, large": (lambda: torch._standard_gamma(torch.full((N,), 7.0)), 7.0, math.sqrt(7)),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_moments(name: str) -> None:
    """Mean and standard deviation lie within 5 standard errors (the latter's by a generous bound for heavy tails)."""
    sample, mean, deviation = MOMENTS[name]
    torch.manual_seed(2024)
    numbers = sample().double().numpy()
    assert abs(numbers.mean() - mean) < 5 * deviation / math.sqrt(N)
    assert abs(numbers.std() - deviation) < 0.05 * deviation


def test_multinomial_frequencies_follow_the_weights() -> None:
    torch.manual_seed(6)
    weights = torch.tensor([1.0, 0.0, 3.0, 6.0])
    drawn = torch.multinomial(weights, N, replacement=True).numpy()
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / N, [0.1, 0, 0.3, 0.6], atol=0.015)
    without = torch.multinomial(weights.expand(N, 4), 2).numpy()
    assert (without != 1).all()
    assert (without[:, 0] != without[:, 1]).all()
    np.testing.assert_allclose(np.bincount(without[:, 0], minlength=4) / N, [0.1, 0, 0.3, 0.6], atol=0.015)
