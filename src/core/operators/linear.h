// The affine map of a fully connected layer.
#pragma once

#include "tensor/tensor.h"

namespace rushlight {

/// input weight^T + bias over the last dimension, in one node; bias may be null.
TensorRef linear(const Tensor& input, const Tensor& weight, const Tensor* bias);

}  // namespace rushlight
