// Tensors from nothing.
#pragma once

#include "tensor/tensor.h"

/// The keywords of every factory's signature.
#define RUSHLIGHT_FACTORY \
  "dtype? dtype=None, layout layout=None, device device=None, bool requires_grad=False, bool pin_memory=False"

namespace rushlight {

TensorRef full(IntSpan sizes, const Scalar& value, DType dtype);
TensorRef zeros(IntSpan sizes, DType dtype);
TensorRef ones(IntSpan sizes, DType dtype);
TensorRef zeros_like(const Tensor& t);
TensorRef ones_like(const Tensor& t);
/// Uninitialised, in the memory format.
TensorRef empty_in(IntSpan sizes, DType dtype, MemoryFormat format);
/// Uninitialised, with the sizes of `t`; in its memory order where no format is named.
TensorRef empty_like_in(const Tensor& t, DType dtype, MemoryFormat format);
/// A 0-d tensor of the number.
TensorRef scalar_tensor(const Scalar& value, DType dtype);
/// n = ceil((end - start) / step) numbers start, start + step, ... (range.cpp)
TensorRef arange(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype);
/// Refuses requires_grad=True for a type without gradients.
void check_requires_grad(DType dtype, bool requires_grad);
/// What a factory gives for requires_grad=: the new tensor as a leaf; refuses types without gradients.
TensorRef as_leaf(TensorRef t, bool requires_grad);
/// `steps` numbers evenly spaced from start to end (range.cpp).
TensorRef linspace(const Scalar& start, const Scalar& end, std::int64_t steps, DType dtype);
/// Refuses a number that the type cannot hold.
void check_fits(const Scalar& value, DType dtype);
/// Sets every element, without history.
void fill_numbers(Tensor& t, const Scalar& value);

}  // namespace rushlight
