"""Neural networks: modules, layers, their functions and initial values."""

from .._missing import lazy_module
from . import functional, init
from .modules import *  # noqa: F403
from .modules import __all__ as _layers
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    *_layers,
]

__getattr__, __dir__ = lazy_module(
    __name__,
    submodules=("attention", "common_types", "grad", "parallel", "utils"),
    names={"DataParallel": "rushlight.nn.parallel", "factory_kwargs": "rushlight.nn.factory"},
)
