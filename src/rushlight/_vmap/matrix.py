"""Products of matrices and vectors, all by matmul."""

from __future__ import annotations

from typing import Any

import rushlight
from rushlight import _C, Tensor

from .dims import front
from .pointwise import aligned
from .shape import padded
from .table import looped, rule, whole

__all__: list[str] = []


@rule("matmul")
def matmul(call: Any, level: int, size: int, mask: int, a: Tensor, b: Tensor) -> Any:
    """Vectors become matrices of one row or column, and the batch one more dimension that broadcasts."""
    count_a, count_b = a.dim() - (mask & 1), b.dim() - (mask >> 1)
    if count_a == 0 or count_b == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {count_a}D and {count_b}D")
    if mask == 1 and count_b <= 2:  # the batch is one more row of each product
        return call(a, b)
    if mask == 2 and count_a == 2 and count_b == 1:
        return call(b, a.mT)
    a = a.unsqueeze(-2) if count_a == 1 else a
    b = b.unsqueeze(-1) if count_b == 1 else b
    count = max(count_a, count_b, 2)
    product = call(padded(a, count) if mask & 1 else a, padded(b, count) if mask & 2 else b)
    if count_a == 1:
        product = product.squeeze(-2)
    return product.squeeze(-1) if count_b == 1 else product


@whole("mm", "mv", "bmm")
def mm(call: Any, a: Tensor, b: Tensor) -> Any:
    """matmul of tensors with as many dimensions as the name says."""
    name = call.__name__
    wanted = {"mm": (2, 2), "mv": (2, 1), "bmm": (3, 3)}[name]
    check_dims(name, (a, b), wanted)
    if name == "bmm" and a.shape[0] != b.shape[0]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]}, {a.shape[2]}] but got: "
            f"[{b.shape[0]}, {b.shape[1]}]."
        )
    return rushlight.matmul(a, b)


def check_dims(name: str, tensors: tuple[Tensor, ...], wanted: tuple[int, ...]) -> None:
    """Refuse tensors of other numbers of dimensions."""
    for i, (t, n) in enumerate(zip(tensors, wanted, strict=True)):
        if t.dim() != n:
            kind = {1: "a vector", 2: "a matrix", 3: "a 3D tensor"}[n]
            raise RuntimeError(f"{name}(): argument {i + 1} must be {kind}, got a {t.dim()}D tensor")


@whole("dot", "inner")
def dot(call: Any, a: Tensor, b: Tensor) -> Any:
    """Sums of products."""
    name = call.__name__
    if name == "inner" and (a.dim() == 0 or b.dim() == 0):
        return a * b
    if name == "inner":
        return rushlight.tensordot(a, b, dims=([-1], [-1]))
    check_dims(name, (a, b), (1, 1))
    if a.shape != b.shape:
        raise RuntimeError(
            "inconsistent tensor size, expected tensor "
            f"{list(a.shape)} and src {list(b.shape)} to have the same number of elements"
        )
    return (a * b).sum(-1)


@rule("vdot")
def vdot(call: Any, level: int, size: int, mask: int, a: Tensor, b: Tensor) -> Any:
    """As dot, the first vector conjugated; what does not fit is refused sample by sample."""
    if a.dim() - (mask & 1) != 1 or b.dim() - (mask >> 1) != 1 or a.shape[-1] != b.shape[-1] or a.dtype != b.dtype:
        return looped(call, level, size, mask, a, b)
    return (a.conj_physical() * b).sum(-1)


@whole("outer", "ger")
def outer(call: Any, a: Tensor, b: Tensor) -> Any:
    """All products of two elements."""
    check_dims(call.__name__, (a, b), (1, 1))
    return a.unsqueeze(-1) * b


