"""Random numbers as programs meet them: the streams of seed 0, generators, forms, histories, refusals.

The distributions themselves are tested in tests/core/test_distributions.py, equality with PyTorch in tests/oracle.
"""

from __future__ import annotations

import copy
import gc
import math
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch

# The first numbers of seed 0, which are PyTorch's.
STREAMS: dict[str, tuple[Callable[[], Any], list[float]]] = {
    "rand": (lambda: torch.rand(3), [0.49625658988952637, 0.7682217955589294, 0.08847743272781372]),
    "rand, double": (
        lambda: torch.rand(3, dtype=torch.float64),
        [0.9700530018065531, 0.707819864399788, 0.45938294312745087],
    ),
    "randn, double": (
        lambda: torch.randn(3, dtype=torch.float64),
        [1.5409961082440433, -0.2934289057609464, -2.1787893820745574],
    ),
    "randn, in blocks": (lambda: torch.randn(17)[-3:], [0.946298360824585, -0.843676745891571, 0.9318265914916992]),
    "randint": (lambda: torch.randint(100, (5,)), [44, 39, 33, 60, 63]),
    "random_": (lambda: torch.empty(4, dtype=torch.int16).random_(), [2732, 10799, 9845, 19648]),
    "randperm": (lambda: torch.randperm(7), [4, 0, 5, 3, 2, 6, 1]),
    "bernoulli": (lambda: torch.bernoulli(torch.full((8,), 0.5)), [1, 0, 1, 1, 1, 0, 1, 0]),
    "multinomial": (lambda: torch.multinomial(torch.tensor([1.0, 2.0, 3.0]), 3), [2, 1, 0]),
    "multinomial, again": (lambda: torch.multinomial(torch.tensor([1.0, 2.0, 3.0]), 5, True), [2, 2, 1, 2, 2]),
    "poisson": (lambda: torch.poisson(torch.full((5,), 4.0)), [7, 3, 5, 4, 6]),
    "binomial": (lambda: torch.binomial(torch.full((5,), 10.0), torch.full((5,), 0.4)), [6, 4, 5, 4, 5]),
    "exponential_": (
        lambda: torch.empty(3).exponential_(),
        [3.508326292037964, 1.2303847074508667, 0.615044116973877],
    ),
    "geometric_": (lambda: torch.empty(3).geometric_(0.2), [1, 2, 4]),
    "dropout": (lambda: torch.dropout(torch.ones(8), 0.5, True), [0, 0, 2, 0, 0, 0, 2, 2]),
}


@pytest.mark.parametrize("name", STREAMS)
def test_the_stream_of_seed_0(name: str) -> None:
    draw, expected = STREAMS[name]
    torch.manual_seed(0)
    # logarithms and cosines may differ in the last bit between C libraries
    np.testing.assert_allclose(draw().tolist(), expected, rtol=3e-7)


def test_the_state_of_seed_0_in_bytes() -> None:
    torch.manual_seed(0)
    state = torch.get_rng_state().numpy()
    assert state.dtype == np.uint8
    assert state[:32].tolist() == [0] * 8 + [1, 0, 0, 0, 1] + [0] * 19
    words = state[24:5016].view(np.uint64)
    assert words[1:3].tolist() == [1, 1812433255]  # init_genrand: 1812433253 (w ^ w >> 30) + i, from w = 0


# --- the default generator --------------------------------------------------------------------------------------------


def test_manual_seed_gives_the_default_generator() -> None:
    assert torch.manual_seed(5) is torch.default_generator
    assert torch.initial_seed() == torch.default_generator.initial_seed() == 5
    assert torch.manual_seed(-1).initial_seed() == 2**64 - 1
    assert torch.manual_seed(2**64 - 1).initial_seed() == 2**64 - 1
    assert torch.manual_seed("12").initial_seed() == 12
    assert torch.random.manual_seed is torch.manual_seed


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seeds_of_more_than_64_bits_are_refused(seed: int) -> None:
    torch.manual_seed(9)
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        torch.manual_seed(seed)
    assert torch.initial_seed() == 9


