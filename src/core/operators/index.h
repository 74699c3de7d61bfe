// Indexing by tensors.
#pragma once

#include "tensor/tensor.h"

namespace rushlight {

/// The positions of what is not zero, one row each: (n, ndim) of int64.
TensorRef nonzero(const Tensor& t);

/// t[i0, i1, ...] with index tensors (int types or bool masks) or null for a whole dimension, PyTorch's (NumPy's) rules.
TensorRef index(const Tensor& t, const TensorList& indices);
/// A copy of `t` with t[indices] = values (added where `accumulate`).
TensorRef index_put(const Tensor& t, const TensorList& indices, const Tensor& values, bool accumulate);
/// The same in place.
void index_put_inplace(Tensor& t, const TensorList& indices, const Tensor& values, bool accumulate);

}  // namespace rushlight
