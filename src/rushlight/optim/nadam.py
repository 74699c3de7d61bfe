"""NAdam: Adam with Nesterov momentum."""

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
    check_betas,
    check_not_negative,
    check_rate,
    scalar,
    zeros_like,
)
from .optimizer import ParamsT

__all__ = ["NAdam"]


class NAdam(UpdateRule):
    r"""Adam with Nesterov momentum, whose momentum grows from :math:`\beta_1 / 2` to :math:`\beta_1`.

    .. math::
        \mu_t = \beta_1 (1 - \tfrac12 0.96^{t\psi}), \qquad
        p \leftarrow p - \gamma \left( \frac{1 - \mu_t}{1 - \prod_{i \le t} \mu_i} \, g
            + \frac{\mu_{t+1}}{1 - \prod_{i \le t+1} \mu_i} \, m \right) \Big/
            \left( \sqrt{v / (1 - \beta_2^t)} + \epsilon \right)

    with :math:`m` and :math:`v` of :class:`Adam` and ``momentum_decay`` :math:`\psi`. The other options are Adam's.

    Dozat, "Incorporating Nesterov momentum into Adam" (2016).
    """

    _added_options: ClassVar[Options] = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check_not_negative(momentum_decay, "Invalid momentum_decay value: {}")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _restore(self, state: State) -> None:
        super()._restore(state)
        if "mu_product" in state and not isinstance(state["mu_product"], Tensor):
            state["mu_product"] = scalar(float(state["mu_product"]))

    def _new_state(self, p: Tensor, group: Options) -> State:
        return {
            "step": scalar(0.0),
            "mu_product": scalar(1.0),
            "exp_avg": zeros_like(p),
            "exp_avg_sq": zeros_like(p),
        }

    def _native(self, params: Sequence[Tensor], group: Options) -> Sequence[Tensor] | None:
        beta1, beta2 = group["betas"]
        return _optim.nadam(
            params,
            self.state,
            group["lr"],
            beta1,
            beta2,
            group["eps"],
            group["weight_decay"],
            group["decoupled_weight_decay"],
            group["maximize"],
            group["momentum_decay"],
        )

    def _rule(self, p: Tensor, g: Tensor, state: State, options: Options) -> tuple[Tensor, dict[str, Tensor]]:
        step, lr, weight_decay = state["step"].item(), options["lr"], options["weight_decay"]
        beta1, beta2 = options["betas"]
        if weight_decay != 0:
            if options["decoupled_weight_decay"]:
                p = p * (1 - lr * weight_decay)
            else:
                g = add_scaled(g, p, weight_decay)
        mu = momentum(step, beta1, options["momentum_decay"])
        mu_next = momentum(step + 1, beta1, options["momentum_decay"])
        mu_product = state["mu_product"] * mu
        product = mu_product.item()
        mean = rushlight.lerp(state["exp_avg"], g, 1 - beta1)
        square = add_product(state["exp_avg_sq"] * beta2, g, g, 1 - beta2)
        denominator = (square / (1 - beta2**step)).sqrt() + options["eps"]
        p = add_quotient(p, g, denominator, -lr * (1 - mu) / (1 - product))
        p = add_quotient(p, mean, denominator, -lr * mu_next / (1 - product * mu_next))
        return p, {"mu_product": mu_product, "exp_avg": mean, "exp_avg_sq": square}


def momentum(step: float, beta1: float, decay: float) -> float:
    """The momentum of one step: it begins near half of ``beta1`` and grows to it."""
    value: float = beta1 * (1 - 0.5 * 0.96 ** (step * decay))
    return value
