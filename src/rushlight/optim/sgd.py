"""Stochastic gradient descent."""

from collections.abc import Sequence
from typing import Any, ClassVar

from rushlight import Tensor
from rushlight._C import _optim

from ._rule import Options, State, UpdateRule, add_scaled, check_implementation, check_not_negative, check_rate
from .optimizer import ParamsT

__all__ = ["SGD"]


class SGD(UpdateRule):
    r"""Stochastic gradient descent, with momentum :math:`\mu`, dampening :math:`\tau` and weight decay :math:`\lambda`.

    .. math::
        g' = g + \lambda p, \qquad
        b \leftarrow \mu b + (1 - \tau) g', \qquad
        p \leftarrow p - \gamma\, b

    The first step sets :math:`b` to :math:`g'`. With ``nesterov`` the parameter moves along :math:`g' + \mu b`.
    ``maximize`` ascends. ``foreach`` and ``fused`` choose an implementation in PyTorch; here they all name one native
    pass. With ``differentiable`` the step itself is recorded and has gradients.

    Sutskever et al., "On the importance of initialization and momentum in deep learning" (2013), whose rate is inside
    of the buffer; here, as in PyTorch, it is outside.
    """

    _added_options: ClassVar[Options] = {
        "nesterov": False,
        "maximize": False,
        "foreach": None,
        "differentiable": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        check_not_negative(weight_decay, "Invalid weight_decay value: {}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_implementation(foreach, fused, differentiable)

    def _new_state(self, p: Tensor, group: Options) -> State:
        return {"momentum_buffer": None} if group["momentum"] != 0 else {}

    def _native(self, params: Sequence[Tensor], group: Options) -> Sequence[Tensor] | None:
        return _optim.sgd(
            params,
            self.state,
            group["lr"],
            group["momentum"],
            group["dampening"],
            group["weight_decay"],
            group["nesterov"],
            group["maximize"],
        )

    def _rule(self, p: Tensor, g: Tensor, state: State, options: Options) -> tuple[Tensor, dict[str, Tensor]]:
        momentum, changes = options["momentum"], {}
        if options["weight_decay"] != 0:
            g = add_scaled(g, p, options["weight_decay"])
        if momentum != 0:
            buffer: Any = state.get("momentum_buffer")
            buffer = g.clone() if buffer is None else add_scaled(buffer * momentum, g, 1 - options["dampening"])
            changes["momentum_buffer"] = buffer
            g = add_scaled(g, buffer, momentum) if options["nesterov"] else buffer
        return add_scaled(p, g, -options["lr"]), changes
