"""Averages of a model's weights over training: stochastic weight averaging and exponential moving averages."""

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, Literal, TypeAlias

import rushlight
from rushlight import Tensor
from rushlight.nn import Module
from rushlight.nn.modules.batchnorm import _BatchNorm

from .lr_scheduler.scheduler import LRScheduler, Rate, per_group
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

TensorList: TypeAlias = tuple[Tensor, ...] | list[Tensor]
Average: TypeAlias = Callable[[Tensor, Tensor, Any], Tensor]
ListAverage: TypeAlias = Callable[[TensorList, TensorList, Any], None]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The function ``(average, current, count) -> decay * average + (1 - decay) * current``."""
    _check_decay(decay)

    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Average:
    """The function ``(average, current, count)`` that returns the mean of ``count + 1`` values."""

    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        result: Tensor = averaged_param + (current_param - averaged_param) / (num_averaged + 1)
        return result

    return swa_update


def _move_towards(averages: TensorList, currents: TensorList, weight: float) -> None:
    """Moves each average, in place, by ``weight`` of the way to its current value; integers round towards zero."""
    for average, current in zip(averages, currents, strict=True):
        if average.is_floating_point() or average.is_complex():
            average.lerp_(current, weight)
        else:
            average.copy_(average * (1 - weight) + current * weight)


def get_ema_multi_avg_fn(decay: float = 0.999) -> ListAverage:
    """The function ``(averages, currents, count)`` that updates a list of exponential moving averages in place."""
    _check_decay(decay)

    @rushlight.no_grad()
    def ema_update(ema_param_list: TensorList, current_param_list: TensorList, num_averaged: Any) -> None:
        _move_towards(ema_param_list, current_param_list, 1 - decay)

    return ema_update


def get_swa_multi_avg_fn() -> ListAverage:
    """The function ``(averages, currents, count)`` that updates a list of means of ``count`` values in place."""

    @rushlight.no_grad()
    def swa_update(averaged_param_list: TensorList, current_param_list: TensorList, num_averaged: Any) -> None:
        _move_towards(averaged_param_list, current_param_list, 1 / (float(num_averaged) + 1))

    return swa_update


class AveragedModel(Module):
    """A copy of ``model`` that holds averages of its parameters.

    ``update_parameters`` takes the present ones into the average: their plain mean by default, what
    ``avg_fn(average, current, count)`` returns for each, or what ``multi_avg_fn(averages, currents, count)`` makes of
    the lists in place. ``use_buffers`` averages the buffers too, which are copied otherwise.

    Raises:
        AssertionError: both functions are given.

    Izmailov et al., "Averaging weights leads to wider optima and better generalization" (2018).
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: ListAverage | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", rushlight.tensor(0, dtype=rushlight.long))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Takes the parameters of ``model`` into the averages; the first call copies them."""
        averages = [t.detach() for t in self._averaged(self.module)]
        currents = [t.detach() for t in self._averaged(model)]
        if self.n_averaged == 0:
            for average, current in zip(averages, currents, strict=True):
                average.copy_(current)
        elif self.avg_fn is not None:
            for average, current in zip(averages, currents, strict=True):
                average.copy_(self.avg_fn(average, current, self.n_averaged))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averages, currents, self.n_averaged)
        if not self.use_buffers:
            for average, current in zip(self.module.buffers(), model.buffers(), strict=True):
                average.detach().copy_(current.detach())
        self.n_averaged += 1

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        return chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()


@rushlight.no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of batch normalisation anew, as means over the batches of ``loader``.

    Of a batch that is a list or tuple the model is given the first entry. The model's mode and momenta are restored.
    """
    momenta = {module: module.momentum for module in model.modules() if isinstance(module, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    try:
        for module in momenta:
            module.reset_running_stats()
            module.momentum = None
        for batch in loader:
            if isinstance(batch, (list, tuple)):
                batch = batch[0]
            model(batch if device is None else batch.to(device))
    finally:
        for module, momentum in momenta.items():
            module.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the rates to ``swa_lr`` in ``anneal_epochs`` epochs, and keeps them there.

    ``swa_lr`` may be a list, one per group; ``anneal_strategy`` is ``"cos"`` or ``"linear"``.

    Raises:
        ValueError: the strategy is unknown, ``anneal_epochs`` no integer of at least 0, or the list has not one entry
            per group.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = per_group("swa_lr", optimizer, swa_lr)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = rate
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Computes the rates of the next step from those in force.

        Each is between the rate before annealing and ``swa_lr``; the former follows from the rate in force, so that
        other schedules may act as well.
        """
        rates, step = self._rates(), self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._progress(step - 1), self._progress(step)
        result = []
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            target = group["swa_lr"]
            start = target if before == 1 else (rate - before * target) / (1 - before)
            result.append(target * now + start * (1 - now))
        return result

    def _progress(self, step: int) -> float:
        """How much of the way to ``swa_lr`` is gone at ``step``."""
        part = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2
