"""Forward mode of every operator of the registry, for every subset of inputs: against reverse mode and differences."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from samples.compare import array

import rushlight
from rushlight.autograd import forward_ad
from test_operators import (
    OPERATORS,
    _quiet,  # noqa: F401
    as_function,
    changes_first,
    derivable,
    each,
    filled_with,
    floating,
    leaves,
    real_sum,
)
from test_operators_forms import each_changing, in_place

DIFFERENTIABLE = [n for n, op in OPERATORS.items() if op.differentiable]
STEP = 1e-6
TOLERANCE = {
    rushlight.float64: 1e-9,
    rushlight.complex128: 1e-9,
    rushlight.float32: 1e-5,
    rushlight.float16: 1e-2,
    rushlight.bfloat16: 1e-1,
}


def directions(inputs: Sequence[rushlight.Tensor], seed: int) -> list[rushlight.Tensor]:
    """Numbers between -1 and 1 of the inputs' shapes, none of them near 0."""
    rng = np.random.default_rng(seed)

    def parts(t: rushlight.Tensor) -> Any:
        return rng.uniform(0.3, 1.0, tuple(t.shape)) * rng.choice([-1.0, 1.0], tuple(t.shape))

    made = [parts(t) + 1j * parts(t) if t.is_complex() else parts(t) for t in inputs]
    return [rushlight.tensor(m, dtype=t.dtype).reshape(t.shape) for m, t in zip(made, inputs)]


def duals(inputs: list[rushlight.Tensor], tangents: dict[int, rushlight.Tensor]) -> list[rushlight.Tensor]:
    return [forward_ad.make_dual(t, tangents[i]) if i in tangents else t for i, t in enumerate(inputs)]


def pushed(function: Any, inputs: list[rushlight.Tensor], tangents: dict[int, rushlight.Tensor]) -> list[Any]:
    """(primal, tangent) of every result."""
    with forward_ad.dual_level():
        return [tuple(forward_ad.unpack_dual(r)) for r in function(*duals(inputs, tangents))]


def inner(a: rushlight.Tensor, b: rushlight.Tensor) -> float:
    """The real part of <a, b>: what gradients and tangents are paired by."""
    return float((array(a).conj() * array(b)).sum().real)


def paired(a: rushlight.Tensor, b: rushlight.Tensor) -> rushlight.Tensor:
    """The same, differentiable."""
    return (a.conj() * b).real.sum()


def pulled(function: Any, inputs: list[rushlight.Tensor], seeds: list[rushlight.Tensor]) -> list[Any]:
    """Reverse mode: the gradients of all inputs for cotangents of the results."""
    variables = leaves(inputs)
    results = [(r, s) for r, s in zip(function(*variables), seeds) if r.requires_grad]
    if not results:
        return [None] * len(variables)
    return list(rushlight.autograd.grad([r for r, _ in results], variables, [s for _, s in results], allow_unused=True))


@each
def test_tangents_of_every_subset(name: str) -> None:
    op = OPERATORS[name]
    if not op.differentiable:
        return
    carried = 0
    for sample, inputs in derivable(name, limit=60):
        function = as_function(op, sample)
        plain = leaves(inputs, ())
        if not any(r.requires_grad for r in function(*leaves(inputs))):
            continue
        what = f"{name}({sample})"
        whole = directions(inputs, 5)
        primals = function(*plain)
        if any(np.isnan(array(p)).any() for p in primals):
            continue
        allowed = max(TOLERANCE[p.dtype] for p in primals)
        seeds = directions(primals, 7)
        gradients = pulled(function, inputs, seeds)
        carried += 1
        for k in range(len(inputs) + 1):
            for needed in itertools.islice(itertools.combinations(range(len(inputs)), k), 8):
                found = pushed(function, plain, {i: whole[i] for i in needed})
                total = 0.0
                for primal, tangent, at in zip(primals, found, range(len(found))):
                    np.testing.assert_array_equal(array(tangent[0]), array(primal), err_msg=what)
                    if not needed:
                        assert tangent[1] is None, f"{what}: a tangent from nowhere"
                        continue
                    if tangent[1] is None:
                        continue
                    assert tangent[1].shape == primal.shape and tangent[1].dtype == primal.dtype, what
                    total += inner(seeds[at], tangent[1])
                expected = sum(inner(gradients[i], whole[i]) for i in needed if gradients[i] is not None)
                np.testing.assert_allclose(total, expected, allowed, allowed, err_msg=f"{what}: inputs {needed}")
    if any(True for _ in derivable(name)):
        assert carried, f"{name} is declared differentiable, but no sample is recorded"


