"""Modules as functions of their parameters and buffers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import rushlight
from rushlight import Tensor

from ..nn.modules.module import Module
from ..nn.utils.stateless import _functional_call

__all__ = ["functional_call", "stack_module_state"]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """What `module` computes of `args` with the given tensors in the place of those of their names.

    Several dicts must not share a name (``ValueError``). Tensors that the module has under several names are all
    replaced, unless `tie_weights` is false. `strict` demands all names, and no others (``RuntimeError``). A buffer
    that the module assigns anew is found in the dict afterwards.
    """
    given = parameter_and_buffer_dicts
    if isinstance(given, (list, tuple)):
        if not all(isinstance(part, dict) for part in given):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        counts = Counter(name for part in given for name in part)
        repeated = [name for name, count in counts.items() if count > 1]
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {name: tensor for part in given for name, tensor in part.items()}
    elif not isinstance(given, dict):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(given)}"
        )
    return _functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of several models of one class, stacked along a new first dimension.

    For :func:`rushlight.vmap` over :func:`functional_call`. None, differing classes or modes are a ``RuntimeError``.
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(m.training != models[0].training for m in models):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    stacked = {}
    for name in parameters[0]:
        tensors = [own[name] for own in parameters]
        learns = any(t.requires_grad for t in tensors)
        stacked[name] = rushlight.stack([t.detach() for t in tensors]).requires_grad_(learns)
    return stacked, {name: rushlight.stack([own[name].detach() for own in buffers]) for name in buffers[0]}
