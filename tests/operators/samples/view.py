"""Samples of the views: other shapes, orders and parts of the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .sample import Maker, Sample, samples


def calls(shape: tuple[int, ...], *rest: Any, **kwargs: Any) -> tuple[tuple[int, ...], tuple[Any, ...], dict[str, Any]]:
    """A call: the shape of the tensor, and what follows it."""
    return shape, rest, kwargs


def table(*entries: Any) -> Callable[[Maker], Iterator[Sample]]:
    """Samples of `calls`."""

    def make(m: Maker) -> Iterator[Sample]:
        for shape, rest, kwargs in entries:
            yield Sample((m(*shape), *rest), kwargs)

    return make


def _squeeze(x: Any, dim: Any = None) -> Any:
    if dim is None:
        return x.squeeze()
    dims = [d % max(x.ndim, 1) for d in (dim if isinstance(dim, tuple) else (dim,))]
    return x.squeeze(tuple(d for d in dims if x.ndim and x.shape[d] == 1))


def _flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    if x.ndim == 0:
        return x.reshape(1)
    first, last = start_dim % x.ndim, end_dim % x.ndim
    return x.reshape(*x.shape[:first], -1, *x.shape[last + 1 :]) if x.size else x.reshape(_flat(x.shape, first, last))


def _flat(shape: Any, first: int, last: int) -> Any:
    return (*shape[:first], int(np.prod(shape[first : last + 1])), *shape[last + 1 :])


def narrowed(x: Any, dim: int, start: int, n: int) -> Any:
    """A range along a dimension; a negative start counts from the end."""
    start = start if start >= 0 else start + x.shape[dim]
    return sliced(x, dim, start, start + n)


def sliced(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    """A slice along a dimension."""
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


samples("alias", "alias_copy", reference=lambda x: x)(table(calls(()), calls((2, 3)), calls((0,))))
samples("t", "t_copy", reshapes=True, reference=lambda x: x.T)(
    table(calls(()), calls((3,)), calls((2, 3)), calls((2, 0)))
)
samples("adjoint", reference=lambda x: np.swapaxes(x, -1, -2).conj() if x.ndim else x)(
    table(calls((2, 3)), calls((2, 3, 2)), calls((2, 0)))
)
samples(
    "transpose",
    "transpose_copy",
    "swapaxes",
    "swapdims",
    reshapes=True,
    reference=lambda x, a, b: x if x.ndim == 0 else np.swapaxes(x, a, b),
)(table(calls((), 0, -1), calls((3,), 0, 0), calls((2, 3), 0, 1), calls((2, 3, 4), -1, 0), calls((2, 0, 3), 1, 2)))
samples("movedim", "moveaxis", reference=lambda x, a, b: np.moveaxis(x, a, b) if x.ndim else x)(
    table(calls((2, 3), 0, 1), calls((2, 3, 4), (0, 1), (1, 2)), calls((2, 3, 4), -1, 0), calls((), 0, 0))
)
samples("permute", "permute_copy", reference=lambda x, dims: np.transpose(x, dims))(
    table(calls((), ()), calls((2, 3), (1, 0)), calls((2, 3, 4), (2, 0, 1)), calls((2, 3, 4), (-1, 0, 1)))
)
samples("squeeze", "squeeze_copy", reshapes=True, reference=_squeeze)(
    table(calls((1, 3, 1)), calls((1, 3), 0), calls((2, 3), 1), calls((1, 3, 1), (0, -1)), calls((), 0), calls(()))
)
samples("unsqueeze", "unsqueeze_copy", reshapes=True, reference=np.expand_dims)(
    table(calls((), 0), calls((3,), 0), calls((2, 3), -1), calls((0,), 1))
)
samples("expand", "expand_copy", "broadcast_to", reference=lambda x, size: np.broadcast_to(x, size))(
    table(calls((), (2, 3)), calls((3,), (2, 3)), calls((2, 1), (2, 3)), calls((1, 0), (2, 0)))
)


@samples("narrow", reference=lambda x, dim, start, n: narrowed(x, dim, int(start), n))
def _narrow(m: Maker) -> Iterator[Sample]:
    for shape, rest in (((3,), (0, 1, 2)), ((2, 3), (-1, 0, 2)), ((2, 3), (0, 2, 0)), ((2, 3), (1, -2, 2))):
        yield Sample((m(*shape), *rest))
    yield Sample((m(2, 3), 1, m.index(below=1) + 1, 2))


samples("select", "select_copy", reference=lambda x, dim, i: np.take(x, i, dim))(
    table(calls((3,), 0, 1), calls((2, 3), -1, -1), calls((2, 3, 2), 1, 0))
)
samples("slice", "slice_copy", reference=sliced)(
    table(calls((4,), 0, 1, 3), calls((2, 4), 1, None, None, 2), calls((4,), 0, -3, 100), calls((4,), 0, 3, 1))
)
samples("unbind", "unbind_copy", reference=lambda x, dim=0: list(np.moveaxis(x, dim, 0)))(
    table(calls((3,)), calls((2, 3)), calls((2, 3), -1), calls((0, 2)))
)
samples("flatten", reference=_flatten)(
    table(calls(()), calls((3,)), calls((2, 3, 2)), calls((2, 3, 2), 1), calls((2, 3, 2), 0, 1), calls((2, 0, 3), -2))
)
samples("reshape", reference=lambda x, size: x.reshape(size))(
    table(calls((), (1, 1)), calls((2, 3), (3, 2)), calls((2, 3), (-1,)), calls((4,), (2, -1)), calls((0, 3), (3, 0)))
)
samples("view", "view_copy", reference=lambda x, size: x.reshape(size), strides=True)(
    table(calls((), (1, 1)), calls((2, 3), (3, 2)), calls((2, 3), (-1,)), calls((4,), (2, -1)), calls((0, 3), (3, 0)))
)


@samples("reshape_as", reference=lambda x, other: x.reshape(other.shape))
@samples("view_as", reference=lambda x, other: x.reshape(other.shape), strides=True)
def _shaped_like(m: Maker) -> Iterator[Sample]:
    for shape, other in (((), (1,)), ((2, 3), (3, 2)), ((0, 2), (4, 0))):
        yield Sample((m(*shape), m(*other, dtype="float32")))


@samples("expand_as", reference=lambda x, other: np.broadcast_to(x, other.shape))
def _expand_as(m: Maker) -> Iterator[Sample]:
    for shape, other in (((), (2,)), ((3,), (2, 3)), ((2, 1), (2, 3))):
        yield Sample((m(*shape), m(*other, dtype="float32")))


@samples("sum_to_size", reference=lambda x, size: _sum_to(x, size))
def _sum_to_size(m: Maker) -> Iterator[Sample]:
    for shape, size in (((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 3), (2, 3)), ((2, 3), ()), ((4, 2, 3), (1, 3))):
        yield Sample((m(*shape), size))


def _sum_to(x: Any, size: Any) -> Any:
    if x.dtype.kind in "iub" and x.shape != tuple(size):
        x = x.astype(np.int64)
    while x.ndim > len(size):
        x = x.sum(0)
    for d, n in enumerate(size):
        if n == 1 and x.shape[d] != 1:
            x = x.sum(d, keepdims=True)
    return x


def as_strided_reference(x: Any, size: Any, stride: Any, offset: int = 0, copy: bool = True) -> Any:
    """A view by strides in elements, or its copy."""
    strides = tuple(s * x.itemsize for s in stride)
    view = np.lib.stride_tricks.as_strided(x.reshape(-1)[offset:], tuple(size), strides)
    return view.copy() if copy else view


samples("as_strided", "as_strided_copy", reference=as_strided_reference, strides=True, reshapes=True)(
    table(
        calls((6,), (2, 3), (3, 1)),
        calls((6,), (2, 2), (1, 2), 1),
        calls((2, 3), (3, 2), (1, 3)),
        calls((6,), (3, 3), (1, 1)),
        calls((6,), (2, 2), (0, 1), 3),
        calls((6,), (), ()),
    )
)
