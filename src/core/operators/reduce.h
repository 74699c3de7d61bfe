// Reductions.
#pragma once

#include <optional>

#include "tensor/tensor.h"

namespace rushlight {

/// Over all dimensions where `dims` is empty.
TensorRef sum(const Tensor& t, IntSpan dims, bool keepdim = false, std::optional<DType> dtype = {});

}  // namespace rushlight
