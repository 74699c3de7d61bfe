"""The base of every schedule of learning rates."""

import functools
import types
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from rushlight import Tensor

from ..optimizer import Optimizer

__all__ = ["EPOCH_DEPRECATION_WARNING", "LRScheduler"]

Rate: TypeAlias = float | Tensor

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available."
)


class LRScheduler:
    """Base class of schedules, which change the learning rates of an optimizer's groups from step to step.

    A subclass defines ``get_lr``, which computes the rates of step ``last_epoch`` from those that the groups have: the
    chainable form, in which several schedules act on one optimizer. It may define ``_get_closed_form_lr``, which
    computes them from the initial rates.

    The constructor performs the first step. ``last_epoch=-1`` begins anew; any other number resumes after that epoch,
    and needs ``"initial_lr"`` in each group of the optimizer.

    Raises:
        TypeError: ``optimizer`` is no optimizer.
        KeyError: a resumed schedule finds a group without ``"initial_lr"``.
    """

    # True only while step calls get_lr: calls from outside get a warning.
    _get_lr_called_within_step: bool = False
    # True only during the step that the constructor makes.
    _is_initial: bool = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    "last_epoch >= 0: load the optimizer's state first, or begin with last_epoch=-1"
                )
        self.base_lrs: list[Rate] = group_values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _count_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Returns every attribute but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what ``state_dict`` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Rate]:
        """Returns the rates that the last step set, one per group."""
        return self._last_lr

    def get_lr(self) -> list[Rate]:
        """Computes the rates of step ``last_epoch``; for subclasses. See ``get_last_lr`` for the rates in force."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_lr")

    def step(self, epoch: int | None = None) -> None:
        """Sets the rates of the next step; ``epoch``, which is deprecated, sets those of that step."""
        # The constructor makes the first step, before any of the optimizer's.
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _check_order(self) -> None:
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`.",
                UserWarning,
                stacklevel=3,
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in the "
                "opposite order: `optimizer.step()` before `lr_scheduler.step()`. Failure to do this will result in "
                "skipping the first value of the learning rate schedule.",
                UserWarning,
                stacklevel=3,
            )

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._within_step():
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                rates = getattr(self, "_get_closed_form_lr", self.get_lr)()
        for group, rate in zip(self.optimizer.param_groups, rates, strict=False):
            set_value(group, "lr", rate)
        self._last_lr: list[Rate] = group_values(self.optimizer, "lr")

    @contextmanager
    def _within_step(self) -> Iterator[None]:
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _rates(self) -> list[Rate]:
        """The rates in force, for ``get_lr`` to compute the next ones from."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )
        return group_values(self.optimizer, "lr")


class _LRScheduler(LRScheduler):
    """The former name of :class:`LRScheduler`."""


def _count_steps(optimizer: Optimizer) -> None:
    """Lets ``optimizer`` remember that its step was called, for the warning about the order of the two steps."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    # Neither a cycle, which would keep the optimizer alive, nor a bound method, which would survive copying.
    owner = weakref.ref(optimizer)
    step = optimizer.step.__func__  # type: ignore[attr-defined]

    @functools.wraps(step)
    def counted_step(*args: Any, **kwargs: Any) -> Any:
        self = owner()
        self._opt_called = True  # type: ignore[union-attr]
        return step(self, *args, **kwargs)

    counted_step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = counted_step  # type: ignore[method-assign]


def check_optimizer(optimizer: Any) -> None:
    """Refuses what is no optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def copied(value: Any) -> Any:
    """A tensor's copy; other values as they are."""
    return value.clone() if isinstance(value, Tensor) else value


def group_values(optimizer: Optimizer, key: str) -> list[Any]:
    """The option ``key`` of every group, tensors copied."""
    return [copied(group[key]) for group in optimizer.param_groups]


def set_value(group: dict[str, Any], key: str, value: Any) -> None:
    """Sets an option of a group; a tensor keeps its identity, since others may hold it."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[key] = value


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A list of ``value`` for every group, or ``value`` itself if it is a list of that length."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in range(count)]
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
            f"param_groups has {count}."
        )
    return list(value)


# Functions in state dicts: a function itself cannot be loaded, the attributes of a callable object can.


def saved_callables(functions: Sequence[Any]) -> list[dict[str, Any] | None]:
    """The attributes of each callable object, None for each function."""
    return [None if isinstance(f, types.FunctionType) else f.__dict__.copy() for f in functions]


def load_callables(functions: Sequence[Callable[..., Any]], saved: Sequence[dict[str, Any] | None]) -> None:
    """Gives the callable objects the attributes that :func:`saved_callables` returned."""
    for function, attributes in zip(functions, saved, strict=False):
        if attributes is not None:
            function.__dict__.update(attributes)
