// Reductions: sums, means and products, questions, and what they share.
#pragma once

#include <optional>

#include "kernels/reduction.h"
#include "tensor/tensor.h"

namespace rushlight {

/// The dimensions that a reduction takes away, and the shapes of its result.
struct Reduced {
  std::uint64_t mask = 0;  ///< a bit per dimension
  Dims dims;               ///< ascending
  Dims kept_sizes;         ///< 1 at reduced dimensions
  Dims sizes;              ///< without them
  std::int64_t count = 1;  ///< elements that become one

  /// `dims` wrapped and without repetition; all dimensions where none are named and `all_if_empty`.
  Reduced(const Tensor& t, IntSpan dims, bool all_if_empty = true);
  const Dims& shape(bool keepdim) const { return keepdim ? kept_sizes : sizes; }
  /// Refuses dimensions of size 0: for reductions that have no result for no elements.
  void refuse_empty(const Tensor& t, IntSpan dims, const char* operation) const;
};

/// The names of the dimensions that a call gave: none where it gave None.
inline IntSpan dims_of(const std::optional<Dims>& dim) { return dim ? IntSpan(*dim) : IntSpan(); }

/// A result of a reduction with its reduced dimensions back, of size 1. A view, in the graph.
TensorRef restored(const Tensor& t, IntSpan kept_sizes);

/// The fold over r's dimensions, in the fold's own type and without history.
TensorRef folded(FoldKind kind, const Tensor& t, const Reduced& r, bool keepdim, const char* operation,
                 const Tensor* centres = nullptr);

// over all dimensions where `dims` is empty; recorded

TensorRef sum(const Tensor& t, IntSpan dims, bool keepdim = false, std::optional<DType> dtype = {});
TensorRef mean(const Tensor& t, IntSpan dims, bool keepdim = false, std::optional<DType> dtype = {});
/// (sum |x|^p)^(1/p); p may be 0 or infinite (vector_norm.cpp).
TensorRef vector_norm(const Tensor& t, double p, IntSpan dims, bool keepdim = false, std::optional<DType> dtype = {});

/// Over one dimension.
TensorRef prod(const Tensor& t, std::int64_t dim, bool keepdim = false, std::optional<DType> dtype = {});
TensorRef prod(const Tensor& t, std::optional<DType> dtype = {});

/// True where all elements (any element) of the tensor are not zero.
bool all_true(const Tensor& t);
bool any_true(const Tensor& t);

/// embedding: Python's UserWarning.
void warn(const std::string& message);

}  // namespace rushlight
