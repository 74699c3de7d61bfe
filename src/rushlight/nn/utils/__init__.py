"""Tools around modules: clipping, vectors of parameters, parametrizations, pruning, fusion, padded sequences."""

from ..._missing import lazy_module

# eager: these functions have the names of their files, which importing the files later would put in their place
from .spectral_norm import remove_spectral_norm, spectral_norm
from .weight_norm import remove_weight_norm, weight_norm

_FILES = {
    "clip_grad": ("clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"),
    "convert_parameters": ("parameters_to_vector", "vector_to_parameters"),
    "fusion": ("fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"),
    "init": ("skip_init",),
    "memory_format": ("convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"),
}

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]

__getattr__, __dir__ = lazy_module(
    __name__,
    submodules=(*_FILES, "parametrizations", "parametrize", "prune", "rnn", "stateless"),
    names={name: f"{__name__}.{file}" for file, names in _FILES.items() for name in names},
)
