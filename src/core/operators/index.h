// Indexing by tensors.
#pragma once

#include "operators/pointwise.h"
#include "tensor/tensor.h"

namespace rushlight {

/// The positions of what is not zero, one row each: (n, ndim) of int64.
TensorRef nonzero(const Tensor& t);
/// The same, one vector per dimension; a scalar counts as a vector.
TensorList nonzero_positions(const Tensor& t);

/// t[i0, i1, ...] with index tensors (int types or bool masks) or null for a whole dimension, PyTorch's (NumPy's)
/// rules.
TensorRef index(const Tensor& t, const TensorList& indices);
/// A copy of `t` with t[indices] = values (added where `accumulate`).
TensorRef index_put(const Tensor& t, const TensorList& indices, const Tensor& values, bool accumulate);
/// The same in place.
void index_put_inplace(Tensor& t, const TensorList& indices, const Tensor& values, bool accumulate);

/// The places of a dimension that a vector of positions names (index_dim.cpp).
TensorRef index_select(const Tensor& t, std::int64_t dim, const Tensor& index);
/// A copy with alpha * source added to the named places.
TensorRef index_add(const Tensor& t, std::int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha);

/// A copy with the number written to the named places.
TensorRef index_fill(const Tensor& t, std::int64_t dim, const Tensor& index, const Scalar& value);

/// Elements of `a` where the condition is True, of `b` elsewhere (mask.cpp).
TensorRef where(const Tensor& condition, const Operand& a, const Operand& b);
TensorRef masked_fill(const Tensor& t, const Tensor& mask, const Scalar& value);
/// The elements where the mask is True, as a vector.
TensorRef masked_select(const Tensor& t, const Tensor& mask);
std::int64_t count_true(const Tensor& mask);
/// to[mask] = values in order, as many as the mask of the same shape has True; without history.
void put_masked(Tensor& to, const Tensor& mask, const Tensor& values);
/// A copy with the elements of `source`, in order, where the mask is True.
TensorRef masked_scatter(const Tensor& t, const Tensor& mask, const Tensor& source);

}  // namespace rushlight
