"""Modules called with other tensors in the place of their parameters and buffers."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from rushlight import Tensor

from ..modules.module import Module

__all__ = ["functional_call"]

_ABSENT = object()


def _tied(module: Module, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """`given`, with the same tensor for every other name of a tensor that the module has under several names."""
    names: dict[int, list[str]] = {}
    for named in (module.named_parameters, module.named_buffers):
        for name, tensor in named(remove_duplicate=False):
            names.setdefault(id(tensor), []).append(name)
    result = dict(given)
    for group in names.values():
        told = [name for name in group if name in given]
        if len(group) == 1 or not told:
            continue
        if any(given[name] is not given[told[0]] for name in told):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(told)}, which are tied. "
                "Consider using tie_weights=False"
            )
        for name in group:
            result[name] = given[told[0]]
    return result


def _check_keys(module: Module, given: dict[str, Tensor]) -> None:
    """``RuntimeError`` that lists the module's tensors which `given` lacks, and those that are not the module's."""
    own = [name for name, _ in module.named_parameters(remove_duplicate=False)]
    own += [name for name, _ in module.named_buffers(remove_duplicate=False)]
    unexpected = [name for name in given if name not in own]
    missing = [name for name in own if name not in given]
    lines = []
    if unexpected:
        lines.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
    if missing:
        lines.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
    if lines:
        name = type(module).__name__
        raise RuntimeError(f"Error(s) in reparametrizing for {name}:\n\t" + "\n\t".join(lines))


def _swap(owner: Module, name: str, value: Any) -> Any:
    """Puts `value` where the module keeps the tensor `name`, and returns what was there."""
    for kept in (owner._parameters, owner._buffers, owner.__dict__):
        if name in kept:
            before = kept[name]
            if value is _ABSENT:
                del kept[name]
            else:
                kept[name] = value
            return before
    if value is not _ABSENT:
        owner.__dict__[name] = value
    return _ABSENT


@contextlib.contextmanager
def _reparametrize_module(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """The module with other tensors inside the ``with`` block; what it made of them goes into the dict at the end.

    With `stack_weights` the old ones return in the reverse order, for blocks that are nested.
    """
    given = _tied(module, parameters_and_buffers) if tie_weights else dict(parameters_and_buffers)
    for name, tensor in given.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{tensor} is not an instance of torch.Tensor (for {name!r})")
    if strict:
        _check_keys(module, given)
    places = [(name, module.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2]) for name in given]
    before: list[Any] = []
    try:
        for name, owner, leaf in places:
            before.append(_swap(owner, leaf, given[name]))
        yield
    finally:
        changed = list(zip(places, before, strict=False))
        for (name, owner, leaf), tensor in reversed(changed) if stack_weights else changed:
            after = _swap(owner, leaf, tensor)
            if name in parameters_and_buffers and after is not _ABSENT:
                parameters_and_buffers[name] = after


def _functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """What the module computes with these parameters and buffers in the place of its own.

    See :func:`rushlight.func.functional_call`.
    """
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The old place of :func:`rushlight.func.functional_call`."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
