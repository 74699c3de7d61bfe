"""Adamax: Adam with the infinity norm."""

from collections.abc import Sequence
from typing import ClassVar

import rushlight
from rushlight import Tensor
from rushlight._C import _optim

from ._rule import (
    Options,
    State,
    UpdateRule,
    add_quotient,
    add_scaled,
    check_betas,
    check_not_negative,
    check_rate,
    scalar,
    zeros_like,
)
from .optimizer import ParamsT

__all__ = ["Adamax"]


class Adamax(UpdateRule):
    r"""Adam with the infinity norm in the place of the mean square.

    .. math::
        m \leftarrow \beta_1 m + (1 - \beta_1) g, \qquad
        u \leftarrow \max(\beta_2 u, |g| + \epsilon), \qquad
        p \leftarrow p - \frac{\gamma}{1 - \beta_1^t} \, \frac{m}{u}

    The options are those of :class:`Adam`.

    Kingma and Ba, "Adam: a method for stochastic optimization" (2015), section 7.1.
    """

    _added_options: ClassVar[Options] = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate(lr)
        check_not_negative(eps, "Invalid epsilon value: {}")
        check_betas(betas)
        check_not_negative(weight_decay, "Invalid weight_decay value: {}")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: Options) -> State:
        return {"step": scalar(0.0), "exp_avg": zeros_like(p), "exp_inf": zeros_like(p)}

    def _native(self, params: Sequence[Tensor], group: Options) -> Sequence[Tensor] | None:
        beta1, beta2 = group["betas"]
        return _optim.adamax(
            params,
            self.state,
            group["lr"],
            beta1,
            beta2,
            group["eps"],
            group["weight_decay"],
            False,
            group["maximize"],
        )

    def _rule(self, p: Tensor, g: Tensor, state: State, options: Options) -> tuple[Tensor, dict[str, Tensor]]:
        beta1, beta2 = options["betas"]
        if options["weight_decay"] != 0:
            g = add_scaled(g, p, options["weight_decay"])
        mean = rushlight.lerp(state["exp_avg"], g, 1 - beta1)
        largest = rushlight.maximum(state["exp_inf"] * beta2, g.abs() + options["eps"])
        rate = options["lr"] / (1 - beta1 ** state["step"].item())
        return add_quotient(p, mean, largest, -rate), {"exp_avg": mean, "exp_inf": largest}
