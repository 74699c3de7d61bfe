"""Reductions over dimensions, or over whole samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight
from rushlight import Tensor

from ..operators.registry import Overload
from .dims import _without_last, behind, shifting
from .pointwise import broadcasting
from .shape import padded
from .table import family, looped, rule

__all__: list[str] = []

family("max", "min")(lambda call, overload: extremum(call, overload))


@family(
    *("all", "amax", "amin", "any", "count_nonzero", "mean", "nanmean", "nansum", "std", "std_mean", "sum", "var"),
    *("var_mean", "linalg_vector_norm", "logsumexp"),
)
def over_dims(call: Any, overload: Overload) -> Callable[..., Any]:
    """Dimensions that are not given are all those of a sample."""
    names = [p.name for p in overload.parameters]
    name = call.__name__
    if "dim" in names:
        at = names.index("dim")
        keepdim = names.index("keepdim") if "keepdim" in names else None

        def reduced(call: Any, level: int, size: int, mask: int, value: Tensor, *rest: Any) -> Any:
            arguments = [value, *rest]
            count = value.dim() - 1
            dims = arguments[at]
            if dims == () and name in ("all", "any"):  # which then reduce nothing
                return call(*arguments)
            if count == 0:
                if dims:
                    behind(dims, 0)
                arguments[0], arguments[at] = value.unsqueeze(-1), (1,)
                result = call(*arguments)
                return _without_last(result) if keepdim is not None and arguments[keepdim] else result
            arguments[at] = behind(dims, count) if dims else tuple(range(1, count + 1))
            return call(*arguments)

        return reduced

    def total(call: Any, level: int, size: int, mask: int, value: Tensor, *rest: Any) -> Any:
        keywords = dict(zip(names[1:], rest, strict=True))
        value = value if value.dim() > 1 else value.unsqueeze(-1)
        return getattr(rushlight, name)(value, dim=tuple(range(1, value.dim())), **keywords)

    return total


def extremum(call: Any, overload: Overload) -> Callable[..., Any]:
    """max and min: of whole samples, along a dimension, or of two tensors."""
    second = overload.parameters[1:2]
    if not second:
        whole = rushlight.amax if call.__name__ == "max" else rushlight.amin
        return lambda call, level, size, mask, value: (
            whole(value, tuple(range(1, value.dim()))) if value.dim() > 1 else value.clone()
        )
    made: Callable[..., Any] = (shifting if second[0].name == "dim" else broadcasting)(call, overload)
    return made


@family("argmax", "argmin", "aminmax", "median", "nanmedian", "prod")
def one_dim(call: Any, overload: Overload) -> Callable[..., Any]:
    """Along one dimension, or over flattened samples."""
    names = [p.name for p in overload.parameters]
    name = call.__name__
    if "dim" not in names:

        def flattened(call: Any, level: int, size: int, mask: int, value: Tensor, *rest: Any) -> Any:
            keywords = dict(zip(names[1:], rest, strict=True))
            result = getattr(rushlight, name)(value.reshape(size, -1), 1, **keywords)
            return result if isinstance(result, Tensor) else result[0]

        return flattened
    at, keepdim = names.index("dim"), names.index("keepdim")
    along = shifting(call, overload)

    def reduced(call: Any, level: int, size: int, mask: int, value: Tensor, *rest: Any) -> Any:
        arguments = [value, *rest]
        if arguments[at] is not None:
            return along(call, level, size, mask, *arguments)
        count = value.dim() - 1
        keep = arguments[keepdim]
        arguments[0], arguments[at], arguments[keepdim] = value.reshape(size, -1), 1, False
        result = call(*arguments)
        if not keep:
            return result
        if isinstance(result, Tensor):
            return padded(result, count)
        return type(result)([padded(part, count) for part in result])

    return reduced


@rule("dist")
def dist(call: Any, level: int, size: int, mask: int, value: Tensor, other: Tensor, p: Any) -> Any:
    """The norm of the difference of samples."""
    from .pointwise import aligned

    value, other = aligned(mask, value, other)
    return rushlight.linalg_vector_norm((value - other).reshape(size, -1), p, (1,))


@rule("cov")
def cov(
    call: Any, level: int, size: int, mask: int, x: Tensor, correction: int, fweights: Any, aweights: Any
) -> Tensor:
    """Products of centred rows; with weights, and where something is refused or warned of, sample by sample."""
    count, free = x.dim() - 1, x.shape[-1] - correction
    if fweights is not None or aweights is not None or not 1 <= count <= 2 or free <= 0 or x.dtype == rushlight.bool:
        found: Tensor = looped(call, level, size, mask, x, correction, fweights, aweights)
        return found
    x = x.unsqueeze(1) if count == 1 else x
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(rushlight.get_default_dtype())
    centred = x - x.mean(2, True)
    product = centred @ centred.mH / free
    return product.reshape(size) if x.shape[1] == 1 else product


@rule("corrcoef")
def corrcoef(call: Any, level: int, size: int, mask: int, x: Tensor) -> Tensor:
    """Covariances over deviations."""
    if x.is_complex() or not 2 <= x.dim() <= 3 or x.shape[-1] < 2 or x.dtype == rushlight.bool:
        found: Tensor = looped(call, level, size, mask, x)
        return found
    c = cov(call, level, size, mask, x, 1, None, None)
    if c.dim() == 1:
        return c / c
    deviation = c.diagonal(0, 1, 2).sqrt()
    return (c / deviation.unsqueeze(2) / deviation.unsqueeze(1)).clamp(-1, 1)
