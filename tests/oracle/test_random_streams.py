"""Random numbers: for the same seed the same bits as PyTorch's CPU generator, and the same state afterwards.

Each case is a small program over a module named `t`, run once with rushlight and once with PyTorch. What cannot be
equal,
and why, is in docs/randomness.md; such results are not compared here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch", reason="the oracle is installed by .ci/run only")
pytestmark = pytest.mark.oracle

Program = Callable[[Any], Any]

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
# Around the block of 16 of the normal distribution, and the 312 and 624 draws of a block of the generator.
SIZES = [0, 1, 2, 15, 16, 17, 31, 32, 100, 312, 624, 625, 1300]
SEEDS = [0, 1, 42, 2**32 + 5, 2**63 + 11, -1]


def as_array(tensor: Any) -> np.ndarray:
    """The numbers of a tensor of either library, without rounding."""
    if str(tensor.dtype).endswith(("float16", "bfloat16")):
        tensor = tensor.float()
    return np.asarray(tensor.detach().numpy())


def state_of(t: Any) -> bytes:
    return bytes(t.get_rng_state().numpy().tobytes())


def assert_same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
        return
    assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_array_equal(as_array(ours), as_array(theirs))


def outcome(t: Any, program: Program, seed: int) -> tuple[Any, bytes]:
    t.manual_seed(seed)
    result = program(t)
    return result, state_of(t)


def run(program: Program, seed: int = 0) -> None:
    """Runs the program in both libraries from the same seed; results and final states must be equal to the bit."""
    ours, our_state = outcome(rushlight, program, seed)
    theirs, their_state = outcome(torch, program, seed)
    assert_same(ours, theirs)
    assert our_state == their_state


def dtype(t: Any, name: str) -> Any:
    return getattr(t, name)


# --- seeds and states -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_seed_gives_state_and_stream(seed: int) -> None:
    run(lambda t: t.rand(1000), seed)
    assert rushlight.initial_seed() == torch.initial_seed()


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seed_out_of_range_is_refused_alike(seed: int) -> None:
    before = state_of(rushlight)
    with pytest.raises(Exception) as theirs:
        torch.manual_seed(seed)
    with pytest.raises(type(theirs.value)):
        rushlight.manual_seed(seed)
    assert state_of(rushlight) == before


@pytest.mark.parametrize("draws", [0, 1, 623, 624, 625])
@pytest.mark.parametrize("normals", [0, 1])
def test_states_are_interchangeable(draws: int, normals: int) -> None:
    """A state saved by one library goes on in the other, a waiting normal number included."""

    def spend(t: Any) -> None:
        t.manual_seed(7)
        t.rand(draws)
        t.randn(normals)

    def follow(t: Any) -> Any:
        return t.randn(3), t.rand(700), t.randn(20), t.randperm(9)

    spend(torch)
    state = torch.get_rng_state().numpy().copy()
    theirs = follow(torch)
    rushlight.manual_seed(0)
    rushlight.set_rng_state(rushlight.from_numpy(state))
    assert state_of(rushlight) == state.tobytes()
    assert_same(follow(rushlight), theirs)

    spend(rushlight)
    saved = rushlight.get_rng_state().numpy().copy()
    assert saved.tobytes() == state.tobytes()
    torch.manual_seed(0)
    torch.set_rng_state(torch.from_numpy(saved))
    assert_same(theirs, follow(torch))


def broken_state(change: Callable[[np.ndarray], Any]) -> np.ndarray:
    torch.manual_seed(3)
    torch.rand(2)
    state = torch.get_rng_state().numpy().copy()
    replaced = change(state)
    return state if replaced is None else replaced


def put(at: int, value: int) -> Callable[[np.ndarray], None]:
    def change(state: np.ndarray) -> None:
        state[at : at + 4] = np.array([value], np.int32).view(np.uint8)

    return change


@pytest.mark.parametrize(
    "change",
    [lambda s: s[:-1], lambda s: s[:0], put(8, 0), put(8, -1), put(8, 625), put(12, 0), put(16, 625)],
    ids=["short", "empty", "left=0", "left=-1", "left=625", "unseeded", "next=625"],
)
def test_broken_states_are_refused_alike(change: Callable[[np.ndarray], Any]) -> None:
    state = broken_state(change)
    rushlight.manual_seed(5)
    before = state_of(rushlight)
    with pytest.raises(RuntimeError) as theirs:
        torch.set_rng_state(torch.from_numpy(state))
    with pytest.raises(RuntimeError) as ours:
        rushlight.set_rng_state(rushlight.from_numpy(state))
    assert str(theirs.value).split("\n")[0][:20] == str(ours.value)[:20]
    assert state_of(rushlight) == before


def test_state_of_another_dtype_is_refused() -> None:
    with pytest.raises(TypeError, match="RNG state must be a torch.ByteTensor"):
        torch.set_rng_state(torch.zeros(5056))
    with pytest.raises(TypeError, match="RNG state must be a torch.ByteTensor"):
        rushlight.set_rng_state(rushlight.zeros(5056))


def test_generator_objects_have_their_own_streams() -> None:
    def program(t: Any) -> Any:
        first, second = t.Generator(), t.Generator().manual_seed(12)
        results = [t.rand(3, generator=second), t.randn(20, generator=first), t.randint(0, 9, (5,), generator=second)]
        copy = t.Generator()
        copy.set_state(second.get_state())
        results += [t.randperm(7, generator=copy), t.randperm(7, generator=second), t.rand(2)]
        return results

    run(program)
    assert rushlight.Generator().initial_seed() == torch.Generator().initial_seed()


def test_fork_rng_leaves_the_stream_alone() -> None:
    def program(t: Any) -> Any:
        with t.random.fork_rng():
            inside = t.rand(4)
        return inside, t.rand(4)

    run(program)


# --- distributions that fill ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("n", SIZES)
def test_uniform(name: str, n: int) -> None:
    run(lambda t: t.rand(n, dtype=dtype(t, name)), n)
    for low, high in [(-1.0, 1.0), (0.1, 0.37), (-3.3, 5.7), (1.0, 2.0), (2.0, 2.0)]:
        run(lambda t, low=low, high=high: t.empty(n, dtype=dtype(t, name)).uniform_(low, high), n)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("n", SIZES)
def test_normal(name: str, n: int) -> None:
    run(lambda t: t.randn(n, dtype=dtype(t, name)), n)
    for mean, std in [(-1.3, 2.7), (0.1, 0.01), (5.0, 0.0)]:
        run(lambda t, mean=mean, std=std: t.empty(n, dtype=dtype(t, name)).normal_(mean, std), n)


def test_normal_numbers_wait_across_calls() -> None:
    """Calls for fewer than 16 normals use pairs; the second of a pair waits, other distributions between."""
    run(lambda t: [t.randn(1), t.rand(1), t.randn(1), t.randn(16), t.randn(3), t.empty(1).log_normal_(), t.randn(2)])


def test_normal_of_tensors() -> None:
    def program(t: Any) -> Any:
        mean, std = t.arange(20.0), t.linspace(0.1, 2.0, 20)
        return t.normal(mean, std), t.normal(mean, 0.5), t.normal(1.5, std), t.normal(0.0, 2.0, (4, 5))

    run(program)


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS, "bool"])
def test_random(name: str) -> None:
    run(lambda t: t.empty(1000, dtype=dtype(t, name)).random_())


RANGES = [
    (0, 2),
    (-5, 5),
    (0, 100),
    (-128, 127),
    (-100, 3000),
    (0, 2**28 - 1),
    (0, 2**28),  # from here on, 64 bits are drawn
    (-(2**31), 2**31 - 1),
    (0, 2**32 + 1),
    (-(2**60) - 1, 2**60 + 7),
    (-(2**63), 2**63 - 1),
]


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize(("low", "high"), RANGES)
@pytest.mark.filterwarnings("ignore:.*out of bounds.*")
def test_random_in_range(name: str, low: int, high: int) -> None:
    with contextlib.suppress(RuntimeError):
        torch.empty(1, dtype=dtype(torch, name)).random_(low, high)
        run(lambda t: t.empty(500, dtype=dtype(t, name)).random_(low, high))
        return
    with pytest.raises(RuntimeError):
        rushlight.empty(1, dtype=dtype(rushlight, name)).random_(low, high)


@pytest.mark.filterwarnings("ignore:.*out of bounds.*")
@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("float32", -(2**24) - 1, 2**24 + 5),
        ("float32", 0, 2**28),
        ("float32", -(2**31), 2**31 - 1),
        ("float64", -(2**53) - 1, 2**53 + 1),
        ("float64", -(2**54) - 1, 2**55),
        ("bfloat16", -257, 257),
        ("bfloat16", -(2**15), 2**15 - 1),
    ],
)
def test_random_bounds_that_the_dtype_rounds(name: str, low: int, high: int) -> None:
    run(lambda t: t.empty(500, dtype=dtype(t, name)).random_(low, high))


def test_random_from_a_lower_bound_and_over_all_64_bits() -> None:
    run(lambda t: t.empty(100, dtype=t.int64).random_(-(2**63), None))
    run(lambda t: t.empty(100, dtype=t.int64).random_(5, None))
    run(lambda t: t.empty(100, dtype=t.int8).random_(-3, None))


def test_randint_and_its_kin() -> None:
    run(lambda t: [t.randint(10, (7,)), t.randint(-3, 9, (2, 3)), t.randint(0, 2**40, (3,), dtype=t.int64)])
    run(lambda t: [t.randint(0, 5, (4,), dtype=t.float32), t.randint_like(t.zeros(3, 2), 7), t.rand_like(t.zeros(40))])
    run(lambda t: [t.randn_like(t.zeros(40)), t.randn_like(t.zeros(4, 10).t())])


@pytest.mark.parametrize("name", ["float32", "float64", *INTEGERS])
@pytest.mark.parametrize("n", [0, 1, 2, 10, 100])
def test_randperm(name: str, n: int) -> None:
    run(lambda t: t.randperm(n, dtype=dtype(t, name)), n)


def test_long_randperm() -> None:
    run(lambda t: t.randperm(100_000))


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.parametrize("p", [0.0, 1e-300, 0.1, 0.5, 1.0])
def test_bernoulli_by_number(name: str, p: float) -> None:
    run(lambda t: t.empty(700, dtype=dtype(t, name)).bernoulli_(p))


@pytest.mark.parametrize("name", [*FLOATS, "int32", "bool"])
@pytest.mark.parametrize("p_name", FLOATS)
def test_bernoulli_by_tensor(name: str, p_name: str) -> None:
    def program(t: Any) -> Any:
        p = t.linspace(0, 1, 700).to(dtype(t, p_name))
        return t.empty(700, dtype=dtype(t, name)).bernoulli_(p)

    run(program)


@pytest.mark.parametrize("name", FLOATS)
def test_bernoulli_function(name: str) -> None:
    run(lambda t: t.bernoulli(t.linspace(0, 1, 300).to(dtype(t, name))))
    run(lambda t: t.bernoulli(t.linspace(0, 1, 24).reshape(2, 3, 4).permute(2, 0, 1).to(dtype(t, name))))
    run(lambda t: t.bernoulli(t.zeros(50, dtype=dtype(t, name)), 0.3))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("n", [0, 1, 15, 16, 700])
def test_continuous_distributions(name: str, n: int) -> None:
    def empty(t: Any) -> Any:
        return t.empty(n, dtype=dtype(t, name))

    run(lambda t: [empty(t).exponential_(), empty(t).exponential_(0.37), empty(t).exponential_(3.3)])
    run(lambda t: [empty(t).log_normal_(), empty(t).log_normal_(-1.3, 0.7)])
    run(lambda t: [empty(t).cauchy_(), empty(t).cauchy_(-1.3, 0.7)])


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
def test_geometric(name: str) -> None:
    run(lambda t: [t.empty(300, dtype=dtype(t, name)).geometric_(p) for p in (0.5, 0.37, 0.99)])


# --- layouts ----------------------------------------------------------------------------------------------------------

LAYOUTS: dict[str, Program] = {
    "transposed": lambda t: t.empty(6, 5).t(),
    "permuted": lambda t: t.empty(4, 2, 3).permute(1, 2, 0),
    "every other": lambda t: t.empty(4, 12)[:, ::2],
    "channels last": lambda t: t.empty(2, 4, 5, 3).permute(0, 3, 1, 2),
    "a column": lambda t: t.empty(40, 3)[:, 1],
}

FILLS: dict[str, Callable[[Any], Any]] = {
    "uniform": lambda x: x.uniform_(),
    "normal": lambda x: x.normal_(),
    "bernoulli": lambda x: x.bernoulli_(0.5),
    "exponential": lambda x: x.exponential_(),
    "random": lambda x: x.random_(0, 100),
    "log_normal": lambda x: x.log_normal_(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fill", FILLS)
def test_tensors_are_filled_in_the_order_of_their_memory(layout: str, fill: str) -> None:
    run(lambda t: FILLS[fill](LAYOUTS[layout](t)))


# --- samples whose count of draws depends on the numbers drawn --------------------------------------------------------


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("rate", [0.0, 0.5, 9.9, 10.0, 30.0, 1000.0])
def test_poisson(name: str, rate: float) -> None:
    run(lambda t: t.poisson(t.full((500,), rate, dtype=dtype(t, name))))
    run(lambda t: t.poisson(t.linspace(0, rate, 300).to(dtype(t, name))))


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize(("count", "p"), [(5, 0.3), (20, 0.9), (1000, 0.01), (200, 0.3), (1000, 0.8), (10**6, 0.7)])
def test_binomial(name: str, count: int, p: float) -> None:
    def program(t: Any) -> Any:
        return t.binomial(t.full((500,), float(count), dtype=dtype(t, name)), t.full((500,), p, dtype=dtype(t, name)))

    run(program)


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("alpha", [0.0, 0.05, 0.5, 1.0, 2.0, 1000.0])
def test_standard_gamma(name: str, alpha: float) -> None:
    run(lambda t: t._standard_gamma(t.full((500,), alpha, dtype=dtype(t, name))))


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 4, 5, 7, 8, 17, 40, 100, 255])
def test_dirichlet_of_short_rows(name: str, n: int) -> None:
    run(lambda t: t._sample_dirichlet(t.linspace(0.1, 3, 5 * n).reshape(5, n).to(dtype(t, name))))
    run(lambda t: t._sample_dirichlet(t.linspace(0.1, 3, n).to(dtype(t, name))))


@pytest.mark.parametrize("alpha", [0.02, 0.5, 1.0, 2.5, 30.0, 2000.0, 1e6])
def test_gradients_of_samples_are_near_pytorch_s_fits(alpha: float) -> None:
    """PyTorch's are fits of three to four digits."""

    def gamma(t: Any) -> Any:
        t.manual_seed(2)
        shapes = t.full((300,), alpha, dtype=t.float64, requires_grad=True)
        t._standard_gamma(shapes).sum().backward()
        return shapes.grad

    def dirichlet(t: Any) -> Any:
        t.manual_seed(2)
        shapes = t.full((100, 3), alpha, dtype=t.float64)
        return t._dirichlet_grad(t._sample_dirichlet(shapes), shapes, 3 * shapes)

    for gradient in (gamma, dirichlet):
        np.testing.assert_allclose(as_array(gradient(rushlight)), as_array(gradient(torch)), rtol=2e-3)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(("n", "samples"), [(1, 1), (3, 2), (10, 10), (200, 3), (200, 150)])
