// Running products, for reductions that are their ends and for powers.
#pragma once

#include <optional>

#include "tensor/tensor.h"

namespace rushlight {

/// Running products along a dimension, in `dtype` or the type that PyTorch takes.
TensorRef cumprod(const Tensor& t, std::int64_t dim, std::optional<DType> dtype = {});
/// At each place along `dim` the product of the elements before it (behind it, where `reverse`).
TensorRef exclusive_products(const Tensor& t, int dim, bool reverse);

}  // namespace rushlight
