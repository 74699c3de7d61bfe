"""Modules as functions of their parameters and buffers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import rushlight
from rushlight import Tensor

from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from ..nn.utils.stateless import _functional_call

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


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

    For :func:`rushlight.vmap` over :func:`functional_call`. No models, and models that differ in class, mode or in what
    requires grad, are a ``RuntimeError``.
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
    return _stacked(parameters), _stacked(buffers)


def _stacked(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Leaves of their own, which require grad where the tensors do."""
    stacked = {}
    for name, first in states[0].items():
        tensors = [state[name] for state in states]
        if any(t.requires_grad != first.requires_grad for t in tensors):
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        stacked[name] = rushlight.stack([t.detach() for t in tensors]).requires_grad_(first.requires_grad)
    return stacked


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let every batch normalisation of ``root`` use the statistics of its batch, and keep none; return ``root``.

    Under :func:`rushlight.vmap` running statistics could not be changed: they belong to all samples.
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
