"""gradcheck of forward mode, through :mod:`rushlight.autograd.forward_ad`."""

from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import Tensor

from . import _finite_difference as finite_difference
from . import forward_ad
from ._gradcheck_rules import batched_failure, compare_batched
from .functional import _units
from .gradcheck import GradcheckError, Subject, mismatch, total, unit_vector


def check(subject: Subject, check_undefined_grad: bool, check_batched: bool) -> None:
    """Compare tangents with finite differences; see ``gradcheck`` for the options."""
    for i in subject.sources:
        if subject.fast_mode:
            _check_projections(subject, i)
        else:
            _check_jacobians(subject, i)
    if check_undefined_grad:
        _check_undefined(subject)
    if check_batched:
        _check_batched(subject)


def _axes(source: Tensor) -> tuple[complex, ...]:
    return (1.0, 1j) if source.is_complex() else (1.0,)


def _of_axis(source: Tensor, axis: complex) -> str:
    if not source.is_complex():
        return ""
    return f"While considering the {'imaginary' if axis == 1j else 'real'} part of complex inputs only, "


def _check_jacobians(subject: Subject, i: int) -> None:
    source = subject.inputs[i]
    numerical = finite_difference.jacobian(subject.func, subject.inputs, i, subject.roots, subject.eps)
    for axis, matrices in zip(_axes(source), numerical, strict=True):
        for j, a, n in zip(subject.roots, _jacobians(subject, i, axis), matrices, strict=True):
            if not subject.close(a, n):
                raise GradcheckError(mismatch(a, n, j, i, _of_axis(source, axis), "computed with forward mode "))


def _jacobians(subject: Subject, i: int, axis: complex) -> list[Tensor]:
    """For each root the matrix (elements of input ``i``, elements of the output), by one tangent per element."""
    source = subject.inputs[i].detach()
    rows = [tangents(subject, {i: unit if axis == 1.0 else unit * axis}) for unit in _units(source)]
    if not rows:
        outputs = [subject.outputs[j] for j in subject.roots]
        return [rushlight.zeros(0, out.numel(), dtype=out.dtype) for out in outputs]
    return [rushlight.stack([row[at].reshape(-1) for row in rows]) for at in range(len(subject.roots))]


def _check_projections(subject: Subject, i: int) -> None:
    source = subject.inputs[i]
    u = unit_vector(source.detach(), i)
    slopes = finite_difference.directional(subject.func, subject.inputs, i, u, subject.roots, subject.eps)
    for at, (j, n, tangent) in enumerate(zip(subject.roots, slopes, tangents(subject, {i: u}), strict=True)):
        a = tangent.reshape(-1)
        if not rushlight.allclose(a, n.to(a.dtype), subject.rtol, subject.atol * total(u)):
            numerical = finite_difference.jacobian(subject.func, subject.inputs, i, subject.roots, subject.eps)
            whole = subject.in_slow_mode(_jacobians(subject, i, 1.0)[at], next(iter(numerical))[at])
            raise GradcheckError(mismatch(a, n, j, i, mode="computed with forward mode ") + "\n" + whole)


def tangents(subject: Subject, given: dict[int, Tensor]) -> list[Tensor]:
    """Tangents of the roots for tangents of some inputs; zeros where there is none."""
    with forward_ad.dual_level():
        duals = [
            forward_ad.make_dual(arg.detach(), given[i]) if i in given else arg for i, arg in enumerate(subject.inputs)
        ]
        outputs = finite_difference.as_tuple(subject.func(*duals))
        result = []
        for j in subject.roots:
            primal, tangent = forward_ad.unpack_dual(outputs[j])
            if tangent is not None and tangent.dtype != primal.dtype and subject.check_grad_dtypes:
                raise GradcheckError(
                    f"Forward AD gradient has dtype mismatch: output {j}, expected {primal.dtype}, got {tangent.dtype}."
                )
            result.append(rushlight.zeros_like(primal) if tangent is None else tangent)
    return result


def _check_undefined(subject: Subject) -> None:
    """An input without a tangent counts as one whose tangent is zero."""
    given: dict[int, Any] = {i: unit_vector(subject.inputs[i].detach(), i) for i in subject.sources}
    for i in subject.sources:
        without = tangents(subject, {k: t for k, t in given.items() if k != i})
        zero = tangents(subject, {**given, i: rushlight.zeros_like(given[i])})
        for j, a, b in zip(subject.roots, without, zero, strict=True):
            if not subject.close(a, b):
                raise GradcheckError(
                    f"Mismatch in tangent values for output with index: {j} when input: {i} has an undefined tangent "
                    f"value. Got: {a} but expected: {b}"
                )


def _check_batched(subject: Subject) -> None:
    """Forward mode under ``func.vmap`` gives what it gives for each tangent of the batch."""
    option = "check_batched_forward_grad"
    for i in subject.sources:
        vectors = [unit_vector(subject.inputs[i].detach(), seed) for seed in range(2)]
        expected = [tangents(subject, {i: v}) for v in vectors]
        try:
            got = _batched_tangents(subject, i, vectors)
        except RuntimeError as error:
            raise GradcheckError(
                f"While computing batched gradients, got: {error}\n\n" + batched_failure(option)
            ) from error
        for at, j in enumerate(subject.roots):
            compare_batched(subject, got[at], [row[at] for row in expected], j, i, option)


def _batched_tangents(subject: Subject, i: int, vectors: Sequence[Tensor]) -> Sequence[Tensor]:
    from rushlight.func import vmap

    batched: Sequence[Tensor] = vmap(lambda v: tuple(tangents(subject, {i: v})))(rushlight.stack(list(vectors)))
    return batched
