"""Layers that learn the size of their input from the first one they see."""

from __future__ import annotations

import itertools
from typing import Any

import rushlight
from rushlight.utils.hooks import RemovableHandle

from ..parameter import is_lazy
from .module import Module

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin(Module):
    """A module whose uninitialized parameters get their shapes from the first input.

    Put it before the layer's class among the bases, create parameters as `UninitializedParameter`, and give them their
    shapes in `initialize_parameters`, which gets the arguments of the first call. The module then becomes one of class
    `cls_to_become`. Loading a state dict gives shapes, too.
    """

    cls_to_become: type[Any] | None = None
    _load_hook: RemovableHandle
    _initialize_hook: RemovableHandle

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        # Uninitialized tensors cannot be detached.
        for name, tensor in itertools.chain(self._parameters.items(), self._buffers.items()):
            if tensor is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()

    def _lazy_load_hook(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Before a state dict is loaded, give uninitialized tensors the shapes they have there."""
        tensor: Any
        for name, tensor in itertools.chain(self._parameters.items(), self._buffers.items()):
            saved = state_dict.get(prefix + name)
            if saved is not None and is_lazy(tensor) and not is_lazy(saved):
                with rushlight.no_grad():
                    tensor.materialize(saved.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give parameters and buffers their shapes, from the arguments of the first call; subclasses define it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer of the module itself has no shape yet."""
        return any(is_lazy(t) for t in itertools.chain(self._parameters.values(), self._buffers.values()))

    def _infer_parameters(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """Before the first call, initialize the parameters and become an ordinary layer."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become
