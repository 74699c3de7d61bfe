"""Weights divided by their largest singular value, by a hook; ``parametrizations.spectral_norm`` is the newer way."""

from __future__ import annotations

from typing import Any, TypeVar

import rushlight
from rushlight import Tensor

from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from ..parameter import Parameter

__all__ = ["remove_spectral_norm", "spectral_norm"]

_M = TypeVar("_M", bound=Module)


def output_dim(module: Module) -> int:
    """The dimension of a module's weight that counts its outputs."""
    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """`weight` with `dim` as rows and all other dimensions as columns."""
    if dim:
        weight = weight.permute(dim, *(d for d in range(weight.dim()) if d != dim))
    return weight.flatten(1)


def check_iterations(n_power_iterations: int) -> None:
    """``ValueError`` unless there is at least one."""
    if n_power_iterations <= 0:
        raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")


class SpectralNorm:
    """The hook that computes the weight before each call (Miyato et al. 2018, *Spectral normalization*)."""

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        check_iterations(n_power_iterations)
        self.name = name
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The weight over its largest singular value, which `do_power_iteration` first estimates better, in place."""
        weight = getattr(module, self.name + "_orig")
        u = getattr(module, self.name + "_u")
        v = getattr(module, self.name + "_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            with rushlight.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(rushlight.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(rushlight.mv(matrix, v), dim=0, eps=self.eps))
                # copies, as the next call changes the vectors that this one's graph needs
                u, v = u.clone(), v.clone()
        result: Tensor = weight / rushlight.dot(u, rushlight.mv(matrix, v))
        return result

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    def remove(self, module: Module) -> None:
        """Makes a parameter of the weight again."""
        with rushlight.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for name in (self.name, self.name + "_u", self.name + "_v", self.name + "_orig"):
            delattr(module, name)
        module.register_parameter(self.name, Parameter(weight.detach()))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Registers the hook, ``name_orig`` in the place of `name`, and the buffers ``name_u`` and ``name_v``."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        with rushlight.no_grad():
            rows, columns = as_matrix(weight, dim).shape
            u = F.normalize(weight.new_empty(rows).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(columns).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        # a plain attribute until the first call computes it, so that the module can be looked at, and copied
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        return hook


def spectral_norm(
    module: _M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> _M:
    """`module`, whose parameter `name` is divided by its largest singular value, estimated anew before each call.

    `dim` counts the outputs: by default 1 for transposed convolutions, else 0.
    """
    SpectralNorm.apply(module, name, n_power_iterations, output_dim(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module: _M, name: str = "weight") -> _M:
    """`module` with a parameter `name` again, as last computed; ``ValueError`` if there was no spectral norm."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
