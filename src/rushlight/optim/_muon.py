"""Muon: momentum whose matrices are made nearly orthogonal."""

import math
from typing import Any

import rushlight
from rushlight import Tensor

from ._rule import Options, State, UpdateRule, add_scaled, check_not_negative, check_rate, zeros_like
from .optimizer import ParamsT

__all__ = ["Muon"]


class Muon(UpdateRule):
    r"""Muon, for the matrices of hidden layers: the momentum's singular values are all brought near 1.

    .. math::
        b \leftarrow \mu b + (1 - \mu) g, \qquad
        p \leftarrow (1 - \gamma\lambda) p - \gamma r\, \operatorname{orthogonal}(b)

    With ``nesterov`` the matrix made orthogonal is :math:`\mu b + (1 - \mu) g`. The orthogonal factor comes from
    ``ns_steps`` steps of a Newton-Schulz iteration with ``ns_coefficients``, in bfloat16. The ratio :math:`r` for a
    matrix of shape (A, B) is :math:`\sqrt{\max(1, A/B)}`, or with ``adjust_lr_fn="match_rms_adamw"``
    :math:`0.2 \sqrt{\max(A, B)}`.

    Raises:
        ValueError: a parameter has not two dimensions.
        RuntimeError: a parameter is complex.

    Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024); Liu et al., "Muon is scalable for
    LLM training" (2025), for the second ratio.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_rate(lr, "Learning rate should be >= 0 but is: {}")
        check_not_negative(momentum, "momentum should be >= 0 but is: {}")
        check_not_negative(weight_decay, "weight decay should be >= 0 but is: {}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of matrices; see :meth:`Optimizer.add_param_group`."""
        super().add_param_group(param_group)
        for p in self.param_groups[-1]["params"]:
            if p.dim() != 2:
                self.param_groups.pop()
                raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}")

    def _new_state(self, p: Tensor, group: Options) -> State:
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        return {"momentum_buffer": zeros_like(p)}

    def _options(self, group: Options) -> Options:
        return group  # the decay is computed in the dtype of a tensor rate

    def _rule(self, p: Tensor, g: Tensor, state: State, options: Options) -> tuple[Tensor, dict[str, Tensor]]:
        lr, momentum = options["lr"], options["momentum"]
        buffer = rushlight.lerp(state["momentum_buffer"], g, 1 - momentum)
        update = rushlight.lerp(g, buffer, momentum) if options["nesterov"] else buffer
        update = nearly_orthogonal(update, options["ns_coefficients"], options["ns_steps"], options["eps"])
        rows, columns = p.shape
        if options["adjust_lr_fn"] == "match_rms_adamw":
            ratio = 0.2 * math.sqrt(max(rows, columns))
        else:
            ratio = math.sqrt(max(1, rows / columns))
        p = p * (1 - lr * options["weight_decay"])
        return add_scaled(p, update, -float(lr) * ratio), {"momentum_buffer": buffer}


def nearly_orthogonal(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """The orthogonal polar factor of ``matrix``, to the accuracy that training needs, in bfloat16.

    Each step applies the odd polynomial ``a x + b x^3 + c x^5`` to the singular values, which drives them towards 1.
    Products are computed in float32 and rounded to bfloat16, as PyTorch's of that dtype are.
    """
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = matrix.size(0) > matrix.size(1)
    x = _rounded(matrix.T if tall else matrix)
    x = _rounded(x / _rounded(x.norm()).clamp(min=eps))
    for _ in range(steps):
        gram = _rounded(x @ x.T)
        polynomial = _rounded(rushlight.addmm(gram, gram, gram, beta=b, alpha=c))
        x = _rounded(rushlight.addmm(x, polynomial, x, beta=a))
    x = x.bfloat16()
    return x.T if tall else x


def _rounded(x: Tensor) -> Tensor:
    return x.bfloat16().float()
