// Tensors from nothing.
#pragma once

#include "tensor/tensor.h"

namespace rushlight {

TensorRef full(IntSpan sizes, const Scalar& value, DType dtype);
TensorRef zeros(IntSpan sizes, DType dtype);
TensorRef ones(IntSpan sizes, DType dtype);
TensorRef zeros_like(const Tensor& t);
TensorRef ones_like(const Tensor& t);
/// A 0-d tensor of the number.
TensorRef scalar_tensor(const Scalar& value, DType dtype);
/// n = ceil((end - start) / step) numbers start, start + step, ...
TensorRef arange(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype);
/// Sets every element, without history.
void fill_numbers(Tensor& t, const Scalar& value);

}  // namespace rushlight
