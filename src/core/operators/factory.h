// Tensors from nothing.
#pragma once

#include "tensor/tensor.h"

/// The keywords of every factory's signature.
#define RUSHLIGHT_FACTORY "dtype? dtype=None, layout layout=None, device device=None, bool requires_grad=False, bool pin_memory=False"

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
/// What a factory gives for requires_grad=: the new tensor as a leaf; refuses types without gradients.
TensorRef as_leaf(TensorRef t, bool requires_grad);
/// Sets every element, without history.
void fill_numbers(Tensor& t, const Scalar& value);

}  // namespace rushlight