def test_multinomial_without_replacement(name: str, n: int, samples: int) -> None:
    run(lambda t: t.multinomial(t.linspace(0.1, 1, n).to(dtype(t, name)), samples))
    run(lambda t: t.multinomial(t.linspace(0.1, 1, 3 * n).reshape(3, n).to(dtype(t, name)), samples))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(("n", "samples"), [(1, 1), (3, 2), (10, 30), (200, 1), (200, 500)])
def test_multinomial_with_replacement(name: str, n: int, samples: int) -> None:
    run(lambda t: t.multinomial(t.linspace(0, 1, n + 1)[1:].to(dtype(t, name)), samples, replacement=True))
    run(lambda t: t.multinomial((t.arange(2 * n).reshape(2, n) % 3 + 1).to(dtype(t, name)), samples, True))


@pytest.mark.parametrize(
    "weights",
    [[1.0, -1.0], [1.0, float("nan")], [1.0, float("inf")], [0.0, 0.0]],
    ids=["negative", "nan", "inf", "zeros"],
)
@pytest.mark.parametrize("samples", [1, 2])
def test_multinomial_refuses_bad_weights_alike(weights: list[float], samples: int) -> None:
    for replacement in (True, False):
        with pytest.raises(RuntimeError) as theirs:
            torch.multinomial(torch.tensor(weights), samples, replacement)
        with pytest.raises(RuntimeError) as ours:
            rushlight.multinomial(rushlight.tensor(weights), samples, replacement)
        assert str(theirs.value) == str(ours.value)


