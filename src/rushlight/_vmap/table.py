"""The table of batching rules, and the loop for operators that are not in it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import rushlight
from rushlight import _C, Tensor

from ..operators.registry import Overload, overloads_of

__all__ = ["BatchingError", "Maker", "choose", "family", "looped", "refused", "rule", "whole"]

Maker = Callable[[Any, Overload], Any]
T = TypeVar("T", bound=Callable[..., Any])

_rules: dict[str, tuple[Maker, bool]] = {}


class BatchingError(RuntimeError):
    """A function under vmap asked for what only a single sample has: a number, or a shape that depends on numbers."""


def family(*names: str) -> Callable[[T], T]:
    """Declare that the function below makes the rule of an overload of these operators: ``make(call, overload)``."""

    def declare(make: T) -> T:
        for name in names:
            if name in _rules:
                raise ValueError(f"{name} has a batching rule already")
            _rules[name] = make, False
        return make

    return declare


def rule(*names: str) -> Callable[[T], T]:
    """Declare that the function below is the rule of all overloads of these operators."""

    def declare(function: T) -> T:
        family(*names)(lambda call, overload: function)
        return function

    return declare


def whole(*names: str) -> Callable[[T], T]:
    """Declare a rule that takes the batched tensors themselves and gives the result as it is to be."""

    def declare(function: T) -> T:
        for name in names:
            if name in _rules:
                raise ValueError(f"{name} has a batching rule already")
            _rules[name] = (lambda call, overload: function), True
        return function

    return declare


def has_rule(name: str) -> bool:
    """Is the operator in the table?"""
    return name in _rules


def choose(call: Any) -> tuple[Any, bool]:
    """The rule of an overload, and whether it is one of the whole call. The core keeps it."""
    name = call.__name__
    found = _rules.get(name) or (_rules.get(name[:-1]) if name[-1] == "_" else None)
    if found is None:
        return looped, False
    make, is_whole = found
    made = make(call, overloads_of(call)[0])
    return (looped, False) if made is None else (made, is_whole)


def refused(name: str) -> BatchingError:
    """The error for a result whose shape depends on numbers."""
    return BatchingError(
        f"vmap: operators that can output dynamic shape are not supported, and {name} is one: the samples' results "
        "could differ in shape. Use an operation of fixed shape, as where() for masks, or loop over the samples."
    )


def looped(call: Any, level: int, size: int, mask: int, *values: Any) -> Any:
    """The operator applied sample by sample, and the results stacked."""
    name = call.__name__
    warnings.warn(
        f"There is a performance drop because there is no batching rule for {name}: vmap computes it sample by sample.",
        UserWarning,
        stacklevel=2,
    )
    if size == 0:
        raise RuntimeError(f"vmap: {call.__name__} has no batching rule, and a batch of size 0 cannot be looped over")
    changes = call.__name__[-1] == "_"
    results = []
    for i in range(size):
        arguments = [_sample(value, level, i) if mask >> k & 1 else value for k, value in enumerate(values)]
        results.append(call(*arguments))
    if changes:
        return values[0]
    first = results[0]
    if isinstance(first, Tensor):
        return _stacked(call, results)
    if isinstance(first, (tuple, list)):
        parts = [_stacked(call, part) for part in zip(*results, strict=True)]
        if hasattr(first, "n_fields"):
            return type(first)(parts)
        return type(first)(parts)
    raise BatchingError(
        f"vmap: {call.__name__} gives a Python value, which would differ between the samples: it cannot be batched. "
        "Compute with tensors instead, or loop over the samples."
    )


def _stacked(call: Any, results: Any) -> Any:
    shapes = {tuple(r.shape) for r in results}
    if len(shapes) > 1:
        raise refused(call.__name__)
    return rushlight.stack(list(results))


def _sample(value: Any, level: int, i: int) -> Any:
    if isinstance(value, (list, tuple)):
        return [_sample_of_part(part, level, i) for part in value]
    return value[i]


def _sample_of_part(part: Any, level: int, i: int) -> Any:
    value = _C._value_at(part, level) if isinstance(part, Tensor) else None
    return part if value is None else value[i]
