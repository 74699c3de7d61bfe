// Softmax and its kin.
#pragma once

#include <optional>

#include "tensor/tensor.h"

namespace rushlight {

/// Along one dimension, in another type where one is given.
TensorRef softmax(const Tensor& t, std::int64_t dim, std::optional<DType> dtype = {});
TensorRef log_softmax(const Tensor& t, std::int64_t dim, std::optional<DType> dtype = {});
/// log(sum(exp(t))) over dimensions, all where `dims` is empty.
TensorRef logsumexp(const Tensor& t, IntSpan dims, bool keepdim = false);

}  // namespace rushlight
