"""RMSprop: gradients divided by their running root mean square."""

from collections.abc import Sequence
from typing import ClassVar

import rushlight
from rushlight import Tensor
from rushlight._C import _optim

from ._rule import (
    Options,
    State,
    UpdateRule,
    add_product,
    add_quotient,
    add_scaled,
    check_not_negative,
    check_rate,
    scalar,
    zeros_like,
)
from .optimizer import ParamsT

__all__ = ["RMSprop"]


class RMSprop(UpdateRule):
    r"""RMSprop: gradients divided by their running root mean square.

    .. math::
        v \leftarrow \alpha v + (1 - \alpha) g^2, \qquad
        p \leftarrow p - \gamma \, \frac{g}{\sqrt{v} + \epsilon}

    ``centered`` divides by the standard deviation instead, :math:`\sqrt{v - \bar g^2}` with a running mean
    :math:`\bar g` of the gradient. ``momentum`` :math:`\mu` makes the parameter follow
    :math:`b \leftarrow \mu b + g / (\sqrt{v} + \epsilon)`. The other options are those of :class:`Adam`.

    Tieleman and Hinton, lecture 6.5 of "Neural networks for machine learning" (2012); Graves, "Generating sequences
    with recurrent neural networks" (2013), for the centered form.
    """

    _added_options: ClassVar[Options] = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_not_negative(eps, "Invalid epsilon value: {}")
        check_not_negative(momentum, "Invalid momentum value: {}")
        check_not_negative(weight_decay, "Invalid weight_decay value: {}")
        check_not_negative(alpha, "Invalid alpha value: {}")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: Options) -> State:
        state = {"step": scalar(0.0), "square_avg": zeros_like(p)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(p)
        if group["centered"]:
            state["grad_avg"] = zeros_like(p)
        return state

    def _native(self, params: Sequence[Tensor], group: Options) -> Sequence[Tensor] | None:
        return _optim.rmsprop(
            params,
            self.state,
            group["lr"],
            group["alpha"],
            group["eps"],
            group["weight_decay"],
            group["momentum"],
            group["maximize"],
            group["centered"],
        )

    def _rule(self, p: Tensor, g: Tensor, state: State, options: Options) -> tuple[Tensor, dict[str, Tensor]]:
        alpha = options["alpha"]
        if options["weight_decay"] != 0:
            g = add_scaled(g, p, options["weight_decay"])
        square = add_product(state["square_avg"] * alpha, g, g, 1 - alpha)
        changes, variance = {"square_avg": square}, square
        if options["centered"]:
            mean = changes["grad_avg"] = rushlight.lerp(state["grad_avg"], g, 1 - alpha)
            variance = add_product(square, mean, mean, -1)
        denominator = variance.sqrt() + options["eps"]
        if options["momentum"] > 0:
            buffer = add_quotient(state["momentum_buffer"] * options["momentum"], g, denominator, 1)
            changes["momentum_buffer"] = buffer
            return add_scaled(p, buffer, -options["lr"]), changes
        return add_quotient(p, g, denominator, -options["lr"]), changes
