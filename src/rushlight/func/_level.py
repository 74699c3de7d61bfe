"""One level of differentiation: inputs of its own on values, and what it gives back.

Inputs are aliases: only what the function does with its arguments counts, while the path to outer levels stays. Under
vmap they get every open level, so that their gradients are those of each sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import rushlight
from rushlight import _C, Tensor

from .._vmap.levels import open_levels
from ..autograd.forward_ad import make_dual, unpack_dual

__all__ = ["Inputs", "differentiating", "leaving"]


class differentiating:
    """A context inside of a transform; recording is on, whatever it was outside."""

    __slots__ = ("before",)

    def __enter__(self) -> bool:
        self.before = rushlight.is_grad_enabled()
        _C._enter_transform(False)
        if not self.before:
            _C._set_grad_enabled(True)
        return self.before

    def __exit__(self, *exc: object) -> None:
        _C._leave_transform(False)
        _C._set_grad_enabled(self.before)


class Inputs:
    """Tensors to differentiate by, as the function sees them and as the graph knows them."""

    __slots__ = ("levels", "numbers", "seen", "sizes", "values")

    def __init__(self, tensors: Iterable[Any]) -> None:
        self.levels = open_levels()
        self.numbers = tuple([level.number for level in self.levels])
        self.sizes = tuple([level.size for level in self.levels])
        values, seen = [], []
        for t in tensors:
            if not isinstance(t, Tensor):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(t)}")
            value = self.alias(t)
            values.append(value)
            seen.append(_C._rebatch(value, self.numbers) if self.levels else value)
        self.values: tuple[Tensor, ...] = tuple(values)
        self.seen: list[Tensor] = seen

    def finish(self) -> None:
        """Mark the leaves among the inputs: for the graphs of outer levels, they are constants from now on."""
        for value in self.values:
            if value.is_leaf:
                value.__dict__["_finished_input"] = True

    def spread(self, t: Tensor) -> Tensor:
        """The numbers of a tensor, with every open level."""
        if not self.levels:
            return t
        value: Tensor = _C._unbatch(_C._spread(t, self.numbers, self.sizes))[0]
        return value

    def alias(self, t: Tensor) -> Tensor:
        """The same numbers as an input of this level."""
        value = self.spread(t)
        if value.requires_grad:
            return value.view_as(value)
        alias: Tensor = value.view_as(value)
        return alias.requires_grad_()

    def wrap(self, value: Tensor) -> Tensor:
        """A result that has every level."""
        wrapped: Tensor = _C._rebatch(value, self.numbers)
        return wrapped if self.levels else value

    def pull(
        self, outputs: Sequence[Tensor], cotangents: Sequence[Tensor | None], keep: bool, create_graph: bool
    ) -> list[Tensor]:
        """Gradients of the inputs, zeros where there is no path."""
        pairs = [(o, v) for o, v in zip(outputs, cotangents, strict=True) if o.requires_grad]
        found: Any = (None,) * len(self.values)
        if pairs:
            roots, vectors = zip(*pairs, strict=True)
            found = _C._run_backward(roots, vectors, keep, create_graph, self.values, True, False)
        return [
            self.wrap(rushlight.zeros_like(value) if g is None else g)
            for g, value in zip(found, self.values, strict=True)
        ]


def bottom(t: Tensor) -> Tensor:
    """The tensor with the numbers."""
    value: Tensor = _C._unbatch(t)[0]
    return value


def leaving(t: Tensor, others: bool) -> Tensor:
    """A result that leaves its level, with its history if that reaches others than the level's own inputs."""
    return t if others or not t.requires_grad else without_history(t)


def without_history(t: Tensor) -> Tensor:
    """The tensor as a constant of reverse mode; of forward mode it is none: ``detach`` would drop its tangents."""
    plain: Tensor = t.detach()
    for level in range(_C._tangent_levels()):
        tangent = unpack_dual(t, level=level).tangent
        if tangent is not None:
            plain = make_dual(plain, without_history(tangent) if tangent.requires_grad else tangent, level=level)
    return plain
