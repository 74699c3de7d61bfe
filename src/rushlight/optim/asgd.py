"""Averaged stochastic gradient descent."""

from collections.abc import Sequence
from typing import ClassVar

from rushlight import Tensor
from rushlight._C import _optim

from ._rule import (
    Number,
    Options,
    State,
    UpdateRule,
    add_scaled,
    check_not_negative,
    check_rate,
    scalar,
    zeros_like,
)
from .optimizer import ParamsT

__all__ = ["ASGD"]


class ASGD(UpdateRule):
    r"""Averaged stochastic gradient descent: plain steps of falling rate, and the mean ``ax`` of the parameter.

    .. math::
        p \leftarrow (1 - \lambda \eta_t) p - \eta_t g, \qquad
        a \leftarrow a + \mu_t (p - a), \qquad
        \eta_{t+1} = \frac{\gamma}{(1 + \lambda \gamma t)^\alpha}, \qquad
        \mu_{t+1} = \frac{1}{\max(1, t - t_0)}

    with ``lambd`` :math:`\lambda`; the averaging begins at step ``t0``. The other options are those of :class:`Adam`.

    Polyak and Juditsky, "Acceleration of stochastic approximation by averaging" (1992).
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
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_rate(lr)
        check_not_negative(weight_decay, "Invalid weight_decay value: {}")
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _restore(self, state: State) -> None:
        super()._restore(state)
        for key in ("eta", "mu"):
            if key in state and not isinstance(state[key], Tensor):
                state[key] = scalar(float(state[key]))

    def _new_state(self, p: Tensor, group: Options) -> State:
        lr = group["lr"]
        if isinstance(lr, Tensor) and group["differentiable"]:
            eta = lr.to(scalar(0.0).dtype).reshape(()).clone()
        else:
            eta = scalar(float(lr))
        return {"step": scalar(0.0), "eta": eta, "mu": scalar(1.0), "ax": zeros_like(p)}

    def _native(self, params: Sequence[Tensor], group: Options) -> Sequence[Tensor] | None:
        return _optim.asgd(
            params,
            self.state,
            group["lr"],
            group["lambd"],
            group["alpha"],
            group["t0"],
            group["weight_decay"],
            group["maximize"],
        )

    def _rule(self, p: Tensor, g: Tensor, state: State, options: Options) -> tuple[Tensor, dict[str, Tensor]]:
        step, lr, lambd = state["step"].item(), options["lr"], options["lambd"]
        eta: Number = state["eta"] if state["eta"].requires_grad else state["eta"].item()
        mu = state["mu"].item()
        if options["weight_decay"] != 0:
            g = add_scaled(g, p, options["weight_decay"])
        p = add_scaled(p * (1 - lambd * eta), g, -eta)
        mean = p.clone() if mu == 1 else add_scaled(state["ax"], p - state["ax"], mu)
        next_eta = lr / (1 + lambd * lr * step) ** options["alpha"]
        return p, {
            "ax": mean,
            "eta": next_eta.reshape(()) if isinstance(next_eta, Tensor) else scalar(next_eta),
            "mu": scalar(1 / max(1, step - options["t0"])),
        }
