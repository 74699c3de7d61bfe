// Running products, for reductions that are their ends.
#pragma once

#include "tensor/tensor.h"

namespace rushlight {

/// At each place along `dim` the product of the elements before it (behind it, where `reverse`).
TensorRef exclusive_products(const Tensor& t, int dim, bool reverse);

}  // namespace rushlight
