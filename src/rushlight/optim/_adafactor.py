"""Adafactor: Adam's second moment kept as one row and one column of each matrix."""

import math
from collections.abc import Sequence
from typing import ClassVar

import rushlight
from rushlight import Tensor
from rushlight._C import _optim

from ._rule import Options, State, UpdateRule, add_scaled, check_not_negative, check_rate, scalar
from .optimizer import ParamsT

__all__ = ["Adafactor"]


class Adafactor(UpdateRule):
    r"""Adafactor: the second moment of a matrix of gradients is kept as the means of its rows and columns.

    With :math:`w_t = t^{\tau}` (``beta2_decay`` :math:`\tau`), :math:`R` and :math:`C` move by :math:`w_t` towards the
    mean squares of the gradient's rows and columns, and

    .. math::
        U = g \Big/ \sqrt{\max(R C / \operatorname{mean}(R), \epsilon_1^2)}, \qquad
        p \leftarrow p - \alpha_t \frac{U}{\max(1, \operatorname{RMS}(U) / d)}, \qquad
        \alpha_t = \max(\epsilon_2, \operatorname{RMS}(p)) \min(\gamma, 1 / \sqrt{t})

    Parameters of fewer than two dimensions keep their mean squares whole. ``weight_decay`` :math:`\lambda` multiplies
    the parameter by :math:`1 - \gamma\lambda` beforehand. ``eps`` is :math:`(\epsilon_1, \epsilon_2)`; None for the
    former takes the machine epsilon of the parameter's dtype.

    Raises:
        RuntimeError: a parameter is complex.

    Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost" (2018).
    """

    _added_options: ClassVar[Options] = {"foreach": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_rate(lr, "Learning rate should be >= 0 but is: {}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None:
            check_not_negative(eps[0], "epsilon1 should be >= 0 but is: {}")
        check_not_negative(eps[1], "epsilon2 should be >= 0 but is: {}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        check_not_negative(weight_decay, "weight_decay should be >= 0 but is: {}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: Options) -> State:
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        if p.dim() < 2:
            return {"step": scalar(0.0), "variance": rushlight.zeros_like(p)}
        *batch, rows, columns = p.shape
        return {
            "step": scalar(0.0),
            "row_var": p.new_zeros((*batch, rows, 1)),
            "col_var": p.new_zeros((*batch, 1, columns)),
        }

    def _native(self, params: Sequence[Tensor], group: Options) -> Sequence[Tensor] | None:
        return _optim.adafactor(
            params,
            self.state,
            group["lr"],
            group["beta2_decay"],
            *group["eps"],
            group["d"],
            group["weight_decay"],
            group["maximize"],
        )

    def _rule(self, p: Tensor, g: Tensor, state: State, options: Options) -> tuple[Tensor, dict[str, Tensor]]:
        step, lr = state["step"].item(), options["lr"]
        eps1, eps2 = options["eps"]
        if eps1 is None:
            eps1 = rushlight.finfo(p.dtype).eps
        weight = step ** options["beta2_decay"]
        size = math.sqrt(p.numel())
        rate = max(eps2, p.norm(2).item() / size) * min(lr, 1 / math.sqrt(step))
        if options["weight_decay"] != 0:
            p = p * (1 - lr * options["weight_decay"])
        if g.dim() > 1:
            rows = rushlight.lerp(state["row_var"], g.norm(dim=-1, keepdim=True).square() / g.size(-1), weight)
            columns = rushlight.lerp(state["col_var"], g.norm(dim=-2, keepdim=True).square() / g.size(-2), weight)
            variance = rows @ columns / rows.mean(dim=-2, keepdim=True).clamp(min=eps1)
            changes = {"row_var": rows, "col_var": columns}
        else:
            variance = rushlight.lerp(state["variance"], g * g, weight)
            changes = {"variance": variance}
        update = variance.clamp(min=eps1 * eps1).rsqrt() * g
        clip = max(1.0, update.norm(2).item() / (size * options["d"]))
        return add_scaled(p, update, -rate / clip), changes