@whole("addmm", "addmv", "addbmm", "baddbmm", "addr")
def plus_product(call: Any, x: Tensor, a: Tensor, b: Tensor, beta: Any, alpha: Any) -> Any:
    """beta x + alpha (product of a and b)."""
    name = call.__name__.rstrip("_")
    wanted = {"addmm": (2, 2), "addmv": (2, 1), "addbmm": (3, 3), "baddbmm": (3, 3), "addr": (1, 1)}[name]
    check_dims(name, (a, b), wanted)
    product = rushlight.outer(a, b) if name == "addr" else rushlight.matmul(a, b)
    if name == "addbmm":
        product = product.sum(0)
    if alpha != 1:
        product = product * alpha
    result = product if beta == 0 else product + (x if beta == 1 else x * beta)
    return x.copy_(result) if call.__name__[-1] == "_" else result


@rule("linear")
def linear(call: Any, level: int, size: int, mask: int, x: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
    """One product where the weight is the same for all samples; else a product for each."""
    if not mask & 2:
        if not mask & 4:
            return call(x, weight, bias)
        out = call(x, weight, None)
        return rushlight.add(*aligned(mask & 1 | 2, out, bias))
    lead = x.shape[1:-1] if mask & 1 else x.shape[:-1]
    rows = x.reshape(size, -1, x.shape[-1]) if mask & 1 else x.reshape(-1, x.shape[-1])
    if weight.dim() == 2:  # a sample's weight is a vector
        out = rushlight.matmul(rows, weight.unsqueeze(-1)).reshape(size, *lead)
    else:
        out = rushlight.matmul(rows, weight.mT)
        if bias is not None and mask & 4:
            out = out + bias.unsqueeze(1)
            bias = None
        out = out.reshape(size, *lead, weight.shape[1])
    if bias is None:
        return out
    return out + (padded(bias, out.dim() - 1) if mask & 4 else bias)


@whole("scaled_dot_product_attention")
def attention(call: Any, query: Tensor, key: Tensor, value: Tensor, bias: Any, p: float, *rest: Any) -> Any:
    """The batch is one more leading dimension; with dropout, what that draws is decided for the weights."""
    if p > 0:
        return _attention_with_dropout(call, query, key, value, bias, p, *rest)
    tensors = (query, key, value, bias)
    level = _C._highest_level([t for t in tensors if t is not None])
    if not level:
        return call(*tensors, p, *rest)
    values = [None if t is None else _C._value_at(t, level) for t in tensors]
    mask = sum([1 << i for i, v in enumerate(values) if v is not None])
    size = next(len(v) for v in values if v is not None)
    given = aligned(mask, *[t if v is None else v for t, v in zip(tensors, values, strict=True)])
    count = query.dim()
    full = [t if t is None or mask >> i & 1 else padded(front(t, size), count) for i, t in enumerate(given)]
    return _C._batch(call(*full, p, *rest), level)


def _attention_with_dropout(
    call: Any, query: Tensor, key: Tensor, value: Tensor, bias: Any, p: float, causal: bool, scale: Any, grouped: bool
) -> Any:
    """The weights are what attention gives for the unit vectors as values."""
    units = rushlight.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-1], key.shape[-2])
    weights = call(query, key, units, bias, 0.0, causal, scale, grouped)
    if grouped:
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    return rushlight.matmul(rushlight.dropout(weights, p, True), value)


@rule("kron")
def kron(call: Any, level: int, size: int, mask: int, a: Tensor, b: Tensor) -> Any:
    """All products, blocks of one within the other."""
    a, b = aligned(mask, a, b)
    shape_a, shape_b = (tuple(t.shape)[mask >> i & 1 :] for i, t in enumerate((a, b)))
    count = max(len(shape_a), len(shape_b))
    shape_a, shape_b = ((1,) * (count - len(s)) + s for s in (shape_a, shape_b))
    left = [n for s in shape_a for n in (s, 1)]
    right = [n for s in shape_b for n in (1, s)]
    a = a.reshape((*((size,) if mask & 1 else ()), *left))
    b = b.reshape((*((size,) if mask & 2 else ()), *right))
    return (a * b).reshape(size, *[m * n for m, n in zip(shape_a, shape_b, strict=True)])
