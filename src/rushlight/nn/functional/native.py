"""The functionals that are operators of the core, by name: nothing stands between the caller and the operator."""

from __future__ import annotations

from typing import Any

import rushlight

# Functional -> the operator's name, in the package itself or among those that PyTorch keeps in torch._C._nn.
_IN_PACKAGE = {
    name: name
    for name in (
        "adaptive_avg_pool1d",
        "avg_pool1d",
        "celu_",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "hardshrink",
        "prelu",
        "relu_",
        "selu_",
        "threshold_",
    )
}
_IN_NN = {
    "avg_pool2d": "avg_pool2d",
    "avg_pool3d": "avg_pool3d",
    "elu_": "elu_",
    "gelu": "gelu",
    "hardtanh_": "hardtanh_",
    "leaky_relu_": "leaky_relu_",
    "linear": "linear",
    "logsigmoid": "log_sigmoid",
    "softplus": "softplus",
    "softshrink": "softshrink",
}

NAMES = tuple(sorted({*_IN_PACKAGE, *_IN_NN}))


def find(name: str) -> Any:
    """The operator behind the functional `name`; AttributeError where there is none, or where the core lacks it."""
    if name in _IN_PACKAGE:
        return getattr(rushlight, _IN_PACKAGE[name])
    if name in _IN_NN:
        return getattr(rushlight._C._nn, _IN_NN[name])
    raise AttributeError(f"module 'rushlight.nn.functional' has no attribute '{name}'")
