"""Derivatives by central differences, the yardstick of :mod:`rushlight.autograd.gradcheck`.

Inputs are changed in place behind autograd's back (through ``.data``) and put back: a function that reads an input
from elsewhere than its arguments sees the change too, and the versions that a recorded graph expects stay as they are.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import rushlight
from rushlight import Tensor

Func: TypeAlias = Callable[..., Any]


def as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def jacobian(func: Func, inputs: Sequence[Any], i: int, which: Sequence[int], eps: float) -> list[list[Tensor]]:
    """Matrices ``(elements of input i, elements of output j)`` for the outputs ``j`` in ``which``.

    One list per direction: along the real axis and, for a complex input, along the imaginary axis.
    """
    data = inputs[i].data
    result = []
    for step in _steps(data, eps):
        columns: list[list[Tensor]] = [[] for _ in which]
        for index in itertools.product(*map(range, data.shape)):
            kept = data[index].item()
            try:
                data[index] = kept + step
                above = _outputs(func, inputs, which)
                data[index] = kept - step
                below = _outputs(func, inputs, which)
            finally:
                data[index] = kept
            for column, slope in zip(columns, _slopes(above, below, eps, f"at index {index} "), strict=True):
                column.append(slope)
        if data.numel() == 0:
            result.append([rushlight.zeros(0, out.numel(), dtype=out.dtype) for out in _outputs(func, inputs, which)])
        else:
            result.append([rushlight.stack(column) for column in columns])
    return result


def directional(
    func: Func, inputs: Sequence[Any], i: int, direction: Tensor, which: Sequence[int], eps: float
) -> list[Tensor]:
    """Derivatives of the outputs in ``which``, flat, along ``direction`` of input ``i``."""
    data = inputs[i].data
    kept, step = data.clone(), direction * eps
    try:
        data.copy_(kept + step)
        above = _outputs(func, inputs, which)
        data.copy_(kept - step)
        below = _outputs(func, inputs, which)
    finally:
        data.copy_(kept)
    return _slopes(above, below, eps, "")


def _steps(data: Tensor, eps: float) -> tuple[complex, ...]:
    return (eps, eps * 1j) if data.is_complex() else (eps,)


def _outputs(func: Func, inputs: Sequence[Any], which: Sequence[int]) -> list[Tensor]:
    outputs = as_tuple(func(*inputs))
    return [outputs[j].detach().clone() for j in which]


def _slopes(above: list[Tensor], below: list[Tensor], eps: float, where: str) -> list[Tensor]:
    for a, b in zip(above, below, strict=True):
        for what, first, second in (("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype)):
            if first != second:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed {where}by "
                    f"{eps}, but got: {what}s {first} and {second}."
                )
    return [((a - b) / (2 * eps)).reshape(-1) for a, b in zip(above, below, strict=True)]
