// Matrix products.
#pragma once

#include "tensor/tensor.h"

namespace rushlight {

/// PyTorch's matmul over vectors, matrices and batches of matrices.
TensorRef matmul(const Tensor& a, const Tensor& b);

}  // namespace rushlight
