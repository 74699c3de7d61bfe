"""What gradcheck asks of a backward besides its numbers."""

from typing import Any

import rushlight
from rushlight import Tensor

from ._finite_difference import as_tuple
from .function import Function
from .gradcheck import GradcheckError, Subject, promoted, unit_vector

_SEE = "; pass {}=False to gradcheck to leave this out"


class UndefinedGradient(Function):
    """The identity, with an undefined gradient: None where a gradient of zeros is meant."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> None:
        return None


def check_linear(subject: Subject) -> None:
    """A backward is linear: zeros in, zeros out; and its gradients are of the kind of their inputs."""
    roots = [subject.outputs[j] for j in subject.roots]
    grads = rushlight.autograd.grad(
        roots,
        subject.source_tensors,
        [rushlight.zeros_like(out) for out in roots],
        retain_graph=True,
        allow_unused=True,
    )
    for i, source, grad in zip(subject.sources, subject.source_tensors, grads, strict=True):
        if grad is None:
            continue
        if not bool((grad == 0).all()):
            raise GradcheckError(
                f"backward not multiplied by grad_output: input {i} has a gradient of {grad} for zeros"
            )
        for what, got, expected in (
            ("type", grad.dtype, source.dtype),
            ("device", grad.device, source.device),
            ("size", grad.shape, source.shape),
        ):
            if got != expected:
                raise GradcheckError(f"grad is incorrect {what}: input {i}, expected {expected}, got {got}")


def check_undefined(subject: Subject) -> None:
    """Undefined gradients, of all outputs and of one at a time, count as zeros."""
    count = len(subject.roots)
    _check_undefined(subject, set(range(count)))
    if count > 1:
        for at in range(count):
            _check_undefined(subject, {at})


def _check_undefined(subject: Subject, undefined: set[int]) -> None:
    outputs = as_tuple(subject.func(*subject.inputs))
    roots = [
        UndefinedGradient.apply(outputs[j]) if at in undefined else outputs[j] for at, j in enumerate(subject.roots)
    ]
    try:
        grads = rushlight.autograd.grad(
            roots, subject.source_tensors, [rushlight.zeros_like(out) for out in roots], allow_unused=True
        )
    except RuntimeError as error:
        raise GradcheckError(
            "Expected backward function to handle undefined output grads, but with those of outputs "
            f"{[subject.roots[at] for at in sorted(undefined)]} undefined got: {error}"
            + _SEE.format("check_undefined_grad")
        ) from error
    for i, grad in zip(subject.sources, grads, strict=True):
        if grad is not None and not bool((grad == 0).all()):
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero, but "
                f"input {i} has a gradient of {grad}" + _SEE.format("check_undefined_grad")
            )


def check_batched(subject: Subject) -> None:
    """Backward under ``func.vmap`` gives what it gives for each gradient of the batch."""
    for j in subject.roots:
        out = subject.outputs[j]
        vectors = [unit_vector(out.detach(), seed) for seed in range(2)]
        expected = [subject.backward(j, v) for v in vectors]
        try:
            got = rushlight.autograd.grad(
                out,
                subject.source_tensors,
                rushlight.stack(vectors),
                retain_graph=True,
                allow_unused=True,
                is_grads_batched=True,
            )
        except RuntimeError as error:
            raise GradcheckError(
                f"While computing batched gradients, got: {error}\n\n" + batched_failure("check_batched_grad")
            ) from error
        for at, i in enumerate(subject.sources):
            if got[at] is not None:
                compare_batched(subject, got[at], [grads[at] for grads in expected], j, i, "check_batched_grad")


def compare_batched(subject: Subject, got: Tensor, each: list[Tensor], j: int, i: int, option: str) -> None:
    result, expected = promoted(got, rushlight.stack(each))
    if not rushlight.allclose(result, expected, subject.rtol, subject.atol):
        raise GradcheckError(
            f"\nFor output {j} and input {i}:\n\n{batched_failure(option)}\n\nGot:\n{result}\n\nExpected:\n{expected}\n"
        )


def batched_failure(option: str) -> str:
    return f"gradcheck or gradgradcheck failed while testing batched gradient computation{_SEE.format(option)}."
