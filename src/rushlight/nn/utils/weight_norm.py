"""Weights as a direction times a length, by a hook; ``parametrizations.weight_norm`` is the newer way."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

import rushlight
from rushlight import Tensor

from ..modules.module import Module
from ..parameter import Parameter

__all__ = ["remove_weight_norm", "weight_norm"]

_M = TypeVar("_M", bound=Module)


def norm_except_dim(v: Tensor, dim: int | None) -> Tensor:
    """The Euclidean norm of `v` over all dimensions but `dim`, kept with size 1; over all for None or -1."""
    if dim is None or dim == -1:
        result: Tensor = rushlight.linalg.vector_norm(v)
        return result
    dims = [d for d in range(v.dim()) if d != dim % v.dim()]
    return rushlight.linalg.vector_norm(v, 2, dims, True) if dims else v.abs()


def normed_weight(v: Tensor, g: Tensor, dim: int | None) -> Tensor:
    """``g v / ‖v‖`` (Salimans and Kingma 2016, *Weight normalization*)."""
    return v * (g / norm_except_dim(v, dim))


class WeightNorm:
    """The hook that computes the weight before each call."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        return normed_weight(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Registers the hook, and the parameters ``name_g`` and ``name_v`` in the place of `name`."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, hook.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        """Makes a parameter of the weight again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))


def weight_norm(module: _M, name: str = "weight", dim: int | None = 0) -> _M:
    """`module`, whose `name` is computed of ``name_g`` (lengths along `dim`) and ``name_v`` before each call."""
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: _M, name: str = "weight") -> _M:
    """`module` with the parameter `name` as it was before :func:`weight_norm`; ``ValueError`` if there was none."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
