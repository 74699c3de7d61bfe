// Tensors joined into one.
#pragma once

#include "operators/registry.h"

namespace rushlight {

/// Along an existing dimension; 1-d tensors of no elements are passed over, types are promoted.
TensorRef cat(const Tensors& tensors, std::int64_t dim);
/// Along a new dimension; all of one shape.
TensorRef stack(const Tensors& tensors, std::int64_t dim);
/// Pointers to the tensors of a list, as the functions above take them.
Tensors pointers(const TensorList& list);

}  // namespace rushlight
