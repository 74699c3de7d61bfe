// Gathering and scattering along a dimension by an index of full shape.
#pragma once

#include "operators/pointwise.h"

namespace rushlight {

/// out[.., k, ..] = t[.., index[.., k, ..], ..]: the result has the index' shape.
TensorRef gather(const Tensor& t, std::int64_t dim, const Tensor& index);
/// A copy of `t` with source[.., k, ..] written (added) at index[.., k, ..]; of a greater source, the corner of the
/// index' shape.
TensorRef scatter(const Tensor& t, std::int64_t dim, const Tensor& index, const Tensor& source);
TensorRef scatter(const Tensor& t, std::int64_t dim, const Tensor& index, const Scalar& value);
TensorRef scatter_add(const Tensor& t, std::int64_t dim, const Tensor& index, const Tensor& source);
/// "sum", "prod", "mean", "amax" or "amin" of what meets at each place, with the old number or without it.
TensorRef scatter_reduce(const Tensor& t, std::int64_t dim, const Tensor& index, const Tensor& source,
                         const std::string& reduce, bool include_self);

}  // namespace rushlight
