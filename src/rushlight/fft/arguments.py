"""The arguments of transforms, as PyTorch takes and refuses them, and ``out=``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import Tensor

from ..operators.operation import scalar_type

__all__ = [
    "Ints",
    "Shape",
    "checked_size",
    "complexes",
    "delivered",
    "either",
    "lines",
    "planes",
    "reals",
    "whole_dims",
]

Shape = Sequence[int] | None
Ints = tuple[int, ...]


def either(name: str, x: Any) -> Tensor:
    """Real or complex numbers in a type that is transformed: whole numbers as the default type."""
    if not isinstance(x, Tensor):
        raise TypeError(f"fft_{name}(): argument 'input' (position 1) must be Tensor, not {type(x).__name__}")
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(rushlight.get_default_dtype())
    if x.dtype in (rushlight.float16, rushlight.bfloat16):
        raise RuntimeError(f"Unsupported dtype {scalar_type(x.dtype)}")
    checked: Tensor = x
    return checked


def complexes(name: str, given: Any) -> Tensor:
    """Complex numbers, real ones made complex."""
    x = either(name, given)
    return x if x.is_complex() else x.to(rushlight.complex64 if x.dtype == rushlight.float32 else rushlight.complex128)


def reals(name: str, given: Any, message: str) -> Tensor:
    """Real numbers; complex ones are refused."""
    x = either(name, given)
    if x.is_complex():
        raise RuntimeError(f"{message}{scalar_type(x.dtype)}")
    return x


def _from_end(dim: int, count: int) -> int:
    if not -count <= dim < count:
        if not count:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})")
    return dim - count if dim >= 0 else dim


def checked_size(n: int) -> int:
    """The size, which must be positive."""
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def lines(name: str, x: Tensor, n: int | None, dim: int) -> tuple[Ints, Ints | None]:
    """The one dimension to transform, counted from the end, and its size if one is given."""
    if n is not None and (not isinstance(n, int) or isinstance(n, bool)):
        raise TypeError(f"fft_{name}(): argument 'n' must be int, not {type(n).__name__}")
    dims = (_from_end(dim, x.dim()),)
    return dims, None if n is None else (checked_size(n),)


def planes(x: Tensor, s: Shape, dim: Shape) -> tuple[Ints, Ints | None]:
    """The dimensions to transform, counted from the end, and their sizes if given; -1 stands for the size as it is."""
    count = x.dim()
    given = None if s is None else (s,) if isinstance(s, int) else tuple(s)
    if dim is not None:
        dims = tuple([_from_end(d, count) for d in ((dim,) if isinstance(dim, int) else dim)])
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if given is not None and len(given) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif given is not None:
        if len(given) > count:
            raise RuntimeError(f"Got shape with {len(given)} values but input tensor only has {count} dimensions.")
        dims = tuple(range(-len(given), 0))
    else:
        dims = tuple(range(-count, 0))
    return dims, given


def whole_dims(x: Tensor, dims: Ints, sizes: Ints | None) -> Ints:
    """The sizes of the dimensions, each positive."""
    given = sizes or (-1,) * len(dims)
    return tuple([checked_size(x.shape[d] if n == -1 else n) for d, n in zip(dims, given, strict=True)])


def delivered(name: str, out: Tensor | None, result: Tensor) -> Tensor:
    """`result`, or `out` with its numbers."""
    if out is None:
        return result
    if out.is_complex() != result.is_complex() or not (out.is_complex() or out.is_floating_point()):
        kind = "complex" if result.is_complex() else "floating point"
        raise RuntimeError(f"{name} expects a {kind} output tensor, but got {scalar_type(out.dtype)}")
    if rushlight.is_grad_enabled() and (out.requires_grad or result.requires_grad):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if out.shape != result.shape:
        out.resize_(result.shape)
    return out.copy_(result)
