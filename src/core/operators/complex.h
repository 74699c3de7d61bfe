// Complex tensors: their parts as views, and complex numbers made of parts.
//
// Gradients follow PyTorch: that of a complex tensor is dL/d(Re x) + i dL/d(Im x), so a cotangent passes through the
// views as the numbers do, through conj conjugated, and through holomorphic functions times the conjugate of their
// derivative. What reaches a real tensor from a complex result is its real part (autograd/engine.cpp).
#pragma once

#include "tensor/tensor.h"

namespace rushlight {

/// A view with a last dimension of two: real and imaginary parts.
TensorRef view_as_real(const Tensor& t);
/// The inverse; refuses what does not lie as complex numbers do.
TensorRef view_as_complex(const Tensor& t);
/// The parts as views; the real part of a real tensor is itself.
TensorRef real_part(const Tensor& t);
TensorRef imaginary_part(const Tensor& t);
/// real + i imag, of two tensors of one floating type.
TensorRef complex_of_parts(const Tensor& real, const Tensor& imag);

/// A window of memory; if it is one of `pairs`, in the real numbers that each of its complex numbers has two of.
struct RealWindow {
  Dims sizes, strides;
  std::int64_t offset;
  RealWindow(bool pairs, IntSpan sizes, IntSpan strides, std::int64_t offset);
};
/// The real numbers of a tensor, and back: a view where the memory allows it, recorded.
TensorRef as_real_numbers(const Tensor& t);
TensorRef as_numbers_of(DType dtype, const Tensor& real);

}  // namespace rushlight