@each
def test_tangents_equal_central_differences(name: str) -> None:
    op = OPERATORS[name]
    if not op.differentiable:
        return
    for sample, inputs in derivable(name):
        function = as_function(op, sample)
        recorded = [
            r.requires_grad and r.dtype in (rushlight.float64, rushlight.complex128) for r in function(*leaves(inputs))
        ]
        plain, along = leaves(inputs, ()), directions(inputs, 11)
        if not all(recorded) or not recorded or 0 in [t.numel() for t in plain]:
            continue
        found = pushed(function, plain, dict(enumerate(along)))
        forth = function(*[x + STEP * t for x, t in zip(plain, along)])
        back = function(*[x - STEP * t for x, t in zip(plain, along)])
        for (_, tangent), b, a in zip(found, forth, back):
            slope = (array(b) - array(a)) / (2 * STEP)
            got = np.zeros_like(slope) if tangent is None else array(tangent)
            np.testing.assert_allclose(got, slope, 1e-3, 1e-5, err_msg=f"{name}({sample})")


@each
def test_forward_over_reverse_and_reverse_over_forward(name: str) -> None:
    """Both give H v, as reverse over reverse does."""
    op = OPERATORS[name]
    if not op.differentiable:
        return
    for sample, inputs in derivable(name):
        function = as_function(op, sample)
        if not any(r.requires_grad for r in function(*leaves(inputs))):
            continue
        what = f"{name}({sample})"
        along = directions(inputs, 13)

        def weighted(*args: rushlight.Tensor) -> rushlight.Tensor:
            return sum((real_sum(r * r) + real_sum(r) for r in function(*args)), rushlight.zeros(()).double())

        variables = leaves(inputs)
        grads = rushlight.autograd.grad(weighted(*variables), variables, create_graph=True, allow_unused=True)
        products = [paired(g, t) for g, t in zip(grads, along) if g is not None and g.requires_grad]
        twice = rushlight.autograd.grad(sum(products), variables, allow_unused=True) if products else None
        expected = [
            np.zeros(tuple(t.shape)) if twice is None or twice[i] is None else array(twice[i])
            for i, t in enumerate(inputs)
        ]

        with forward_ad.dual_level():
            made = [forward_ad.make_dual(t, a).requires_grad_() for t, a in zip(leaves(inputs, ()), along)]
            slopes = rushlight.autograd.grad(weighted(*made), made, allow_unused=True)
            for i, s in enumerate(slopes):
                tangent = None if s is None else forward_ad.unpack_dual(s).tangent
                got = np.zeros_like(expected[i]) if tangent is None else array(tangent)
                np.testing.assert_allclose(got, expected[i], 1e-7, 1e-8, err_msg=f"{what}: forward over reverse, {i}")

        variables = leaves(inputs)
        with forward_ad.dual_level():
            out = weighted(*duals(variables, dict(enumerate(along))))
            tangent = forward_ad.unpack_dual(out).tangent
            slopes = (
                rushlight.autograd.grad(tangent, variables, allow_unused=True)
                if tangent is not None and tangent.requires_grad
                else [None] * len(variables)
            )
        for i, s in enumerate(slopes):
            got = np.zeros_like(expected[i]) if s is None else array(s)
            np.testing.assert_allclose(got, expected[i], 1e-7, 1e-8, err_msg=f"{what}: reverse over forward, {i}")


@each_changing
def test_in_place_tangents_equal_functional(name: str) -> None:
    op = OPERATORS[name]
    if changes_first(op) or not op.differentiable:
        return
    for sample, inputs in derivable(name, limit=60):
        if not floating(sample.args[0]) or 0 in sample.args[0].stride():
            continue
        plain, along = leaves(inputs, ()), directions(inputs, 17)
        functional = as_function(op, sample)
        result = functional(*plain)[0]
        if tuple(result.shape) != tuple(sample.args[0].shape) or result.dtype != sample.args[0].dtype:
            continue
        (_, expected), *_ = pushed(functional, plain, dict(enumerate(along)))
        with forward_ad.dual_level():
            made = duals([t.clone() for t in plain], {i: t.clone() for i, t in enumerate(along)})
            after = in_place(op, filled_with(sample, made))
            _, got = forward_ad.unpack_dual(after)
            assert after is made[0], name
        np.testing.assert_allclose(array(got), array(expected), 1e-12, 1e-12, err_msg=f"{name}_({sample})")


def test_every_operator_is_tried() -> None:
    assert len(DIFFERENTIABLE) > 250
