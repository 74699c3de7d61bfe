"""Rprop: steps from the signs of the gradients alone."""

from collections.abc import Sequence
from typing import ClassVar

import rushlight
from rushlight import Tensor
from rushlight._C import _optim

from ._rule import Options, State, UpdateRule, add_product, check_rate, plain_numbers, scalar, zeros_like
from .optimizer import ParamsT

__all__ = ["Rprop"]


class Rprop(UpdateRule):
    r"""Resilient propagation: each number's step grows while its gradient keeps the sign, and shrinks when it turns.

    The step size is multiplied by :math:`\eta^+` where :math:`g\,g_{prev} > 0`, by :math:`\eta^-` where it is negative,
    and kept within ``step_sizes``; then :math:`p \leftarrow p - \operatorname{sign}(g)\, s`. Where the sign turned, the
    gradient counts as zero in this step and as the previous one in the next. ``lr`` is the first step size; ``etas``
    are :math:`(\eta^-, \eta^+)`. The other options are those of :class:`Adam`.

    Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning: the RPROP algorithm" (1993).
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
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: Options) -> State:
        lr = plain_numbers(group)["lr"]
        return {
            "step": scalar(0.0),
            "prev": zeros_like(p),
            "step_size": rushlight.full_like(
                p, complex(lr, lr) if p.is_complex() else lr, memory_format=rushlight.preserve_format
            ),
        }

    def _native(self, params: Sequence[Tensor], group: Options) -> Sequence[Tensor] | None:
        return _optim.rprop(
            params,
            self.state,
            *group["etas"],
            *group["step_sizes"],
            group["maximize"],
        )

    def _rule(self, p: Tensor, g: Tensor, state: State, options: Options) -> tuple[Tensor, dict[str, Tensor]]:
        shrink, grow = options["etas"]
        agreement = g * state["prev"]
        turned = agreement < 0
        size = state["step_size"]
        size = rushlight.where(agreement > 0, size * grow, rushlight.where(turned, size * shrink, size))
        size = size.clamp(*options["step_sizes"])
        g = g.masked_fill(turned, 0)
        return add_product(p, g.sign(), size, -1), {"prev": g.clone(), "step_size": size}
