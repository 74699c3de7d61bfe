// Softmax and its kin.
#pragma once

#include <optional>

#include "kernels/softmax.h"
#include "tensor/tensor.h"

namespace rushlight {

/// Along one dimension, in another type where one is given.
TensorRef softmax(const Tensor& t, std::int64_t dim, std::optional<DType> dtype = {});
TensorRef log_softmax(const Tensor& t, std::int64_t dim, std::optional<DType> dtype = {});
/// log(sum(exp(t))) over dimensions, all where `dims` is empty.
TensorRef logsumexp(const Tensor& t, IntSpan dims, bool keepdim = false);

// for what is fused with it

/// The contiguous tensor as blocks of lines along `dim`.
Block block_of(const Tensor& t, int dim);
/// Contiguous and in a type that the kernels have (float or double; halves become floats), without history.
TensorRef softmax_operand(const Tensor& t);

}  // namespace rushlight
