"""Functions that read numbers, under vmap: one call for all samples equals a call for each, without a warning."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest

import rushlight as torch
from rushlight.func import grad, vmap

F = torch.nn.functional
SIZE = 3


def generator() -> Any:
    return torch.Generator().manual_seed(7)


def reals(*shape: int) -> torch.Tensor:
    return torch.randn(SIZE, *shape, generator=generator(), dtype=torch.float64)


def whole(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, high, (SIZE, *shape), generator=generator())


def weighed(function: Any) -> Any:
    """A number that depends on every element of the result."""

    def total(*values: torch.Tensor) -> torch.Tensor:
        result = function(*values)
        return (result * torch.arange(1.0, 1 + result.numel()).view(result.shape)).sum()

    return total


def alike(function: Any, *values: torch.Tensor, weighted: int | None = None) -> None:
    """Compare vmap with a loop for every subset of batched arguments; `weighted`: whose gradients are compared, too."""
    for batched in itertools.product((True, False), repeat=len(values)):
        if not any(batched):
            continue
        dims = tuple([0 if b else None for b in batched])
        given = [v if b else v[0] for v, b in zip(values, batched)]
        functions = [function] if weighted is None else [function, grad(weighed(function), argnums=weighted)]
        for f in functions:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                ours = vmap(f, in_dims=dims)(*given)
            rows = [f(*[v[i] if b else v for v, b in zip(given, batched)]) for i in range(SIZE)]
            columns = [torch.stack(list(c)) for c in zip(*rows)] if isinstance(rows[0], tuple) else [torch.stack(rows)]
            for a, b in zip(ours if isinstance(ours, tuple) else (ours,), columns, strict=True):
                torch.testing.assert_close(a, b, equal_nan=True)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding_idx", [None, 2])
@pytest.mark.parametrize("by_frequency", [False, True])
def test_bags(mode: str, padding_idx: int | None, by_frequency: bool) -> None:
    if mode == "max" and by_frequency:
        weight = reals(4)
        with pytest.raises(ValueError, match="max mode"):
            vmap(lambda i: F.embedding_bag(i, weight, mode=mode, scale_grad_by_freq=True))(whole(2, 2, 2))
        return
    settings = {"mode": mode, "padding_idx": padding_idx, "scale_grad_by_freq": by_frequency}
    alike(lambda i, w: F.embedding_bag(i, w, **settings), whole(5, 2, 4), reals(5, 3), weighted=1)
    for last in (False, True):
        alike(
            lambda i, w, o, last=last: F.embedding_bag(i, w, o, include_last_offset=last, **settings),
            whole(5, 4),
            reals(5, 3),
            torch.tensor([[0, 2, 3], [0, 0, 4], [0, 1, 1]]),
        )


def test_bags_of_weighted_rows() -> None:
    for argument in (1, 2):
        alike(
            lambda i, w, p: F.embedding_bag(i, w, mode="sum", per_sample_weights=p),
            whole(5, 2, 4),
            reals(5, 3),
            reals(2, 4),
            weighted=argument,
        )
    alike(
        lambda i, w, o, p: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=p, padding_idx=1),
        whole(5, 4),
        reals(5, 3),
        torch.tensor([[0, 2], [0, 4], [0, 1]]),
        reals(4),
    )


def test_bags_with_a_greatest_norm_change_each_weight() -> None:
    indices, weight = whole(5, 2, 4), reals(5, 3)
    expected = weight.clone()
    rows = [F.embedding_bag(i, w, max_norm=0.7) for i, w in zip(indices, expected)]
    ours = vmap(lambda i, w: F.embedding_bag(i, w, max_norm=0.7))(indices, weight)
    torch.testing.assert_close(ours, torch.stack(rows))
    torch.testing.assert_close(weight, expected)
    with pytest.raises(RuntimeError, match="max_norm"):
        vmap(lambda i: F.embedding_bag(i, weight[0], max_norm=0.7))(indices)


def test_bags_refuse_indices_of_other_samples() -> None:
    indices = whole(5, 2, 4)
    indices[1, 0, 0] = 5
    with pytest.raises(RuntimeError, match="takes value 5 which is not in the valid range"):
        vmap(F.embedding_bag)(indices, reals(5, 3))


def test_bags_nest() -> None:
    indices, weight = whole(5, 4, 2, 3), reals(5, 3)
    ours = vmap(lambda i, w: vmap(lambda j: F.embedding_bag(j, w))(i))(indices, weight)
    rows = [torch.stack([F.embedding_bag(j, w) for j in i]) for i, w in zip(indices, weight)]
    torch.testing.assert_close(ours, torch.stack(rows))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_connectionist_losses(reduction: str) -> None:
    logits, labels = reals(6, 2, 5), whole(4, 2, 3) + 1
    steps, counts = torch.tensor([[6, 5], [4, 6], [6, 6]]), torch.tensor([[3, 2], [1, 3], [2, 2]])
    alike(lambda x, y, s, c: F.ctc_loss(x.log_softmax(-1), y, s, c, reduction=reduction), logits, labels, steps, counts)
    alike(
        lambda x, y: F.ctc_loss(x.log_softmax(-1), y, (6, 5), (3, 2), reduction=reduction), logits, labels, weighted=0
    )
    in_one_row = whole(4, 5) + 1
    alike(lambda x, y: F.ctc_loss(x.log_softmax(-1), y, (6, 5), (3, 2), reduction=reduction), logits, in_one_row)
    single = torch.tensor(3)
    alike(
        lambda x, y: F.ctc_loss(x.log_softmax(-1), y, torch.tensor(6), single, reduction=reduction),
        reals(6, 5),
        whole(4, 3) + 1,
    )


def test_connectionist_losses_that_are_impossible_and_refused() -> None:
    logits, labels = reals(3, 1, 5), torch.tensor([[[1, 1, 1]], [[1, 2, 3]], [[2, 2, 1]]])
    for zeros in (False, True):
        alike(lambda x, y, z=zeros: F.ctc_loss(x.log_softmax(-1), y, (3,), (3,), zero_infinity=z), logits, labels)
    with pytest.warns(UserWarning, match="ctc_loss"), pytest.raises(RuntimeError, match="sum of target_lengths"):
        vmap(lambda x, c: F.ctc_loss(x, labels[0, 0], torch.tensor([3]), c))(logits, torch.tensor([[3], [2], [3]]))


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("limits", [None, (-1.0, 1.0)])
def test_histograms(density: bool, limits: Any) -> None:
    alike(lambda x: tuple(torch.histogram(x, 5, range=limits, density=density)), reals(3, 4))
    alike(
        lambda x, w: tuple(torch.histogram(x, 4, range=limits, weight=w, density=density)),
        reals(9),
        whole(5, 9).double(),
    )
    if limits is None:
        edges = (
            torch.linspace(-1, 1, 5, dtype=torch.float64).expand(SIZE, 5) * torch.tensor([[1.0], [2.0], [0.5]]).double()
        )
        alike(lambda x, e: tuple(torch.histogram(x, e, density=density)), reals(9), edges)
    grid = None if limits is None else limits * 2

    def boxes(x: torch.Tensor, w: torch.Tensor) -> Any:
        result = torch.histogramdd(x, [3, 2], range=grid, weight=w, density=density)
        return result.hist, *result.bin_edges

    alike(boxes, reals(9, 2), whole(5, 9).double())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_counts_in_parts(dtype: Any) -> None:
    x = reals(2, 9).to(dtype)
    x[0, 0, 0] = float("nan")
    alike(lambda x: torch.histc(x, 5, -1, 1), x)
    alike(lambda x: torch.histc(x, 7), x[1:].repeat(3, 1, 1)[:3])
    alike(lambda x: torch.histc(x, 3), torch.full((SIZE, 2), 0.5, dtype=dtype))
    with pytest.raises(RuntimeError, match="not finite"):
        vmap(lambda x: torch.histc(x, 5))(torch.tensor([[1.0, 2.0], [1.0, float("inf")]]))
    with pytest.raises(RuntimeError, match="max must be larger"):
        vmap(lambda x: torch.histc(x, 5, 1, 0))(x)


def test_counts_of_integers() -> None:
    x = whole(5, 9)
    alike(lambda x: torch.bincount(x, minlength=6), x)
    alike(lambda x, w: torch.bincount(x, w, minlength=5), x, reals(9))
    alike(lambda x, w: torch.bincount(x, w, minlength=5), x.to(torch.uint8), reals(9).float())
    alike(torch.bincount, torch.tensor([[0, 1, 4], [4, 4, 4], [4, 0, 0]]))
    with pytest.raises(RuntimeError, match="dynamic shape"):
        vmap(torch.bincount)(torch.tensor([[0, 1], [2, 0]]))
    with pytest.raises(RuntimeError, match="non-negative"):
        vmap(lambda x: torch.bincount(x, minlength=9))(torch.tensor([[0, 1], [2, -1]]))
    nested = vmap(vmap(lambda x: torch.bincount(x, minlength=5)))(x.view(3, 3, 3))
    assert nested.tolist() == [[torch.bincount(r, minlength=5).tolist() for r in rows] for rows in x.view(3, 3, 3)]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(kind: str) -> None:
    torch.manual_seed(3)
    for settings in ({}, {"bidirectional": True, "num_layers": 2}, {"batch_first": True, "bias": False}):
        layer = getattr(torch.nn, kind)(4, 5, dtype=torch.float64, **settings)
        alike(lambda x, layer=layer: layer(x)[0], reals(6, 2, 4), weighted=0)
        alike(lambda x, layer=layer: layer(x)[0], reals(6, 4))


@pytest.mark.parametrize("name", ["index_add", "index_copy", "index_fill", "index_reduce"])
def test_positions_of_each_sample(name: str) -> None:
    places = torch.tensor([[3, 0], [1, 2], [0, 3]])
    for dim in (0, -1):
        x, s = reals(4, 5, 4), reals(*((2, 5, 4) if dim == 0 else (4, 5, 2)))
        for change in (name, f"{name}_"):

            def write(x: torch.Tensor, i: torch.Tensor, s: torch.Tensor, dim: int = dim, change: str = change) -> Any:
                rest = (7.0,) if "fill" in name else (s, "amax") if "reduce" in name else (s,)
                return getattr(x.clone(), change)(dim, i, *rest)

            if change == name:
                alike(write, x, places, s)
            else:
                rows = [write(*values) for values in zip(x, places, s)]
                torch.testing.assert_close(vmap(write)(x, places, s), torch.stack(rows))
    for wrong in (4, -5):
        with pytest.raises((IndexError, RuntimeError)):
            vmap(lambda x, i: x.index_fill(0, i, 1.0))(reals(4, 2), places.where(places != 3, wrong))
    negative = vmap(lambda x, i: x.index_fill(0, i, 1.0))(reals(4), places - 4)
    torch.testing.assert_close(negative, reals(4).scatter(1, places, 1.0))
