"""Gradients of every operator at complex numbers, and at real ones among them, against PyTorch's."""

from __future__ import annotations

import itertools
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from samples import Sample, family_of, samples_of
from samples.compare import array, tensors
from test_operators_oracle import OPERATORS, converted, theirs, torch, with_reduction

import rushlight

pytestmark = pytest.mark.oracle

DIFFERENTIABLE = [
    n
    for n, op in OPERATORS.items()
    if n != "as_strided_scatter"  # of which PyTorch gives self the gradient of the window
    and op.differentiable
    and theirs(op) is not None
    and family_of(n)
    and not family_of(n).random
]


def is_number(t: Any) -> bool:
    return bool(t.is_floating_point() or t.is_complex())


def variants(sample: Sample) -> Iterator[Sample]:
    """The sample, and with each of its complex tensors made real."""
    yield sample
    count = sum(t.is_complex() for t in sample.tensors())
    for chosen in range(count if count > 1 else 0):
        places = itertools.count()
        yield sample.map(lambda t: t.real.clone() if t.is_complex() and next(places) == chosen else t)


def as_leaves(sample: Sample) -> tuple[Sample, list[Any]]:
    found: list[Any] = []

    def leaf(t: Any) -> Any:
        own = t.detach().clone()
        if is_number(own):
            own.requires_grad_()
            found.append(own)
        return own

    return sample.map(leaf), found


def cotangents(results: list[Any], name: str) -> list[Any]:
    """Numbers for every result, the same for both."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    made = []
    for r in results:
        parts = rng.uniform(-1, 1, (2, *r.shape))
        made.append(parts[0] + 1j * parts[1] if r.is_complex() else parts[0])
    return made


def gradients(package: Any, function: Any, changes: bool, args: Any, kwargs: Any, leaves: list[Any], name: str) -> Any:
    """Gradients of the leaves, None where the operator is refused or not recorded."""
    if changes:
        args = (args[0] * 1, *args[1:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            out = function(*args, **kwargs)
        except (RuntimeError, TypeError, IndexError, ValueError):
            return None
        kind = rushlight.Tensor if package is rushlight else torch.Tensor
        results = [r for r in flat(out) if isinstance(r, kind) and is_number(r) and r.requires_grad]
        if not results:
            return None
        seeds = [package.tensor(v).to(r.dtype) for v, r in zip(cotangents(results, name), results, strict=True)]
        try:
            return package.autograd.grad(results, leaves, seeds, allow_unused=True)
        except RuntimeError:
            if package is rushlight:
                raise
            return None  # PyTorch's own mistakes: real and complex inputs together, empty shapes


def flat(value: Any) -> list[Any]:
    return [p for v in value for p in flat(v)] if isinstance(value, tuple | list) else [value]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_complex_gradients(name: str) -> None:
    op, twin = OPERATORS[name], theirs(OPERATORS[name])
    wrong: list[str] = []
    for sample in samples_of(name, "complex128"):
        if not sample.derivatives or not sample.values:
            continue
        for variant in variants(sample):
            mine, leaves = as_leaves(variant)
            args, kwargs = converted(variant.args), converted(variant.kwargs)
            other, others = twin_leaves(args, kwargs)
            changes = name.endswith("_")
            ours = gradients(rushlight, op.callable, changes, mine.args, mine.kwargs, leaves, name)
            known = gradients(torch, twin, changes, *with_defaults(op, other), others, name)
            if known is None:
                continue
            if ours is None:
                if variant is sample:  # of two types, PyTorch takes what is empty
                    wrong.append(f"{name}({variant}): no gradients, unlike in PyTorch")
                continue
            for i, (a, b) in enumerate(zip(ours, known, strict=True)):
                if (a is None or b is None) and not any(t is not None and t.abs().sum().item() for t in (a, b)):
                    continue
                if a is None or b is None or str(a.dtype) != str(b.dtype):
                    wrong.append(f"{name}({variant}), input {i}: {a}, PyTorch: {b}")
                elif not np.allclose(array(a), b.detach().resolve_conj().numpy(), 1e-8, 1e-9, equal_nan=True):
                    wrong.append(f"{name}({variant}), input {i}: {a.tolist()}, PyTorch: {b.tolist()}")
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:20])


def with_defaults(op: Any, call: tuple[Any, Any]) -> tuple[Any, Any]:
    args, kwargs = call
    return args, with_reduction(op, args, kwargs)


def twin_leaves(args: Any, kwargs: Any) -> tuple[tuple[Any, Any], list[Any]]:
    found: list[Any] = []

    def over(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            own = value.detach().clone()
            if is_number(own):
                own.requires_grad_()
                found.append(own)
            return own
        if isinstance(value, tuple | list) and not isinstance(value, torch.Size):
            return type(value)([over(v) for v in value])
        if isinstance(value, dict):
            return {k: over(v) for k, v in value.items()}
        return value

    return (over(args), over(kwargs)), found


def test_enough_is_compared() -> None:
    taken = 0
    for name in DIFFERENTIABLE:
        sample = next(samples_of(name, "complex128"), None)
        if sample is not None:
            mine, leaves = as_leaves(sample)
            op = OPERATORS[name]
            found = gradients(rushlight, op.callable, name.endswith("_"), mine.args, mine.kwargs, leaves, name)
            taken += found is not None and any(t.is_complex() for t in tensors(list(found)))
    assert taken > 150
