"""Operators of this package that are written in Python over arrays, and what follows from their one derivative."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

import numpy as np

import rushlight
from rushlight import _C, Tensor
from rushlight.autograd.function import Function

__all__ = ["Operation", "Samples", "every_sample", "numbers", "reading", "scalar_type", "tensor"]

F = TypeVar("F", bound=Callable[..., Any])


class Operation(Function):
    """A Function of which ``forward``, on NumPy's arrays, and ``backward``, in tensor operations, are all there is.

    Forward mode transposes ``backward`` (src/core/autograd/tangent.h), so that derivatives of every order and in every
    mode follow from it. ``backward`` may ask ``ctx.needs_input_grad``, but must not compute without recording, and look at
    the numbers of its cotangents only to refuse them.

    Under vmap a batch becomes one more leading dimension, where ``core_dims`` says how many dimensions at the end
    of each argument are one item's (0 for what is no tensor); items of all tensors are batched alike. Where it is
    None, the Function is applied sample by sample.
    """

    _node_suffix: ClassVar[str] = "Backward0"
    _transposes_backward: ClassVar[bool] = True
    core_dims: ClassVar[tuple[int, ...] | None] = None


_SCALAR_TYPES = {
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "float32": "Float",
    "float64": "Double",
    "complex32": "ComplexHalf",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}


def scalar_type(dtype: Any) -> str:
    """The other name of a type, which PyTorch's messages have."""
    name = str(dtype).removeprefix("torch.")
    return _SCALAR_TYPES.get(name) or name.capitalize()


def numbers(a: Tensor) -> Any:
    """The tensor's numbers as an array for reading."""
    return a.detach().numpy()


def tensor(a: Any) -> Tensor:
    """A tensor of an array's numbers."""
    return rushlight.from_numpy(np.ascontiguousarray(a)).reshape(np.shape(a))


def every_sample(a: Tensor) -> Tensor:
    """The numbers of all samples, where vmap gave the tensor: for what is to be decided for all of them at once."""
    value: Tensor = _C._unbatch(a)[0]
    return value


class Samples(NamedTuple):
    """The arguments of a call for many samples: those named in ``batched`` have all samples along the first dimension."""

    size: int
    batched: frozenset[str]
    arguments: dict[str, Any]

    def full(self, name: str) -> Any:
        """A tensor with all samples, be it the same for all; None for what is no tensor."""
        value = self.arguments[name]
        if not isinstance(value, Tensor):
            return None
        return value if name in self.batched else value.expand(self.size, *value.shape)


def reading(*names: str, rule: Callable[[Samples], Any] | None = None) -> Callable[[F], F]:
    """Let a function read the numbers of these of its arguments.

    Where vmap batched one, ``rule`` gives the results for all samples, along the first dimension of each, or
    NotImplemented; without a rule the function runs sample by sample.
    """

    def decorate(function: F) -> F:
        parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
        values = function.__defaults__ or ()  # type: ignore[attr-defined]
        defaults = dict(zip(parameters[len(parameters) - len(values) :], values, strict=True))
        defaults.update(function.__kwdefaults__ or {})  # type: ignore[attr-defined]

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            given = {**dict(zip(parameters, args, strict=False)), **kwargs}
            if not _C._highest_level([t for n in names if isinstance(t := given.get(n), Tensor)]):
                return function(*args, **kwargs)
            result = NotImplemented if rule is None else _by_rule(rule, {**defaults, **given})
            return _by_sample(wrapped, names, given) if result is NotImplemented else result

        return cast("F", wrapped)

    return decorate


def _by_rule(rule: Callable[[Samples], Any], given: dict[str, Any]) -> Any:
    """The rule applied to the samples of all levels in one batch."""
    from .._vmap.levels import levels_of
    from ..utils import _pytree as pytree

    batched = {n: a for n, a in given.items() if isinstance(a, Tensor) and _C._highest_level(a)}
    levels, sizes = levels_of(batched.values())
    values = {n: _C._unbatch(_C._spread(a, levels, sizes))[0].flatten(0, len(levels) - 1) for n, a in batched.items()}
    result = rule(Samples(math.prod(sizes), frozenset(batched), {**given, **values}))
    if result is NotImplemented:
        return result
    return pytree.tree_map(lambda t: _C._rebatch(t.reshape(*sizes, *t.shape[1:]), levels), result)


def _by_sample(function: Callable[..., Any], names: tuple[str, ...], given: dict[str, Any]) -> Any:
    """The function applied to each sample of the newest level."""
    from .._vmap.table import looped
    from ..utils import _pytree as pytree

    level = _C._highest_level([t for n in names if isinstance(t := given.get(n), Tensor)])
    structure: Any = None

    def call(*sample: Any) -> list[Tensor]:
        nonlocal structure
        leaves, structure = pytree.tree_flatten(function(**dict(zip(given, sample, strict=True))))
        return leaves

    call.__name__ = function.__name__
    values = [_C._value_at(a, level) if isinstance(a, Tensor) else None for a in given.values()]
    mask = sum([1 << i for i, value in enumerate(values) if value is not None])
    size = next(value.shape[0] for value in values if value is not None)
    arguments = [a if value is None else value for a, value in zip(given.values(), values, strict=True)]
    results = looped(call, level, size, mask, *arguments)
    return pytree.tree_unflatten(_C._batch(results, level), structure)
