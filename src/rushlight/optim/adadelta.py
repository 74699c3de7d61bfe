"""Adadelta: steps in the units of the parameter, without a rate to choose."""

from collections.abc import Sequence
from typing import ClassVar

from rushlight import Tensor
from rushlight._C import _optim

from ._rule import (
    Options,
    State,
    UpdateRule,
    add_product,
    add_scaled,
    check_not_negative,
    check_rate,
    scalar,
    zeros_like,
)
from .optimizer import ParamsT

__all__ = ["Adadelta"]


class Adadelta(UpdateRule):
    r"""Adadelta: gradients scaled by the ratio of running root mean squares of steps and of gradients.

    .. math::
        v \leftarrow \rho v + (1 - \rho) g^2, \qquad
        \delta = \sqrt{\frac{u + \epsilon}{v + \epsilon}} \, g, \qquad
        u \leftarrow \rho u + (1 - \rho) \delta^2, \qquad
        p \leftarrow p - \gamma \delta

    The other options are those of :class:`Adam`.

    Zeiler, "ADADELTA: an adaptive learning rate method" (2012).
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
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_not_negative(eps, "Invalid epsilon value: {}")
        check_not_negative(weight_decay, "Invalid weight_decay value: {}")
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: Options) -> State:
        return {"step": scalar(0.0), "square_avg": zeros_like(p), "acc_delta": zeros_like(p)}

    def _native(self, params: Sequence[Tensor], group: Options) -> Sequence[Tensor] | None:
        return _optim.adadelta(
            params,
            self.state,
            group["lr"],
            group["rho"],
            group["eps"],
            group["weight_decay"],
            group["maximize"],
        )

    def _rule(self, p: Tensor, g: Tensor, state: State, options: Options) -> tuple[Tensor, dict[str, Tensor]]:
        rho, eps = options["rho"], options["eps"]
        if options["weight_decay"] != 0:
            g = add_scaled(g, p, options["weight_decay"])
        square = add_product(state["square_avg"] * rho, g, g, 1 - rho)
        delta = (state["acc_delta"] + eps).sqrt() / (square + eps).sqrt() * g
        steps = add_product(state["acc_delta"] * rho, delta, delta, 1 - rho)
        return add_scaled(p, delta, -options["lr"]), {"square_avg": square, "acc_delta": steps}
