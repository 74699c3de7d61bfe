"""Schedules along half a cosine, once or with restarts."""

import math

from ..optimizer import Optimizer
from .scheduler import LRScheduler, Rate

__all__ = ["CosineAnnealingLR", "CosineAnnealingWarmRestarts"]


class CosineAnnealingLR(LRScheduler):
    r"""Lowers the rates along half a cosine to ``eta_min`` in ``T_max`` epochs, and raises them again after that.

    .. math::
        \gamma_t = \gamma_{min} + \tfrac12 (\gamma_0 - \gamma_{min}) \left(1 + \cos \frac{t \pi}{T_{max}} \right)

    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts" (2017), without the restarts.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Computes the rates of step ``last_epoch`` from those in force."""
        rates, t, period, low = self._rates(), self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return rates
        if self._step_count == 1 and t > 0:
            return [low + (base - low) * (1 + math.cos(t * math.pi / period)) / 2 for base in self.base_lrs]
        if (t - 1 - period) % (2 * period) == 0:
            # The last rate was the lowest: the ratio below would divide by zero.
            return [
                rate + (base - low) * (1 - math.cos(math.pi / period)) / 2
                for base, rate in zip(self.base_lrs, rates, strict=True)
            ]
        ratio = (1 + math.cos(math.pi * t / period)) / (1 + math.cos(math.pi * (t - 1) / period))
        return [ratio * (rate - low) + low for rate in rates]

    def _get_closed_form_lr(self) -> list[Rate]:
        angle = math.pi * self.last_epoch / self.T_max
        return [self.eta_min + (base - self.eta_min) * (1 + math.cos(angle)) / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    r"""Lowers the rates along half a cosine to ``eta_min`` and begins again, first after ``T_0`` epochs.

    Each period is ``T_mult`` times as long as the one before. ``step`` takes fractions of epochs.

    Raises:
        ValueError: ``T_0`` is no positive integer, ``T_mult`` no integer of at least 1, or ``eta_min`` no number.

    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts" (2017).
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Computes the rates at epoch ``T_cur`` of the present period."""
        self._rates()
        angle = math.pi * self.T_cur / self.T_i
        return [self.eta_min + (base - self.eta_min) * (1 + math.cos(angle)) / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Sets the rates of the next epoch, or of ``epoch``, which may be fractional.

        Raises:
            ValueError: ``epoch`` is negative.
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        else:
            self._find_period(epoch)
        self._update_lr(math.floor(epoch))

    def _find_period(self, epoch: float) -> None:
        """Sets the length of the period that ``epoch`` is in, and how far it is into it."""
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_i, self.T_cur = self.T_0, epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_i = self.T_0 * self.T_mult**n
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
