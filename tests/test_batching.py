"""Every operator of the registry under vmap: every subset of batched inputs, against a loop over the samples."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest
from samples import Sample, family_of, samples_of
from samples.compare import assert_same, tensors

import rushlight
from rushlight.func import vmap
from test_operators import OPERATORS, REFUSALS, TRIED, accepted, call, changes_first, fresh

NAMES = [n for n in TRIED if family_of(n) and not family_of(n).random]
SIZE = 3
# give Python values, or results whose shape or address depends on numbers
REFUSED = {"allclose", "equal", "is_nonzero", "nonzero", "argwhere", "masked_select", "_unique2", "_unique_consecutive"}
REFUSED |= {"bincount", "resize_", "resize_as_"}


def alternatives(t: rushlight.Tensor) -> list[rushlight.Tensor]:
    """Samples of the same shape and range."""
    if t.dim() == 0:
        return [t, t, t]
    return [t, t.flip(0), t.flip(-1)]


def batched(t: rushlight.Tensor, dim: int) -> rushlight.Tensor:
    return rushlight.stack([a.clone() for a in alternatives(t)], dim)


def filled(sample: Sample, values: list[rushlight.Tensor]) -> Sample:
    given = iter(values)
    return sample.map(lambda t: next(given))


def by_loop(op: Any, sample: Sample, subset: tuple[int, ...]) -> list[Any]:
    rows = []
    for i in range(SIZE):
        values = [alternatives(t)[i].clone() if k in subset else t for k, t in enumerate(sample.tensors())]
        rows.append(call(op, filled(sample, values)))
    return rows


def by_vmap(op: Any, sample: Sample, subset: tuple[int, ...], dim: int) -> Any:
    inputs = sample.tensors()
    values = [batched(t, dim) if k in subset else t for k, t in enumerate(inputs)]
    dims = tuple([dim if k in subset else None for k in range(len(inputs))])
    structure: list[Any] = []

    def function(*args: rushlight.Tensor) -> Any:
        result = call(op, filled(sample, list(args)))
        structure.append(result)
        found = tensors(result)
        if not found:
            raise TypeError(f"{op.name} gives {result!r}")
        return tuple(found)

    rushlight.manual_seed(3)
    return vmap(function, in_dims=dims)(*values)


def counts_on_numbers(op: Any, sample: Sample, subset: tuple[int, ...]) -> bool:
    """Does the shape depend on batched numbers, though it is the same for these?"""
    args = sample.args
    if op.name in ("one_hot", "where", "repeat_interleave"):
        repeated = op.name == "repeat_interleave" and len(sample.tensors()) == 2
        return (
            len(args) == 1
            or (op.name == "one_hot" and args[1] == -1)
            or (repeated and len(sample.tensors()) - 1 in subset)
        )
    if op.name == "index_put":
        masks = [k for k, t in enumerate(sample.tensors()) if t.dtype == rushlight.bool]
        return any(k in subset and k != 0 for k in masks) and sample.tensors()[-1].numel() > 1
    return False


def subsets(count: int) -> list[tuple[int, ...]]:
    found = [s for k in range(1, count + 1) for s in itertools.combinations(range(count), k)]
    return found[:15]


@pytest.mark.parametrize("name", NAMES)
def test_equals_a_loop(name: str) -> None:
    op = OPERATORS[name]
    dtype = accepted(op)
    compared = 0
    for sample in itertools.islice(samples_of(name, dtype), 24):
        sample = fresh(sample)
        for subset in subsets(len(sample.tensors())):
            what = f"{name}({sample}) batched over {subset}"
            if changes_first(op) and 0 not in subset:
                continue
            try:
                rows = by_loop(op, sample, subset)
            except REFUSALS + (IndexError, ValueError):
                with pytest.raises(REFUSALS + (IndexError, ValueError)):
                    by_vmap(op, sample, subset, 0)
                continue
            shapes = {tuple([tuple(t.shape) for t in tensors(row)]) for row in rows}
            if name not in REFUSED and not any(tensors(row) for row in rows):
                continue
            if name in REFUSED or len(shapes) > 1 or counts_on_numbers(op, sample, subset):
                with pytest.raises(RuntimeError, match="vmap|data-dependent|dynamic shape"):
                    by_vmap(op, sample, subset, 0)
                compared += 1
                continue
            for dim in (0,) if name.startswith("as_strided") else (0, -1):  # whose arguments are those of memory
                with warnings.catch_warnings():
                    warnings.filterwarnings("error", message="There is a performance drop")
                    results = by_vmap(op, sample, subset, dim)
                expected = [rushlight.stack(list(column)) for column in zip(*[tensors(row) for row in rows])]
                assert len(results) == len(expected), what
                for ours, theirs in zip(results, expected):
                    assert ours.dtype == theirs.dtype, f"{what}: {ours.dtype}, expected {theirs.dtype}"
                    assert ours.shape == theirs.shape, f"{what}: {ours.shape}, expected {theirs.shape}"
                    if sample.values:
                        assert_same(ours, theirs, (1e-9, 1e-11), what)
                compared += 1
    assert compared or name == "is_same_size" or not any(s.tensors() for s in samples_of(name, dtype)), (
        f"{name} was never batched"
    )
