"""Adam, with bias correction, and its variant AMSGrad."""

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
    check_implementation,
    check_not_negative,
    check_rate,
    scalar,
    zeros_like,
)
from .optimizer import ParamsT

__all__ = ["Adam"]


class Adam(UpdateRule):
    r"""Adam: steps scaled by running means of the gradient and of its square.

    .. math::
        m \leftarrow \beta_1 m + (1 - \beta_1) g, \qquad
        v \leftarrow \beta_2 v + (1 - \beta_2) g^2, \qquad
        p \leftarrow p - \frac{\gamma}{1 - \beta_1^t} \, \frac{m}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}

    ``weight_decay`` :math:`\lambda` adds :math:`\lambda p` to the gradient, or with ``decoupled_weight_decay``
    multiplies the parameter by :math:`1 - \gamma\lambda` beforehand. ``amsgrad`` divides by the greatest :math:`v` so
    far. ``foreach``, ``fused`` and ``capturable`` choose an implementation in PyTorch; here they all name one native
    pass. With ``differentiable`` the step itself is recorded and has gradients.

    Kingma and Ba, "Adam: a method for stochastic optimization" (2015); Reddi et al., "On the convergence of Adam and
    beyond" (2018).
    """

    _added_options: ClassVar[Options] = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        check_rate(lr)
        check_not_negative(eps, "Invalid epsilon value: {}")
        check_betas(betas)
        check_not_negative(weight_decay, "Invalid weight_decay value: {}")
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_implementation(foreach, fused, differentiable)

    def _new_state(self, p: Tensor, group: Options) -> State:
        state = {"step": scalar(0.0), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(p)
        return state

    def _native(self, params: Sequence[Tensor], group: Options) -> Sequence[Tensor] | None:
        beta1, beta2 = group["betas"]
        return _optim.adam(
            params,
            self.state,
            group["lr"],
            beta1,
            beta2,
            group["eps"],
            group["weight_decay"],
            group["decoupled_weight_decay"],
            group["maximize"],
            group["amsgrad"],
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
        changes = {"exp_avg": mean, "exp_avg_sq": square}
        if options["amsgrad"]:
            square = changes["max_exp_avg_sq"] = rushlight.maximum(state["max_exp_avg_sq"], square)
        denominator = square.sqrt() / (1 - beta2**step) ** 0.5 + options["eps"]
        return add_quotient(p, mean, denominator, -lr / (1 - beta1**step)), changes
