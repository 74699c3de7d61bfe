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
from rushlight.operators.registry import INPLACE
from test_operators import OPERATORS, REFUSALS, TRIED, accepted, call, changes_first, floating, fresh, real_sum, twins

NAMES = [n for n in TRIED if family_of(n) and not family_of(n).random]
SIZE = 3
# give Python values, or results whose shape or address depends on numbers
REFUSED = {"allclose", "equal", "is_nonzero", "nonzero", "argwhere", "masked_select", "_unique2", "_unique_consecutive"}
REFUSED |= {"resize_", "resize_as_"}
IN_MEMORY = ("as_strided", "view_as_complex")  # what they take depends on places in memory


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


# For some subsets of their inputs these are computed sample by sample, and say so.
LOOPED = {
    "_dirichlet_grad",
    "_rnn_layer",
    "index_add",
    "index_copy",
    "index_fill",
    "combinations",
    "masked_scatter",
    "cov",
    "cross_entropy_loss",
    "nll_loss_nd",
    "nonzero_static",
    "renorm",
    "searchsorted",
    "vander",
}


@pytest.mark.parametrize("name", NAMES)
def test_equals_a_loop(name: str) -> None:
    op = OPERATORS[name]
    dtype = accepted(op)
    compared = 0
    told = False
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
            for dim in (0,) if name.startswith(IN_MEMORY) else (0, -1):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.filterwarnings("always", message="There is a performance drop")
                    results = by_vmap(op, sample, subset, dim)
                told = told or any("There is a performance drop" in str(w.message) for w in caught)
                expected = [rushlight.stack(list(column)) for column in zip(*[tensors(row) for row in rows])]
                assert len(results) == len(expected), what
                for ours, theirs in zip(results, expected):
                    assert ours.dtype == theirs.dtype, f"{what}: {ours.dtype}, expected {theirs.dtype}"
                    assert ours.shape == theirs.shape, f"{what}: {ours.shape}, expected {theirs.shape}"
                    if sample.values:
                        assert_same(ours, theirs, (1e-9, 1e-11), what)
                compared += 1
    assert told == (name in LOOPED), f"{name} is {'' if told else 'not '}computed sample by sample"
    assert compared or name == "is_same_size" or not any(s.tensors() for s in samples_of(name, dtype)), (
        f"{name} was never batched"
    )


def comparable(name: str, limit: int) -> Any:
    """Samples and subsets of their inputs, the results of a loop, for calls that vmap takes."""
    op = OPERATORS[name]
    for sample in itertools.islice(samples_of(name, accepted(op)), limit):
        sample = fresh(sample)
        if not sample.tensors() or name in REFUSED:
            continue
        every = tuple(range(len(sample.tensors())))
        try:
            rows = by_loop(op, sample, every)
        except REFUSALS + (IndexError, ValueError):
            continue
        shapes = {tuple([tuple(t.shape) for t in tensors(row)]) for row in rows}
        if tensors(rows[0]) and len(shapes) == 1 and not counts_on_numbers(op, sample, every):
            yield sample, rows


@pytest.mark.parametrize("name", [n for n in NAMES if INPLACE in OPERATORS[n].forms and twins(OPERATORS[n])])
def test_in_place_equals_a_loop(name: str) -> None:
    op = OPERATORS[name]
    if changes_first(op) or name in REFUSED:
        return
    for sample, rows in comparable(name, 12):
        target = sample.args[0]
        if not isinstance(target, rushlight.Tensor) or isinstance(rows[0], tuple | list) or target.numel() == 0:
            continue
        if rows[0].dtype != target.dtype or (rows[0].shape != target.shape and not family_of(name).reshapes):
            continue
        values = [batched(t, 0) for t in sample.tensors()]

        def change(*args: rushlight.Tensor) -> Any:
            own = filled(sample, list(args))
            changed = own.args[0]
            assert op.changing(*own.args, **own.kwargs) is changed
            return changed

        result = vmap(change)(*values)
        assert_same(result, rushlight.stack(rows), (1e-9, 1e-11), f"{name}_({sample})")
        if not family_of(name).reshapes:
            assert_same(values[0], result, what=f"{name}_({sample}) does not write to its argument")


@pytest.mark.parametrize("name", [n for n in NAMES if OPERATORS[n].differentiable])
def test_gradients_equal_a_loop(name: str) -> None:
    op = OPERATORS[name]
    dtype = accepted(op)
    if changes_first(op) or dtype not in ("float64", "complex128") or name.startswith("as_strided"):
        return
    for sample, _ in comparable(name, 8):
        inputs = sample.tensors()
        leaves = [batched(t, 0) for t in inputs]
        needed = [t for t in leaves if floating(t)][: sample.variables]
        for t in needed:
            t.requires_grad_()

        def total(*args: rushlight.Tensor) -> Any:
            found = [r for r in tensors(call(op, filled(sample, list(args)))) if floating(r)]
            return sum([real_sum(r * (k + 0.5)) for k, r in enumerate(found)], args[0].new_zeros(()).real)

        together = vmap(total)(*leaves).sum()
        apart = sum([total(*row) for row in zip(*leaves)])
        if not sample.derivatives or not apart.requires_grad:
            continue
        ours = rushlight.autograd.grad(together, needed, allow_unused=True)
        theirs = rushlight.autograd.grad(apart, needed, allow_unused=True)
        for a, b, t in zip(ours, theirs, needed):
            a, b = (rushlight.zeros_like(t) if g is None else g for g in (a, b))
            assert_same(a, b, (1e-9, 1e-11), f"gradient of {name}({sample})")


@pytest.mark.parametrize("name", NAMES)
def test_two_levels_equal_two_loops(name: str) -> None:
    op = OPERATORS[name]
    if changes_first(op):
        return
    for sample, rows in comparable(name, 3):
        values = [rushlight.stack([batched(t, 0), batched(t, 0).flip(0)]) for t in sample.tensors()]
        once: Any = vmap(lambda *args: tuple(tensors(call(op, filled(sample, list(args))))))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = vmap(once)(*values)
        if not sample.values:
            continue
        for ours, column in zip(results, zip(*[tensors(row) for row in rows])):
            expected = rushlight.stack(list(column))
            assert_same(ours, rushlight.stack([expected, expected.flip(0)]), (1e-9, 1e-11), f"{name}({sample})")
