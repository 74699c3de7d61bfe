"""Operators of several tensors that broadcast, written in the core rather than declared."""

from __future__ import annotations

from functools import reduce
from typing import Any

import rushlight
from rushlight import Tensor

from ..operators.registry import Overload
from .dims import behind
from .shape import dynamic, padded
from .table import family, rule

__all__ = ["aligned"]

_TYPELESS = frozenset(("mask", "condition"))  # they take no part in promotion
_CASTING = frozenset(("isclose", "copy_"))  # self decides the type


def dims_of(values: tuple[Any, ...], mask: int, i: int) -> int:
    """How many dimensions a sample has."""
    return int(values[i].dim()) - (mask >> i & 1)


def aligned(mask: int, *values: Any) -> list[Any]:
    """The tensors with dimensions of one, so that values broadcast as samples do."""
    count = max([dims_of(values, mask, i) for i, v in enumerate(values) if isinstance(v, Tensor)])
    return [padded(v, count) if mask >> i & 1 else v for i, v in enumerate(values)]


@family(
    *("addcdiv", "addcdiv_", "addcmul", "addcmul_", "clamp", "clamp_", "clamp_max", "clamp_max_", "clamp_min"),
    *("clamp_min_", "clip", "clip_", "copy_", "isclose", "where", "_standard_gamma_grad", "float_power", "ldexp"),
    *("complex", "polar"),
)
def broadcasting(call: Any, overload: Overload) -> Any:
    """The operator on aligned values."""
    parameters = overload.parameters
    name = call.__name__
    if name == "where" and len(parameters) == 1:
        return dynamic
    typed = [i for i, p in enumerate(parameters) if p.type == "Tensor" and p.name not in _TYPELESS]
    if name in _CASTING:
        typed = []

    def broadcast(call: Any, level: int, size: int, mask: int, *values: Any) -> Any:
        return call(*aligned(mask, *promoted(mask, typed, values)))

    return broadcast


def promoted(mask: int, typed: list[int], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Casts for samples without dimensions, which weigh less in promotion than their values would."""
    tensors = [i for i in typed if isinstance(values[i], Tensor)]
    if len({values[i].dtype for i in tensors}) < 2:
        return values
    own: tuple[list[Any], list[Any]] = ([], [])
    for i in tensors:
        own[dims_of(values, mask, i) > 0].append(values[i].dtype)
    if not own[0] or not own[1]:
        return values
    single, whole = [reduce(rushlight.promote_types, types) for types in own]
    wanted = rushlight.result_type(rushlight.empty((0,), dtype=whole), rushlight.empty((), dtype=single))
    return tuple([v.to(wanted) if i in tensors else v for i, v in enumerate(values)])


@rule("fill", "fill_")
def fill(call: Any, level: int, size: int, mask: int, value: Tensor, number: Any) -> Any:
    """A number, or a tensor of one for each sample."""
    if not mask & 2:
        return call(value, number)
    if number.dim() != 1:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {number.dim() - 1} dimensions."
        )
    target = value if mask & 1 else value.expand(size, *value.shape)
    number = padded(number, target.dim() - 1)
    if call.__name__ == "fill_":
        return target.copy_(number)
    return number.to(target.dtype).expand_as(target).clone()


@rule("masked_fill", "masked_fill_")
def masked_fill(call: Any, level: int, size: int, mask: int, value: Tensor, where: Tensor, new: Any) -> Any:
    """A number, or one for each sample."""
    if not isinstance(new, Tensor) or not mask & 4:
        return call(*aligned(mask, value, where), new)
    if new.dim() != 1:
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{new.dim() - 1} dimension(s)."
        )
    value, where, new = aligned(mask, value, where, new.to(value.dtype))
    result = rushlight.where(where, new, value)
    return value.copy_(result) if call.__name__[-1] == "_" else result


@rule("polygamma")
def polygamma(call: Any, level: int, size: int, mask: int, n: int, value: Tensor) -> Any:
    """The order comes first."""
    return call(n, value)


@rule("cross", "linalg_cross")
def cross(call: Any, level: int, size: int, mask: int, value: Tensor, other: Tensor, dim: int | None) -> Any:
    """Without a dimension, the first of three elements that a sample has."""
    value, other = rushlight.broadcast_tensors(*aligned(mask, value, other))
    if dim is None:
        if 3 not in value.shape[1:]:
            raise RuntimeError("no dimension of size 3 in input")
        return rushlight.linalg.cross(value, other, dim=1 + value.shape[1:].index(3))
    return rushlight.linalg.cross(value, other, dim=behind(dim, value.dim() - 1))


@rule("prelu")
def prelu(call: Any, level: int, size: int, mask: int, value: Tensor, weight: Tensor) -> Any:
    """The weight belongs to the second dimension of a sample."""
    count = value.dim() - (mask & 1)
    own = weight.dim() - (mask >> 1 & 1)
    if own and not count:
        weight = weight.squeeze(-1)
    elif own and count > 1:
        lead = weight.shape[:-1] if mask & 2 else ()
        weight = weight.view(*lead, weight.shape[-1], *(1,) * (count - 2))
    value, weight = aligned(mask, value, weight)
    return rushlight.where(value > 0, value, value * weight)


@rule("lerp")
def lerp(call: Any, level: int, size: int, mask: int, *values: Any) -> Any:
    """The operator on aligned values."""
    return call(*aligned(mask, *values))
