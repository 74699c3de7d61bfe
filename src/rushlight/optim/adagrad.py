"""Adagrad: rates that fall with the sum of squared gradients."""

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
    check_implementation,
    check_not_negative,
    check_rate,
    scalar,
)
from .optimizer import ParamsT

__all__ = ["Adagrad"]


class Adagrad(UpdateRule):
    r"""Adagrad: each number's rate falls with the sum of its squared gradients.

    .. math::
        s \leftarrow s + g^2, \qquad
        p \leftarrow p - \frac{\gamma}{1 + (t - 1) \eta} \, \frac{g}{\sqrt{s} + \epsilon}

    with ``lr_decay`` :math:`\eta`; :math:`s` begins at ``initial_accumulator_value``. The other options are those of
    :class:`SGD`.

    Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic optimization" (2011).
    """

    _added_options: ClassVar[Options] = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        check_not_negative(lr_decay, "Invalid lr_decay value: {}")
        check_not_negative(weight_decay, "Invalid weight_decay value: {}")
        check_not_negative(initial_accumulator_value, "Invalid initial_accumulator_value value: {}")
        check_not_negative(eps, "Invalid epsilon value: {}")
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_implementation(foreach, fused, differentiable)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p] = self._new_state(p, group)

    def share_memory(self) -> None:
        """Moves the sums of squares into memory that other processes can share."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def _new_state(self, p: Tensor, group: Options) -> State:
        start = group["initial_accumulator_value"]
        fill = complex(start, start) if p.is_complex() else start
        return {
            "step": scalar(0.0),
            "sum": rushlight.full_like(p, fill, memory_format=rushlight.preserve_format),
        }

    def _native(self, params: Sequence[Tensor], group: Options) -> Sequence[Tensor] | None:
        return _optim.adagrad(
            params,
            self.state,
            group["lr"],
            group["lr_decay"],
            group["eps"],
            group["weight_decay"],
            group["maximize"],
        )

    def _rule(self, p: Tensor, g: Tensor, state: State, options: Options) -> tuple[Tensor, dict[str, Tensor]]:
        if options["weight_decay"] != 0:
            g = add_scaled(g, p, options["weight_decay"])
        rate = options["lr"] / (1 + (state["step"].item() - 1) * options["lr_decay"])
        total = add_product(state["sum"], g, g, 1)
        return add_quotient(p, g, total.sqrt() + options["eps"], -rate), {"sum": total}