def test_seed_seeds_by_chance() -> None:
    first, second = torch.seed(), torch.seed()
    assert first != second
    assert torch.initial_seed() == second
    assert 0 <= first < 2**64


def test_fork_rng() -> None:
    torch.manual_seed(3)
    with torch.random.fork_rng():
        torch.rand(10)
        torch.manual_seed(4)
    inside_out = torch.rand(2).tolist()
    torch.manual_seed(3)
    assert torch.rand(2).tolist() == inside_out
    with pytest.raises(KeyError), torch.random.fork_rng(devices=[]):
        torch.rand(5)
        raise KeyError("from the block")
    after = torch.rand(1).item()
    torch.manual_seed(3)
    assert torch.rand(3)[2].item() == after
    torch.manual_seed(3)
    with torch.random.fork_rng(enabled=False):
        torch.rand(3)
    drawn = torch.rand(1).item()
    torch.manual_seed(3)
    assert torch.rand(4)[3].item() == drawn


# --- generators -------------------------------------------------------------------------------------------------------


def test_generators_are_independent() -> None:
    torch.manual_seed(0)
    expected = torch.rand(2).tolist()
    generator = torch.Generator()
    assert generator.initial_seed() == 67280421310721
    assert generator.device == torch.device("cpu")
    assert generator.manual_seed(0) is generator
    torch.manual_seed(77)
    state = torch.get_rng_state().tolist()
    assert torch.rand(2, generator=generator).tolist() == expected
    assert torch.get_rng_state().tolist() == state


def test_every_way_to_draw_takes_a_generator() -> None:
    x = torch.full((20,), 0.5)
    draws: list[Callable[..., Any]] = [
        lambda **k: torch.rand(3, **k),
        lambda **k: torch.randn(3, **k),
        lambda **k: torch.randint(9, (3,), **k),
        lambda **k: torch.randint(1, 9, (3,), **k),
        lambda **k: torch.randperm(5, **k),
        lambda **k: torch.normal(x, x, **k),
        lambda **k: torch.normal(x, 1.0, **k),
        lambda **k: torch.normal(1.0, x, **k),
        lambda **k: torch.normal(0.0, 1.0, (3,), **k),
        lambda **k: torch.rand_like(x, **k),
        lambda **k: torch.randn_like(x, **k),
        lambda **k: torch.randint_like(x, 9, **k),
        lambda **k: torch.bernoulli(x, **k),
        lambda **k: torch.bernoulli(x, 0.5, **k),
        lambda **k: torch.poisson(x, **k),
        lambda **k: torch.binomial(x, x, **k),
        lambda **k: torch.multinomial(x, 3, **k),
        lambda **k: torch._standard_gamma(x, **k),
        lambda **k: torch._sample_dirichlet(x, **k),
        lambda **k: torch.rrelu(-x, 0.1, 0.9, True, **k),
        lambda **k: torch.empty(3).normal_(**k),
        lambda **k: torch.empty(3).uniform_(**k),
        lambda **k: torch.empty(3).random_(**k),
        lambda **k: torch.empty(3).random_(5, **k),
        lambda **k: torch.empty(3).random_(0, 5, **k),
        lambda **k: torch.empty(3).bernoulli_(**k),
        lambda **k: torch.empty(3).exponential_(**k),
        lambda **k: torch.empty(3).geometric_(0.5, **k),
        lambda **k: torch.empty(3).log_normal_(**k),
        lambda **k: torch.empty(3).cauchy_(**k),
    ]
    for draw in draws:
        generator = torch.Generator().manual_seed(8)
        torch.manual_seed(8)
        assert draw(generator=generator).tolist() == draw().tolist()
        torch.manual_seed(0)
        before = torch.get_rng_state().tolist()
        draw(generator=generator)
        assert torch.get_rng_state().tolist() == before
        with pytest.raises(TypeError, match="generator"):
            draw(generator=3)


