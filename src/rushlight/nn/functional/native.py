"""The functionals that are operators of the core: nothing stands between the caller and the operator.

`NAMES` says where each is found, in the form that `lazy_module` takes.
"""

from collections.abc import Mapping

_OF_PACKAGE = (
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
    "rrelu_",
    "selu_",
    "threshold_",
)

# Those that PyTorch keeps among its neural network operators.
_OF_NN = (
    "avg_pool2d",
    "avg_pool3d",
    "elu_",
    "gelu",
    "hardtanh_",
    "leaky_relu_",
    "linear",
    "scaled_dot_product_attention",
    "softplus",
    "softshrink",
)

NAMES: Mapping[str, str] = {
    **{name: f"rushlight:{name}" for name in _OF_PACKAGE},
    **{name: f"rushlight:_C._nn.{name}" for name in _OF_NN},
    "logsigmoid": "rushlight:_C._nn.log_sigmoid",
}
