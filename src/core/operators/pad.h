// Padding.
#pragma once

#include "tensor/tensor.h"

namespace rushlight {

/// `value` before and behind the last dimensions: pad holds two lengths for each, from the last one on; negative ones
/// cut.
TensorRef constant_pad(const Tensor& t, const Dims& pad, const Scalar& value);

}  // namespace rushlight