def test_states_travel_between_generators() -> None:
    first = torch.Generator().manual_seed(4)
    torch.randn(3, generator=first)  # one normal number waits
    for second in (
        torch.Generator().set_state(first.get_state()),
        first.clone_state(),
        copy.copy(first),
        copy.deepcopy(first),
        pickle.loads(pickle.dumps(first)),
    ):
        assert second is not first
        assert second.initial_seed() == 4
        assert torch.randn(5, generator=second).tolist() == torch.randn(5, generator=first.clone_state()).tolist()


def test_what_a_generator_refuses() -> None:
    generator = torch.Generator().manual_seed(1)
    before = generator.get_state().tolist()
    refused: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: generator.manual_seed(1.5), RuntimeError, "manual_seed expected a long, but got float"),
        (lambda: generator.manual_seed(True), RuntimeError, "manual_seed expected a long, but got bool"),
        (lambda: generator.set_state(3), TypeError, "expected a torch.ByteTensor, but got int"),
        (lambda: generator.set_state(torch.zeros(5056)), TypeError, "RNG state must be a torch.ByteTensor"),
        (lambda: generator.set_state(torch.zeros(3, dtype=torch.uint8)), RuntimeError, "of size 5056 but .* to be 3"),
        (lambda: generator.set_state(torch.zeros(5056, dtype=torch.uint8)), RuntimeError, "Invalid mt19937 state"),
        (
            lambda: generator.set_state(torch.zeros(5056, 2, dtype=torch.uint8)[:, 0]),
            RuntimeError,
            "RNG state must be contiguous",
        ),
        (generator.graphsafe_get_state, NotImplementedError, "graphsafe_get_state is not supported"),
        (lambda: generator.graphsafe_set_state(generator), NotImplementedError, "graphsafe_set_state is not supported"),
        (lambda: generator.get_offset(), RuntimeError, "CPU Generator does not use offset"),
        (lambda: torch.Generator(device="nowhere"), RuntimeError, "nowhere"),
    ]
    for call, error, message in refused:
        with pytest.raises(error, match=message):
            call()
        assert generator.get_state().tolist() == before


def test_generators_die() -> None:
    generator = torch.Generator()
    gone = weakref.ref(generator)
    del generator
    gc.collect()
    assert gone() is None


# --- factories --------------------------------------------------------------------------------------------------------


def test_sizes_and_types_of_factories() -> None:
    assert torch.rand(2, 3).shape == (2, 3)
    assert torch.rand((2, 3)).shape == torch.randn([2, 3]).shape == torch.rand(size=(2, 3)).shape
    assert torch.rand([]).shape == ()
    assert torch.randint(5, (2,)).dtype is torch.int64
    assert torch.randint(low=2, high=3, size=(4,)).tolist() == [2] * 4
    assert torch.randperm(4, dtype=torch.float64).dtype is torch.float64
    assert torch.rand(2, requires_grad=True).is_leaf
    assert torch.rand(2, requires_grad=True).requires_grad
    like = torch.empty(3, 4, dtype=torch.float64).t()
    assert torch.rand_like(like).stride() == like.stride()
    assert torch.rand_like(like, memory_format=torch.contiguous_format).stride() == (3, 1)
    assert torch.randint_like(like, 3).dtype is torch.float64
    assert torch.rand_like(torch.zeros(2, dtype=torch.int64), dtype=torch.float32).dtype is torch.float32


