"""Saving the state of a module tree to a flat dictionary and loading it again."""

from __future__ import annotations

import itertools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import rushlight
from rushlight import Tensor
from rushlight.utils.hooks import RemovableHandle

from ..parameter import Parameter, is_lazy
from .hook import Hooked, _WrappedHook

_Hook = Callable[..., Any]

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class _IncompatibleKeys(_Keys):
    """What `load_state_dict` found missing in the dictionary, and what it could not place."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)


class Stateful(Hooked):
    """The part of `Module` that saves and loads state.

    Keys are the dotted paths of parameters and persistent buffers. `_version` is written beside them (in the
    dictionary's attribute `_metadata`), so that a later version of a class can read what an earlier one saved.
    """

    _version: int = 1
    _state_dict_hooks: OrderedDict[int, _Hook]
    _state_dict_pre_hooks: OrderedDict[int, _Hook]
    _load_state_dict_pre_hooks: OrderedDict[int, _Hook]
    _load_state_dict_post_hooks: OrderedDict[int, _Hook]

    # Hooks ----------------------------------------------------------------------------------------------------------

    def _register_state_dict_hook(self, hook: _Hook) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after saving; a result replaces the dictionary."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = hook
        return handle

    def register_state_dict_post_hook(self, hook: _Hook) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after saving; it may change the dictionary in place.

        The hook must return None, or `state_dict` raises RuntimeError.
        """
        hook._from_public_api = True  # type: ignore[attr-defined]
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = hook
        return handle

    def register_state_dict_pre_hook(self, hook: _Hook) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before the module's state is saved."""
        handle = RemovableHandle(self._state_dict_pre_hooks)
        self._state_dict_pre_hooks[handle.id] = hook
        return handle

    def _register_load_state_dict_pre_hook(self, hook: _Hook, with_module: bool = False) -> RemovableHandle:
        """Call `hook` with the arguments of `_load_from_state_dict` before it, after the module if `with_module`."""
        handle = RemovableHandle(self._load_state_dict_pre_hooks)
        self._load_state_dict_pre_hooks[handle.id] = _WrappedHook(hook, self if with_module else None)
        return handle

    def register_load_state_dict_pre_hook(self, hook: _Hook) -> RemovableHandle:
        """Call `hook` before the module's state is loaded.

        It gets `(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`
        and may change the dictionary and the lists in place.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: _Hook) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after the module's state is loaded; it may change the keys."""
        handle = RemovableHandle(self._load_state_dict_post_hooks)
        self._load_state_dict_post_hooks[handle.id] = hook
        return handle

    # Saving ---------------------------------------------------------------------------------------------------------

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Write what belongs to this module itself, not to its submodules, to `destination`."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                destination[prefix + name] = parameter if keep_vars else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if self._has_extra_state("get_extra_state"):
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """An ordered dictionary of all parameters and persistent buffers, by their dotted paths.

        The tensors share memory with the module's and are detached unless `keep_vars`. Keys start with `prefix`;
        `destination`, if given, is filled and returned.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to the documentation of "
                "`Module.state_dict` for details.",
                FutureWarning,
                stacklevel=2,
            )
            given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
            destination = destination if destination is not None else given["destination"]
            prefix = prefix or given.get("prefix", "")
            keep_vars = keep_vars or given.get("keep_vars", False)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            replaced = hook(self, destination, prefix, local_metadata)
            if not getattr(hook, "_from_public_api", False):
                destination = destination if replaced is None else replaced
            elif replaced is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination

    def get_extra_state(self) -> Any:
        """What a subclass saves in the state dict beside its tensors; override it together with `set_extra_state`."""
        raise RuntimeError(f"{self._get_name()} overrides set_extra_state but not get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` gave."""
        raise RuntimeError(f"{self._get_name()} overrides get_extra_state but not set_extra_state")

    def _has_extra_state(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(Stateful, method)

    # Loading --------------------------------------------------------------------------------------------------------

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copy the tensors of `state_dict` into the parameters and buffers of this module and all below it.

        With `assign` the tensors themselves take the places of the module's. Returns the lists `missing_keys` and
        `unexpected_keys`. One RuntimeError lists every tensor whose shape or type does not fit and, with `strict`,
        every missing and unexpected key. Anything but a mapping raises TypeError.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        state: Any = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        self._load_tree(state, "", metadata, assign, missing, unexpected, errors)
        if strict:
            errors[:0] = [
                f"{kind} key(s) in state_dict: {_quoted(keys)}. "
                for kind, keys in (("Missing", missing), ("Unexpected", unexpected))
                if keys
            ]
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {self._get_name()}:\n\t" + "\n\t".join(errors))
        return _IncompatibleKeys(missing, unexpected)

    def _load_tree(
        self,
        state_dict: Any,
        prefix: str,
        metadata: Any,
        assign: bool,
        missing: list[str],
        unexpected: list[str],
        errors: list[str],
    ) -> None:
        """Load this module and those below it, adding to the lists what went wrong."""
        local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
        if assign:
            local_metadata["assign_to_params_buffers"] = assign
        # Keys that do not fit are recorded in any case; load_state_dict decides whether they are errors.
        self._load_from_state_dict(state_dict, prefix, local_metadata, True, missing, unexpected, errors)
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}{name}."
                child_state = {key: value for key, value in state_dict.items() if key.startswith(below)}
                module._load_tree(child_state, below, metadata, assign, missing, unexpected, errors)
        for hook in self._load_state_dict_post_hooks.values():
            if hook(self, _IncompatibleKeys(missing, unexpected)) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace."
                )

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load what belongs to this module itself, not to its submodules, adding to the lists what went wrong."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        persistent = ((n, b) for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set)
        local = {n: t for n, t in itertools.chain(self._parameters.items(), persistent) if t is not None}
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, tensor in local.items():
            key = prefix + name
            if key in state_dict:
                error = self._load_tensor(name, key, tensor, state_dict[key], assign)
                if error:
                    error_msgs.append(error)
            elif strict:
                missing_keys.append(key)
        extra = prefix + _EXTRA_STATE_KEY_SUFFIX
        if self._has_extra_state("set_extra_state"):
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    first, dot, _ = key[len(prefix) :].partition(".")
                    if first not in (self._modules if dot else local):
                        unexpected_keys.append(key)

    def _load_tensor(self, name: str, key: str, tensor: Tensor, source: Any, assign: bool) -> str | None:
        """Load `source`, saved under `key`, as the member `name` that was `tensor`; the error, if it does not fit."""
        if not isinstance(source, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(source)}"
            )
        if not is_lazy(tensor):
            if not tensor.shape and len(source.shape) == 1:
                # Before version 0.4, PyTorch saved scalars as tensors of one element.
                source = source[0]
            if source.shape != tensor.shape:
                return (
                    f"size mismatch for {key}: copying a param with shape {source.shape} from checkpoint, the shape in "
                    f"current model is {tensor.shape}."
                )
        try:
            with rushlight.no_grad():
                if assign:
                    self._assign_tensor(name, tensor, source)
                else:
                    tensor.copy_(source)
        except Exception as error:
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are {tensor.size()} and '
                f"whose dimensions in the checkpoint are {source.size()}, an exception occurred : {error.args}."
            )
        return None

    def _assign_tensor(self, name: str, tensor: Tensor, source: Tensor) -> None:
        """Put `source` in the place of `tensor`: as a parameter with the same `requires_grad` if that is one."""
        if isinstance(tensor, Parameter):
            if isinstance(source, Parameter):
                source.requires_grad_(tensor.requires_grad)
            else:
                source = Parameter(source, requires_grad=tensor.requires_grad)
        setattr(self, name, source)
