"""Random operations: what each vmap wants of them, from the innermost outwards.

``randomness="different"`` draws a batch, ``"same"`` one sample for all, ``"error"`` (the default) refuses.
"""

from __future__ import annotations

import math
from typing import Any

import rushlight
from rushlight import _C, Tensor

from ..operators.registry import Overload, Parameter, operators, overloads_of
from .levels import Level, open_levels, refused_draw
from .pointwise import aligned
from .table import _rules

__all__: list[str] = []


def make(call: Any, overload: Overload) -> Any:
    """The rule of a random operator's overload."""
    parameters = overload.parameters

    def drawn(call: Any, *arguments: Any) -> Any:
        if _certain(call.__name__, parameters, arguments):
            return _through(call, arguments)
        for p, value in zip(parameters, arguments, strict=True):
            if p.name == "out" and value is not None:
                raise RuntimeError(f"vmap: {call.__name__}(out=) is not possible; use {call.__name__}() without out=")
        return _draw(call, parameters, arguments, open_levels())

    return drawn


def _certain(name: str, parameters: tuple[Parameter, ...], arguments: tuple[Any, ...]) -> bool:
    """Does the call draw nothing (dropout in evaluation, or of nothing, or of everything)?"""
    given = {p.name: value for p, value in zip(parameters, arguments, strict=True)}
    return given.get("train", given.get("training")) is False or ("dropout" in name and given["p"] in (0, 1))


def _through(call: Any, arguments: tuple[Any, ...]) -> Any:
    """The operator on values: it is elementwise."""
    x = arguments[0]
    value, levels = _C._unbatch(x)
    result = call(value, *arguments[1:])
    if call.__name__[-1] == "_":
        return x
    if isinstance(result, Tensor):
        return _C._rebatch(result, levels)
    return tuple([_C._rebatch(part, levels) for part in result])


def _draw(call: Any, parameters: tuple[Parameter, ...], arguments: tuple[Any, ...], levels: tuple[Level, ...]) -> Any:
    if not levels:
        return call(*arguments)
    level, outer = levels[-1], levels[:-1]
    if level.randomness == "error":
        raise refused_draw(call.__name__, "error")
    values = [_C._value_at(a, level.number) if isinstance(a, Tensor) else None for a in arguments]
    batched = any(v is not None for v in values)
    if level.randomness == "same":
        if not batched:
            return _draw(call, parameters, arguments, outer)
        return _same(call, parameters, arguments, values, level, outer)
    changes = call.__name__[-1] == "_"
    given = [a if v is None else v for a, v in zip(arguments, values, strict=True)]
    mask = sum([1 << i for i, v in enumerate(values) if v is not None])
    if changes and values[0] is None:
        raise RuntimeError(
            f"vmap: {call.__name__} would write a different draw for each sample (randomness='different') into a tensor "
            "that is not batched. Make the tensor inside of the function from a batched one, as with zeros_like."
        )
    result = _draw_batch(call, parameters, given, mask, level, outer)
    return arguments[0] if changes else _C._batch(result, level.number)


def _draw_batch(
    call: Any, parameters: tuple[Parameter, ...], given: list[Any], mask: int, level: Level, outer: tuple[Level, ...]
) -> Any:
    """The value of a draw for each sample."""
    names = [p.name for p in parameters]
    name = call.__name__
    if "size" in names:
        at = names.index("size")
        given[at] = (level.size, *given[at])
        return _draw(call, parameters, tuple(given), outer)
    if name == "randperm":
        return rushlight.stack([_draw(call, parameters, tuple(given), outer) for _ in range(level.size)])
    if not mask:
        given[0] = given[0].expand(level.size, *given[0].shape)
        mask = 1
    if name == "multinomial":
        return _multinomial(call, parameters, given, level, outer)
    if name in ("feature_dropout", "feature_dropout_", "feature_alpha_dropout", "feature_alpha_dropout_"):
        given[0] = given[0].flatten(0, 1)  # a channel of each sample is a channel of its own
        shaped = _draw(call, parameters, tuple(given), outer)
        return shaped.unflatten(0, (level.size, shaped.shape[0] // level.size))
    if name == "_sample_dirichlet":
        return _draw(call, parameters, tuple(given), outer)
    tensors = [i for i, g in enumerate(given) if isinstance(g, Tensor)]
    if len(tensors) > 1:
        given = aligned(mask, *given)
        if name == "rrelu_with_noise":
            given[1] = given[1].expand_as(given[0]).clone()
    return _draw(call, parameters, tuple(given), outer)


def _multinomial(
    call: Any, parameters: tuple[Parameter, ...], given: list[Any], level: Level, outer: tuple[Level, ...]
) -> Any:
    weights = given[0]
    rows = weights.shape[1:-1]
    given[0] = weights.reshape(-1, weights.shape[-1])
    result = _draw(call, parameters, tuple(given), outer)
    return result.reshape(level.size, *rows, result.shape[-1])


def _same(
    call: Any,
    parameters: tuple[Parameter, ...],
    arguments: tuple[Any, ...],
    values: list[Any],
    level: Level,
    outer: tuple[Level, ...],
) -> Any:
    """One draw for all samples of a batched tensor, where it depends on the shape alone."""
    name, x = call.__name__, arguments[0]
    others = values[1:]
    if all(v is None for v in others):
        if name in ("rand_like", "randn_like", "randint_like"):
            return _draw(call, parameters, (values[0][0], *arguments[1:]), outer)
        if name[-1] == "_" and "dropout" not in name and name != "rrelu_":
            drawn = _draw(call, parameters, (rushlight.empty_like(values[0][0]), *arguments[1:]), outer)
            x.copy_(drawn)
            return x
        if name in ("dropout", "feature_dropout", "dropout_", "feature_dropout_"):
            kept = _draw(call, parameters, (rushlight.ones_like(values[0][0]), *arguments[1:]), outer)
            return x.mul_(kept) if name[-1] == "_" else x * kept
        if "alpha_dropout" in name:
            # of 0 it leaves the shift, which is negative for what is dropped (operators/dropout.cpp)
            shift = _draw(call, parameters, (rushlight.zeros_like(values[0][0]), *arguments[1:]), outer)
            p, floor = arguments[1], 1.7580993408473766
            factor = (shift > 0).to(shift.dtype) / math.sqrt((floor * floor * p + 1) * (1 - p))
            return x.mul_(factor).add_(shift) if name[-1] == "_" else x * factor + shift
        if name == "native_dropout":
            kept, bits = _draw(call, parameters, (rushlight.ones_like(values[0][0]), *arguments[1:]), outer)
            return x * kept, bits
    raise refused_draw(name, "same")


def _is_random(call: Any) -> bool:
    return "dropout" in call.__name__ or any(
        p.type == "torch.Generator" for o in overloads_of(call) for p in o.parameters
    )


for _operator in operators().values():
    for _callable in (_operator.callable, _operator.changing):
        if _callable is not None and not _callable.pointwise and _is_random(_callable):
            _rules[_callable.__name__] = make, True
