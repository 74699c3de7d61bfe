"""RAdam: Adam with rectified variance."""

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
    add_scaled,
    check_betas,
    check_not_negative,
    check_rate,
    scalar,
    zeros_like,
)
from .optimizer import ParamsT

__all__ = ["RAdam"]


class RAdam(UpdateRule):
    r"""Adam that rectifies the variance of its adaptive rate, and leaves it out while that variance is unbounded.

    .. math::
        \rho_\infty = \frac{2}{1 - \beta_2} - 1, \qquad
        \rho_t = \rho_\infty - \frac{2 t \beta_2^t}{1 - \beta_2^t}, \qquad
        r_t = \sqrt{\frac{(\rho_t - 4)(\rho_t - 2) \rho_\infty}{(\rho_\infty - 4)(\rho_\infty - 2) \rho_t}}

    With :math:`m` and :math:`v` of :class:`Adam`, the parameter moves by
    :math:`-\gamma \frac{m}{1 - \beta_1^t} r_t \frac{\sqrt{1 - \beta_2^t}}{\sqrt{v} + \epsilon}` where
    :math:`\rho_t > 5`, and by :math:`-\gamma \frac{m}{1 - \beta_1^t}` before. The options are Adam's.

    Liu et al., "On the variance of the adaptive learning rate and beyond" (2020).
    """

    _added_options: ClassVar[Options] = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
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
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: Options) -> State:
        return {"step": scalar(0.0), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    def _native(self, params: Sequence[Tensor], group: Options) -> Sequence[Tensor] | None:
        beta1, beta2 = group["betas"]
        return _optim.radam(
            params,
            self.state,
            group["lr"],
            beta1,
            beta2,
            group["eps"],
            group["weight_decay"],
            group["decoupled_weight_decay"],
            group["maximize"],
        )

    def _rule(self, p: Tensor, g: Tensor, state: State, options: Options) -> tuple[Tensor, dict[str, Tensor]]:
        step, lr, weight_decay = state["step"].item(), options["lr"], options["weight_decay"]
        beta1, beta2 = options["betas"]
        if weight_decay != 0:
            if options["decoupled_weight_decay"]:
                p = p * (1 - lr * weight_decay)
            else:
                g = add_scaled(g, p, weight_decay)
        mean = rushlight.lerp(state["exp_avg"], g, 1 - beta1)
        square = add_product(state["exp_avg_sq"] * beta2, g, g, 1 - beta2)
        update = mean / (1 - beta1**step) * lr
        rate = rectified_rate(step, beta2)
        if rate is not None:
            update = update * (rate / (square.sqrt() + options["eps"]))
        return p - update, {"exp_avg": mean, "exp_avg_sq": square}


def rectified_rate(step: float, beta2: float) -> float | None:
    """The factor of the adaptive rate, ``r_t * sqrt(1 - beta2 ** t)``; None while the variance is unbounded."""
    correction = 1 - beta2**step
    limit = 2 / (1 - beta2) - 1
    length = limit - 2 * step * beta2**step / correction
    if length <= 5:
        return None
    ratio = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
    return float(ratio**0.5 * correction**0.5)