# --- what draws inside ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"]
)
def test_dropouts(name: str) -> None:
    shape = {"dropout1d": (4, 3, 5), "dropout2d": (4, 3, 5, 2), "dropout3d": (4, 3, 5, 2, 2)}.get(name, (4, 30))
    run(lambda t: getattr(t.nn.functional, name)(t.ones(*shape), 0.3, True))


INITIALISERS: dict[str, Callable[[Any, Any], Any]] = {
    "uniform": lambda init, x: init.uniform_(x, -0.5, 0.7),
    "normal": lambda init, x: init.normal_(x, 0.1, 0.2),
    "trunc_normal": lambda init, x: init.trunc_normal_(x),
    "xavier_uniform": lambda init, x: init.xavier_uniform_(x),
    "xavier_normal": lambda init, x: init.xavier_normal_(x),
    "kaiming_uniform": lambda init, x: init.kaiming_uniform_(x),
    "kaiming_normal": lambda init, x: init.kaiming_normal_(x),
    "sparse": lambda init, x: init.sparse_(x, 0.3),
}


@pytest.mark.parametrize("name", INITIALISERS)
def test_initialisers(name: str) -> None:
    if name == "trunc_normal":  # ends with erfinv, whose last bits are the library's: the draws must still be the same
        ours, our_state = outcome(rushlight, lambda t: INITIALISERS[name](t.nn.init, t.empty(13, 7)), 0)
        theirs, their_state = outcome(torch, lambda t: INITIALISERS[name](t.nn.init, t.empty(13, 7)), 0)
        np.testing.assert_allclose(as_array(ours), as_array(theirs), rtol=1e-6)
        assert our_state == their_state
    else:
        run(lambda t: INITIALISERS[name](t.nn.init, t.empty(13, 7)))


@pytest.mark.parametrize(
    "build",
    [
        lambda t: t.nn.Linear(7, 5),
        lambda t: t.nn.Conv2d(3, 6, 3),
        lambda t: t.nn.LSTM(4, 3, num_layers=2),
        lambda t: t.nn.Embedding(10, 4),
        lambda t: t.nn.MultiheadAttention(8, 2),
    ],
    ids=["Linear", "Conv2d", "LSTM", "Embedding", "MultiheadAttention"],
)
def test_layers_begin_with_the_same_numbers(build: Program) -> None:
    run(lambda t: list(build(t).state_dict().values()))
