"""Operands in which an operator has no derivative, though it has one in others."""

from __future__ import annotations

from typing import Any, NoReturn

import rushlight
from rushlight import _C, Tensor
from rushlight.autograd.function import Function


class Underivable(Function):
    """The identity; whoever asks for its derivative is told whose is missing."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, name: str) -> Tensor:
        ctx.name_of_operand = name
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> NoReturn:
        raise NotImplementedError(f"the derivative for '{ctx.name_of_operand}' is not implemented.")

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> NoReturn:
        raise NotImplementedError(f"the derivative for '{ctx.name_of_operand}' is not implemented.")

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], x: Tensor, name: str) -> tuple[Tensor, int | None]:
        return underivable(x, name), in_dims[0]


def underivable(x: Any, name: str) -> Any:
    """``x``, such that whoever needs the derivative in it, in reverse or in forward mode, gets NotImplementedError."""
    if isinstance(x, Tensor) and ((x.requires_grad and rushlight.is_grad_enabled()) or _C._tangent_levels()):
        return Underivable.apply(x, name)
    return x
