"""Running an optimizer's step on parameters and state given from outside."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight import Tensor

from .optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Lets ``optimizer`` work, within the context, on the parameters and the state given; its own come back after it.

    ``swapin_parameters`` are in the order of the optimizer's own; ``swapin_optim_state`` has the form of
    ``optimizer.state_dict()`` and gives the options of the groups as well. Its tensors are changed in place; every
    other change made within the context is dropped.

    Raises:
        RuntimeError: the optimizer has no state yet, or the groups do not match its own.
    """
    if not optimizer.state:
        raise RuntimeError("swap_in_optimizer_params_and_state requires initialized optimizer state.")
    own_groups, own_state = optimizer.param_groups, optimizer.state
    groups, owners = _swapped_groups(own_groups, list(swapin_parameters.values()), swapin_optim_state)
    state: defaultdict[Any, Any] = defaultdict(dict)
    for key, value in swapin_optim_state.get("state", {}).items():
        state[owners.get(key, key)] = dict(value) if isinstance(value, dict) else value
    optimizer.param_groups, optimizer.state = groups, state
    try:
        yield
    finally:
        optimizer.param_groups, optimizer.state = own_groups, own_state


def _swapped_groups(
    own_groups: list[dict[str, Any]], params: list[Tensor], swapin_optim_state: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[int, Tensor]]:
    """The groups with ``params`` in them, and the parameter that each number in the state dict stands for."""
    saved = swapin_optim_state.get("param_groups")
    if not isinstance(saved, list):
        raise RuntimeError(
            "swap_in_optimizer_params_and_state requires swapin_optim_state['param_groups'] to be a list of "
            f"param-group dicts, got {type(saved).__name__}."
        )
    if len(saved) != len(own_groups):
        raise RuntimeError("swapin_optim_state has a different number of parameter groups than the live optimizer.")
    groups: list[dict[str, Any]] = []
    owners: dict[int, Tensor] = {}
    start = 0
    for i, (own, other) in enumerate(zip(own_groups, saved, strict=True)):
        count = len(own["params"])
        if len(other["params"]) != count:
            raise RuntimeError(
                f"swapin_optim_state param group {i} has a different number of params than the live optimizer param "
                "group."
            )
        chosen = params[start : start + count]
        if len(chosen) != count:
            raise RuntimeError(
                "swap_in_optimizer_params_and_state requires the explicit parameter state to match "
                "optimizer.param_groups ordering."
            )
        owners.update(zip(other["params"], chosen, strict=True))
        groups.append({**own, **other, "params": chosen})
        start += count
    return groups, owners
