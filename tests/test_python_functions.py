"""Functions that are written in Python over operators, or over arrays: forward mode and vmap, against loops."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from rushlight.func import grad, jvp, vjp, vmap

F = torch.nn.functional
DOUBLE = {"dtype": torch.float64}
SIZE = 3


def real(*shape: int) -> Callable[..., torch.Tensor]:
    return lambda *lead: torch.randn((*lead, *shape), **DOUBLE)


def positive(*shape: int) -> Callable[..., torch.Tensor]:
    return lambda *lead: torch.rand((*lead, *shape), **DOUBLE) + 0.5


def whole(high: int, *shape: int) -> Callable[..., torch.Tensor]:
    return lambda *lead: torch.randint(high, (*lead, *shape))


def places(*lead: int) -> torch.Tensor:
    """Where maxima of a row of 8 stood, pooled by 2."""
    return whole(2, 2, 4)(*lead) + 2 * torch.arange(4)


def steps(*lead: int) -> torch.Tensor:
    return torch.full((*lead, 2), 5)


_OFFSETS = torch.tensor([0, 2, 2])

# name: (function, what makes its arguments); whole numbers take part in batches alone
FUNCTIONS: dict[str, tuple[Callable[..., Any], list[Callable[..., torch.Tensor]]]] = {
    "quantile": (
        lambda x, q: torch.quantile(x, q / 2, 1),
        [real(3, 4), lambda *lead: torch.rand((*lead, 2), **DOUBLE)],
    ),
    "nanquantile": (lambda x: torch.nanquantile(x, 0.3), [real(3, 4)]),
    "norm nuc": (lambda x: torch.norm(x, "nuc"), [real(3, 2)]),
    "gaussian_nll_loss": (F.gaussian_nll_loss, [real(3, 2), real(3, 2), positive(3, 2)]),
    "poisson_nll_loss": (F.poisson_nll_loss, [real(3), positive(3)]),
    "multi_margin_loss": (F.multi_margin_loss, [real(3, 4), whole(4, 3)]),
    "multilabel_margin_loss": (F.multilabel_margin_loss, [real(3, 4), whole(4, 3, 4)]),
    "multilabel_soft_margin_loss": (F.multilabel_soft_margin_loss, [real(3, 4), positive(3, 4)]),
    "cosine_embedding_loss": (
        F.cosine_embedding_loss,
        [real(3, 4), real(3, 4), lambda *lead: whole(2, 3)(*lead) * 2 - 1],
    ),
    "triplet_margin_loss": (F.triplet_margin_loss, [real(3, 4), real(3, 4), real(3, 4)]),
    "pairwise_distance": (F.pairwise_distance, [real(3, 4), real(3, 4)]),
    "cdist": (torch.cdist, [real(3, 4), real(2, 4)]),
    "pdist": (F.pdist, [real(3, 4)]),
    "max_unpool1d": (lambda x, i: F.max_unpool1d(x, i, 2), [real(2, 4), places]),
    "embedding_bag sum": (
        lambda w, i, s: F.embedding_bag(i, w, mode="sum", per_sample_weights=s),
        [real(5, 2), whole(5, 2, 3), real(2, 3)],
    ),
    "embedding_bag max": (lambda w, i: F.embedding_bag(i, w, mode="max"), [real(5, 2), whole(5, 2, 3)]),
    "embedding_bag offsets": (lambda w, i: F.embedding_bag(i, w, _OFFSETS), [real(5, 2), whole(5, 4)]),
    "ctc_loss": (
        lambda x, labels, n: F.ctc_loss(x.log_softmax(-1), labels + 1, n, torch.tensor([2, 1])),
        [real(5, 2, 4), whole(3, 2, 2), steps],
    ),
    "linear_cross_entropy": (
        lambda x, w, y: F.linear_cross_entropy(x, w, y, options=None),
        [real(3, 2), real(4, 2), whole(4, 3)],
    ),
    "linear_cross_entropy in parts": (
        lambda x, w, y: F.linear_cross_entropy(
            x, w, y, options=torch.nn.modules.linear_cross_entropy_options.LinearCrossEntropyOptions(batch_chunk_size=2)
        ),
        [real(3, 2), real(4, 2), whole(4, 3)],
    ),
    "embedding with a bound": (
        lambda w: F.embedding(torch.tensor([0, 2]), w.clone(), max_norm=9.0),
        [real(4, 3)],
    ),
    "tensor_split": (lambda x: torch.tensor_split(x, torch.tensor([1, 3])), [real(5, 2)]),
    "gather of a number": (lambda x: x.gather(0, torch.tensor([0])), [real()]),
    "logsumexp of a number": (lambda x: torch.logsumexp(x, ()), [real()]),
    "masked logsumexp": (lambda x: torch.masked.logsumexp(x, 0, mask=x > -9), [real(3, 2)]),
    "group_norm of nothing": (lambda x: F.group_norm(x, 2), [real(0, 4, 3)]),
    "einsum": (lambda a, b: torch.einsum("ij,kj->ik", a, b), [real(2, 3), real(4, 3)]),
    "tensordot": (lambda a, b: torch.tensordot(a, b, 1), [real(2, 3), real(3, 4)]),
    "gradient": (lambda x: torch.gradient(x)[0], [real(5)]),
    "trapezoid": (torch.trapezoid, [real(2, 5), real(2, 5)]),
    "cumulative_trapezoid": (torch.cumulative_trapezoid, [real(2, 5), real(2, 5)]),
}
each = pytest.mark.parametrize("name", FUNCTIONS)
LOOPED = {"embedding_bag", "ctc_loss"}  # where what they read is batched


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(2)


def parts(result: Any) -> tuple[torch.Tensor, ...]:
    return (result,) if isinstance(result, torch.Tensor) else tuple(result)


def close(found: Any, expected: Any) -> None:
    torch.testing.assert_close(tuple(found), tuple(expected), rtol=1e-9, atol=1e-9)


def made(name: str) -> tuple[Callable[..., Any], list[torch.Tensor], list[int]]:
    function, makers = FUNCTIONS[name]
    values = [make() for make in makers]
    return function, values, [i for i, v in enumerate(values) if v.is_floating_point()]


@each
def test_tangents_transpose_gradients(name: str) -> None:
    function, values, floating = made(name)

    def of_floating(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        filled = list(values)
        for i, t in zip(floating, given, strict=True):
            filled[i] = t
        return parts(function(*filled))

    points = tuple([values[i] for i in floating])
    moves = tuple([torch.randn_like(p) for p in points])
    output, tangents = jvp(of_floating, points, moves)
    seeds = tuple([torch.randn_like(t) for t in output])
    pulled = vjp(of_floating, *points)[1](seeds)
    there = sum(float((s * t).sum()) for s, t in zip(seeds, tangents, strict=True))
    assert there == pytest.approx(sum(float((g * m).sum()) for g, m in zip(pulled, moves, strict=True)))
    if not output[0].numel():
        return
    step = 1e-6
    ends = [of_floating(*[p + sign * step * m for p, m in zip(points, moves, strict=True)]) for sign in (1, -1)]
    differences = [(a - b) / (2 * step) for a, b in zip(*ends, strict=True)]
    torch.testing.assert_close(tuple(tangents), tuple(differences), rtol=1e-5, atol=1e-5)


@each
def test_batches_equal_a_loop(name: str) -> None:
    function, values, floating = made(name)
    batches = [make(SIZE) for make in FUNCTIONS[name][1]]
    for count in range(1, len(values) + 1):
        for chosen in itertools.combinations(range(len(values)), count):
            given = [batches[i] if i in chosen else v for i, v in enumerate(values)]
            dims = tuple([0 if i in chosen else None for i in range(len(values))])
            with warnings.catch_warnings():
                known = name.split()[0] in LOOPED
                warnings.filterwarnings("ignore" if known else "error", message="There is a performance drop")
                found = parts(vmap(function, in_dims=dims)(*given))
            rows = [parts(function(*[v[i] if k in chosen else v for k, v in enumerate(given)])) for i in range(SIZE)]
            close(found, [torch.stack(column) for column in zip(*rows, strict=True)])
            if chosen[0] == 0:
                total = lambda *args: sum([p.sum() for p in parts(function(*args))])  # noqa: E731
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    slopes = vmap(grad(total), in_dims=dims)(*given)
                    each_slope = [
                        grad(total)(*[v[i] if k in chosen else v for k, v in enumerate(given)]) for i in range(SIZE)
                    ]
                close([slopes], [torch.stack(each_slope)])


def test_what_reads_numbers_refuses_wrong_samples() -> None:
    with pytest.raises(RuntimeError, match="q values must be in the range"):
        vmap(lambda q: torch.quantile(torch.ones(3), q))(torch.tensor([0.5, 2.0]))
    with pytest.raises(ValueError, match="var has negative entry"):
        vmap(lambda v: F.gaussian_nll_loss(torch.ones(2), torch.ones(2), v))(torch.tensor([[1.0, 1], [1, -1]]))
    with pytest.raises(RuntimeError, match="Found an invalid max index: 9"):
        vmap(lambda i: F.max_unpool1d(torch.ones(1, 2), i, 2))(torch.tensor([[[0, 2]], [[0, 9]]]))


def test_failures_are_those_of_single_matrices() -> None:
    batch = torch.stack([2 * torch.eye(2), torch.ones(2, 2)])
    found = torch.linalg.inv_ex(batch)
    assert torch.equal(found.inverse[0], torch.eye(2) / 2) and found.inverse[1].isnan().all()
    solved = torch.linalg.solve_ex(batch, torch.ones(2, 2))
    assert solved.result[0].tolist() == [0.5, 0.5] and solved.result[1].isnan().all()
    factor = torch.linalg.cholesky_ex(torch.stack([4 * torch.eye(2), -torch.eye(2)]))
    assert torch.equal(factor.L[0], 2 * torch.eye(2)) and factor.info.tolist() == [0, 1]


def test_a_bound_on_rows_leaves_tangents_as_they_are() -> None:
    weight, index = torch.ones(4, 3), torch.tensor([0, 2])
    moved = jvp(lambda w: F.embedding(index, w.clone(), max_norm=0.5), (weight,), (weight,))[1]
    assert torch.equal(moved, torch.ones(2, 3))


def test_division_by_its_older_names() -> None:
    x = torch.tensor([2.0, 4.0])
    assert x.__rdiv__(1).tolist() == [0.5, 0.25] and x.__div__(2).tolist() == [1, 2]
    assert x.__rdiv__("a") is NotImplemented
    assert x.__idiv__(2) is x and x.tolist() == [1, 2]
