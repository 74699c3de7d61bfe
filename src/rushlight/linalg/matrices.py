"""What the functions of linalg share: the checks of matrices, the way to NumPy's LAPACK and back, results with names."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable
from typing import Any, TypeVar, cast

import rushlight
from rushlight import _C, Tensor

from ..operators.operation import numbers, scalar_type, tensor

__all__ = [
    "LinAlgError",
    "check_matrix",
    "check_square",
    "matrices_of",
    "named",
    "numbers",
    "over_batches",
    "regular",
    "scalar_type",
    "tensor",
    "write",
]


F = TypeVar("F", bound=Callable[..., Any])
_Result = TypeVar("_Result")  # a tensor, or a tuple of them


class LinAlgError(RuntimeError):
    """A factorization or a solution does not exist, or was not found."""


def check_floating(name: str, a: Tensor, low: bool = False) -> None:
    """Refuse types that are not computed in: whole numbers, and half precision (unless `low`)."""
    kind = scalar_type(a.dtype)
    if not (a.is_floating_point() or a.is_complex()):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {kind}")
    if kind in ("Half", "BFloat16", "ComplexHalf") and not low:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {kind}")


def check_matrix(name: str, a: Tensor, what: str = "A") -> None:
    """Refuse what is not a matrix, or a batch of them, of floating or complex type."""
    if a.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor {what} must have at least 2 dimensions.")
    check_floating(name, a)


def check_square(name: str, a: Tensor, what: str = "A") -> None:
    """Refuse what is not a square matrix, or a batch of them, of floating or complex type."""
    check_matrix(name, a, what)
    rows, columns = a.shape[-2:]
    if rows != columns:
        raise RuntimeError(
            f"{name}: {what} must be batches of square matrices, but they are {rows} by {columns} matrices"
        )


def matrices_of(a: Tensor) -> Any:
    """The matrices of all batches as one array of three dimensions."""
    return numbers(a).reshape(a.shape[:-2].numel(), *a.shape[-2:])


def write(out: Any, result: _Result) -> _Result:
    """`result`, or `out` with the result's numbers, where it was given: a tensor, or one per part of the result."""
    if out is None:
        return result
    parts: Any = result
    pairs = [(out, parts)] if isinstance(result, Tensor) else list(zip(out, parts, strict=True))
    if rushlight.is_grad_enabled() and any(t.requires_grad for pair in pairs for t in pair):
        raise RuntimeError(
            "functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad."
        )
    for target, part in pairs:
        if not rushlight.can_cast(part.dtype, target.dtype):
            raise RuntimeError(f"result type {part.dtype} can't be cast to the desired output type {target.dtype}")
        if target.shape != part.shape:
            target.resize_(part.shape)
        target.copy_(part)
    given: _Result = out
    return given


def regular(a: Tensor, failed: Tensor) -> Tensor:
    """The square matrices, with those that are not to be factorized replaced by the identity."""
    return rushlight.where(failed, rushlight.eye(a.shape[-1], dtype=a.dtype), a)


def over_batches(*core_dims: int) -> Callable[[F], F]:
    """Let a function of items with leading batch dimensions take tensors of vmap, as `Operation` does.

    ``core_dims``: of each positional argument, how many dimensions at the end are one item's, 0 for what is no tensor.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            level = _C._highest_level([a for a in args if isinstance(a, Tensor)])
            if not level:
                return function(*args, **kwargs)
            from .._vmap.function import leading

            return leading(lambda *values: wrapped(*values, **kwargs), core_dims, args, level)

        return cast("F", wrapped)

    return decorate


def named(name: str, fields: str) -> Any:
    """The type of a result with several parts, printed as PyTorch prints them."""
    parts = namedtuple(name, fields)  # type: ignore[misc]
    parts.__module__ = "torch.return_types"
    parts.__slots__ = ()  # type: ignore[attr-defined]

    def show(self: Any) -> str:
        return f"torch.return_types.{name}(\n" + ",\n".join([f"{f}={v!r}" for f, v in self._asdict().items()]) + ")"

    parts.__repr__ = show  # type: ignore[method-assign]
    return parts
