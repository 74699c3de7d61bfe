// Elements in another order.
#pragma once

#include "tensor/tensor.h"

namespace rushlight {

/// A copy with the order of elements along `dims` reversed.
TensorRef flip(const Tensor& t, const Dims& dims);

}  // namespace rushlight