def test_out() -> None:
    out = torch.empty(5)
    torch.manual_seed(1)
    assert torch.rand(2, out=out) is out
    torch.manual_seed(1)
    assert out.tolist() == torch.rand(2).tolist()
    spread = torch.empty(16, 2)[:, 0]  # numbers go into the memory as it lies: not the blocks of contiguous tensors
    torch.manual_seed(1)
    torch.randn(16, out=spread)
    torch.manual_seed(1)
    assert spread.tolist() == torch.empty(16, 2)[:, 0].normal_().tolist()
    whole = torch.empty(2, dtype=torch.int64)
    torch.bernoulli(torch.ones(2), out=whole)
    assert whole.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="dtype Float does not match dtype of out parameter"):
        torch.rand(2, dtype=torch.float32, out=torch.empty(2, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.rand(2, out=torch.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match="multinomial expects Long tensor out, got: Float"):
        torch.multinomial(torch.ones(2), 1, out=torch.empty(1))


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "negative size": (lambda: torch.rand(-1), RuntimeError, "negative dimension"),
    "size of another type": (lambda: torch.rand(2.0), TypeError, "must be tuple of ints, not float"),
    "whole numbers": (lambda: torch.rand(2, dtype=torch.int64), NotImplementedError, "not implemented for 'Long'"),
    "normal whole numbers": (
        lambda: torch.randn(2, dtype=torch.bool),
        NotImplementedError,
        "not implemented for 'Bool'",
    ),
    "gradients of whole numbers": (
        lambda: torch.randint(3, (2,), requires_grad=True),
        RuntimeError,
        "Only Tensors of floating point",
    ),
    "range of a type": (
        lambda: torch.randint(300, (2,), dtype=torch.uint8),
        RuntimeError,
        "to - 1 is out of bounds for unsigned char",
    ),
    "permutation of a type": (lambda: torch.randperm(2050, dtype=torch.float16), RuntimeError, "greater than 2049"),
    "permutation of bool": (lambda: torch.randperm(2, dtype=torch.bool), NotImplementedError, "'Bool'"),
    "std": (lambda: torch.normal(torch.zeros(2), -torch.ones(2)), RuntimeError, "all elements of std >= 0.0"),
    "shapes": (lambda: torch.normal(torch.zeros(2), torch.ones(3)), RuntimeError, "must match the size of tensor b"),
    "probability": (lambda: torch.bernoulli(torch.tensor([0.5, 1.5])), RuntimeError, "Expected p_in >= 0 && p_in <= 1"),
    "probability NaN": (lambda: torch.bernoulli(torch.tensor([math.nan])), RuntimeError, "Expected p_in"),
    "whole probability": (lambda: torch.bernoulli(torch.tensor([1])), NotImplementedError, "'Long'"),
    "count": (lambda: torch.binomial(torch.ones(2).long(), torch.ones(2)), ValueError, "for count, got: Long"),
    "two types": (lambda: torch.binomial(torch.ones(2), torch.ones(2).double()), RuntimeError, "Found dtype Double"),
    "no samples": (lambda: torch.multinomial(torch.ones(2), 0), RuntimeError, "cannot sample n_sample <= 0"),
    "too many samples": (lambda: torch.multinomial(torch.ones(2), 3), RuntimeError, "samples without replacement"),
    "weights of 3 dims": (
        lambda: torch.multinomial(torch.ones(2, 2, 2), 1),
        RuntimeError,
        "prob_dist must be 1 or 2 dim",
    ),
    "no weights": (lambda: torch.multinomial(torch.ones(0), 1, True), RuntimeError, "empty dimension"),
    "dropout": (lambda: torch.dropout(torch.ones(2), 1.5, True), RuntimeError, "between 0 and 1, but got 1.5"),
    "dropout of whole numbers": (lambda: torch.dropout(torch.ones(2).long(), 0.5, True), RuntimeError, "Long"),
    "channels": (lambda: torch.feature_dropout(torch.ones(2), 0.5, True), RuntimeError, "at least 2 dimensions"),
    "slopes": (lambda: torch.rrelu(torch.ones(2), 0.5, 0.1), RuntimeError, "Lower bound should be less"),
    "expanded": (lambda: torch.zeros(1).expand(3).normal_(), RuntimeError, "single memory location"),
    "leaf": (lambda: torch.zeros(3, requires_grad=True).normal_(), RuntimeError, "a leaf Variable that requires grad"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_leave_the_generator_alone(name: str) -> None:
    call, error, message = REFUSED[name]
    torch.manual_seed(4)
    before = torch.get_rng_state().tolist()
    with pytest.raises(error, match=message):
        call()
    assert torch.get_rng_state().tolist() == before


# --- histories --------------------------------------------------------------------------------------------------------

FILLS: dict[str, Callable[[Any], Any]] = {
    "NormalBackward0": lambda x: x.normal_(),
    "UniformBackward0": lambda x: x.uniform_(),
    "RandomBackward2": lambda x: x.random_(),
    "BernoulliBackward2": lambda x: x.bernoulli_(),
    "ExponentialBackward0": lambda x: x.exponential_(),
    "GeometricBackward0": lambda x: x.geometric_(0.5),
    "LogNormalBackward0": lambda x: x.log_normal_(),
    "CauchyBackward0": lambda x: x.cauchy_(),
}


@pytest.mark.parametrize("name", FILLS)
def test_a_filled_tensor_forgets_what_it_was(name: str) -> None:
    leaf = torch.ones(3, requires_grad=True)
    x = leaf * 2
    version = x._version
    assert FILLS[name](x) is x
    assert x._version == version + 1
    assert x.grad_fn.name() == name
    (x * 3).sum().backward()
    assert leaf.grad.tolist() == [0, 0, 0]


def test_a_saved_tensor_that_is_drawn_anew_is_noticed() -> None:
    x = torch.ones(3, requires_grad=True) * 2
    y = x * x
    x.normal_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_view_that_is_drawn_anew_changes_its_base() -> None:
    leaf = torch.ones(4, requires_grad=True)
    base = leaf * 2
    base[1:3].uniform_()
    base.sum().backward()
    assert leaf.grad.tolist() == [2, 0, 0, 2]


def test_parameters_of_samples_get_zeros() -> None:
    mean, std = torch.zeros(2, 1, requires_grad=True), torch.ones(3, requires_grad=True)
    torch.normal(mean, std).sum().backward()
    assert mean.grad.tolist() == [[0], [0]]
    assert std.grad.tolist() == [0, 0, 0]
    p = torch.full((2,), 0.5, requires_grad=True)
    (torch.bernoulli(p) + torch.poisson(p) + torch.normal(p, 1.0) + torch.normal(1.0, p)).sum().backward()
    assert p.grad.tolist() == [0, 0]
    q = torch.full((2,), 0.5, requires_grad=True)
    torch.empty(2).bernoulli_(q).sum().backward()
    assert q.grad.tolist() == [0, 0]


@pytest.mark.parametrize("name", ["binomial", "_sample_dirichlet"])
def test_what_has_no_derivative_says_so(name: str) -> None:
    p = torch.full((2,), 0.5, requires_grad=True)
    sample = torch.binomial(p, p) if name == "binomial" else torch._sample_dirichlet(p)
    with pytest.raises(RuntimeError, match=f"derivative for aten::{name} is not implemented"):
        sample.sum().backward()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dropout_scales_what_it_keeps_and_its_gradient(dtype: Any) -> None:
    x = torch.linspace(1, 2, 200, dtype=dtype).requires_grad_()
    y = torch.dropout(x, 0.25, True)
    assert y.grad_fn.name() == "MulBackward0"
    kept = y.detach().numpy() != 0
    assert 110 < kept.sum() < 190
    np.testing.assert_allclose(y.detach().numpy(), np.where(kept, x.detach().numpy() / 0.75, 0), rtol=1e-6)
    (grad,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose(grad.detach().numpy(), np.where(kept, 1 / 0.75, 0), rtol=1e-6)
    weight = torch.ones(200, dtype=dtype, requires_grad=True)
    (grad,) = torch.autograd.grad((torch.dropout(x, 0.25, True) * weight).sum(), x, create_graph=True)
    assert set((grad != 0).tolist()) == {False, True}
    (mixed,) = torch.autograd.grad(grad.sum(), weight)  # the mask again
    np.testing.assert_allclose(mixed.numpy(), grad.detach().numpy())


def test_dropout_at_the_edges() -> None:
    x = torch.tensor([1.0, -1.0, math.inf, math.nan], requires_grad=True)
    assert torch.dropout(x, 0.0, True) is x
    assert torch.dropout(x, 0.5, False) is x
    dropped = torch.dropout(x, 1.0, True)
    np.testing.assert_array_equal(dropped.detach().numpy(), [0, 0, math.nan, math.nan])
    assert torch.dropout(torch.empty(0), 0.5, True).shape == (0,)
    y = torch.ones(100)
    assert torch.dropout_(y, 0.5, True) is y
    assert set(y.tolist()) == {0.0, 2.0}
    with pytest.raises(RuntimeError, match="a leaf Variable"):
        torch.dropout_(x, 0.5, True)


def test_native_dropout_gives_its_mask() -> None:
    x = torch.ones(50, requires_grad=True)
    y, mask = torch.native_dropout(x, 0.5, True)
    assert mask.dtype is torch.bool
    assert y.grad_fn.name() == "NativeDropoutBackward0"
    assert not mask.requires_grad
    np.testing.assert_array_equal(y.detach().numpy(), 2.0 * mask.numpy())
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2.0 * mask.numpy())
    y, mask = torch.native_dropout(x, 0.5, False)
    assert mask.numpy().all()
    np.testing.assert_array_equal(y.detach().numpy(), x.detach().numpy())


@pytest.mark.parametrize("inplace", [False, True])
def test_feature_dropout_drops_channels(inplace: bool) -> None:
    x = torch.ones(8, 16, 3, 2)
    y = (torch.feature_dropout_ if inplace else torch.feature_dropout)(x, 0.5, True)
    assert (y is x) == inplace
    channels = y.reshape(128, 6).numpy()
    assert (channels == channels[:, :1]).all()
    assert set(channels[:, 0].tolist()) == {0.0, 2.0}


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    torch.manual_seed(0)
    y = torch.alpha_dropout(torch.randn(100_000), 0.3, True).numpy()
    assert abs(y.mean()) < 0.02
    assert abs(y.std() - 1) < 0.02


def test_rrelu_gradient_is_its_slope() -> None:
    x = torch.tensor([1.0, -1.0, -2.0, 0.0, 3.0], requires_grad=True)
    y = torch.rrelu(x, 0.2, 0.4, True)
    assert y.grad_fn.name() == "RreluWithNoiseBackward0"
    y.sum().backward()
    slopes = x.grad.numpy()
    np.testing.assert_allclose(y.detach().numpy(), x.detach().numpy() * slopes)
    assert slopes[[0, 4]].tolist() == [1, 1]
    assert ((slopes[1:4] >= 0.2) & (slopes[1:4] < 0.4)).all()
    noise = torch.empty(5)
    torch._C._nn.rrelu_with_noise(x.detach(), noise, 0.2, 0.4, True)
    assert noise.numpy()[[0, 4]].tolist() == [1, 1]
    changed = x.detach().clone()
    assert torch.rrelu_(changed, 0.5, 0.5, True) is changed
    assert changed.tolist() == [1, -0.5, -1, 0, 3]
    assert torch.rrelu(x, 0.2, 0.4).tolist() == torch.tensor([1.0, -0.3, -0.6, 0.0, 3.0]).tolist()


# --- how samples move with their parameters ---------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [0.05, 0.7, 1.0, 3.0, 40.0, 900.0, 30_000.0])
def test_gamma_numbers_move_along_their_quantile(shape: float) -> None:
    special = pytest.importorskip("scipy.special", reason="SciPy is optional")
    torch.manual_seed(1)
    alpha = torch.full((200,), shape, dtype=torch.float64, requires_grad=True)
    x = torch._standard_gamma(alpha)
    x.sum().backward()
    at = x.detach().numpy()
    lower, upper, h = special.gammainc(shape, at), special.gammaincc(shape, at), 1e-5 * shape

    def quantile(a: float) -> np.ndarray:
        return np.where(lower < 0.5, special.gammaincinv(a, lower), special.gammainccinv(a, upper))

    far, near = quantile(shape + 2 * h) - quantile(shape - 2 * h), quantile(shape + h) - quantile(shape - h)
    np.testing.assert_allclose(alpha.grad.numpy(), (8 * near - far) / (12 * h), rtol=1e-7)


@pytest.mark.parametrize(("a", "b"), [(0.3, 0.5), (1.0, 1.0), (2.0, 5.0), (0.3, 50.0), (30.0, 2.0), (200.0, 300.0)])
def test_dirichlet_numbers_move_along_their_quantile(a: float, b: float) -> None:
    special = pytest.importorskip("scipy.special", reason="SciPy is optional")
    x = np.random.default_rng(0).beta(a, b, 200)
    lower, upper, h = special.betainc(a, b, x), special.betaincc(a, b, x), 1e-5 * a

    def quantile(at: float) -> np.ndarray:
        return np.where(lower < 0.5, special.betaincinv(at, b, lower), special.betainccinv(at, b, upper))

    far, near = quantile(a + 2 * h) - quantile(a - 2 * h), quantile(a + h) - quantile(a - h)
    ones = torch.ones(200, dtype=torch.float64)
    gradient = torch._dirichlet_grad(torch.from_numpy(x), ones * a, ones * (a + b)).numpy()
    np.testing.assert_allclose(gradient * (1 - x), (8 * near - far) / (12 * h), rtol=1e-6)


def test_gradients_of_large_shapes_go_over_into_each_other() -> None:
    """The normal approximation takes over where both shapes pass 1e7; on either side of that the numbers must agree."""
    shapes = torch.tensor([0.999e7, 1.001e7], dtype=torch.float64)
    for distance in (-3.0, 0.0, 2.0):  # in standard deviations
        numbers = 0.5 + distance * (0.25 / (2 * shapes)).sqrt()
        scaled = torch._dirichlet_grad(numbers, shapes, 2 * shapes) * shapes
        assert abs(scaled[1].item() / scaled[0].item() - 1) < 1e-5


def test_samples_and_gradients_of_endless_parameters_return() -> None:
    inf = torch.tensor([math.inf])
    assert torch.binomial(inf, torch.tensor([0.5])).item() == math.inf
    assert math.isnan(torch.binomial(torch.tensor([math.nan]), torch.tensor([0.5])).item())
    torch._standard_gamma(inf)
    torch._sample_dirichlet(torch.tensor([1.0, math.inf]))
    torch._standard_gamma_grad(
        torch.tensor([1.0, 1e300, math.inf]).double(), torch.tensor([1e300, 1.0, math.inf]).double()
    )
    for total in (1e12, 1e20, 1e300, math.inf):
        torch._dirichlet_grad(*[torch.tensor([v], dtype=torch.float64) for v in (0.3, total / 3, total)])


def test_gradients_of_samples_at_the_edges() -> None:
    def gamma(a: float, x: float) -> float:
        return torch._standard_gamma_grad(torch.tensor([a]), torch.tensor([x])).item()

    assert gamma(1.0, 0.0) == 0
    assert math.isnan(gamma(0.0, 1.0))
    assert math.isnan(gamma(math.nan, 1.0))
    assert math.isnan(gamma(1.0, math.nan))
    with pytest.raises(NotImplementedError, match="'Half'"):
        torch._standard_gamma_grad(torch.ones(1).half(), torch.ones(1).half())
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        torch._standard_gamma_grad(torch.ones(1), torch.ones(1).double())
