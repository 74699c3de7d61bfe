// Matrix products.
#pragma once

#include "kernels/gemm.h"
#include "tensor/tensor.h"

namespace rushlight {

/// PyTorch's matmul over vectors, matrices and batches of matrices.
TensorRef matmul(const Tensor& a, const Tensor& b);
/// Matrix times matrix.
TensorRef mm(const Tensor& a, const Tensor& b);
/// Products of two batches of matrices.
TensorRef bmm(const Tensor& a, const Tensor& b);
/// Matrix times vector.
TensorRef mv(const Tensor& a, const Tensor& b);
/// The sum of products of two vectors.
TensorRef dot(const Tensor& a, const Tensor& b);
/// The products of each element of one vector with each of another.
TensorRef outer(const Tensor& a, const Tensor& b);
/// beta * self + alpha * a b (product.cpp).
TensorRef addmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha);

/// The complex conjugate; a real tensor as it is.
TensorRef conjugate(const Tensor& t);
/// The last two dimensions swapped, and complex numbers conjugated: what derivatives of products multiply by.
TensorRef adjoint(const Tensor& t);

// for families of products: memory and messages

/// The last two dimensions of `t` as a matrix at `base`.
MatrixView matrix(const Tensor& t, const std::byte* base);
/// An element type as C++ calls it ("float", "long int"), as PyTorch's messages of products have it.
const char* type_text(DType d);
void check_matrices_fit(std::int64_t rows, std::int64_t inner, std::int64_t inner2, std::int64_t cols);
/// Refuses what has no products.
void check_multipliable(DType d, const char* operation);

}  // namespace rushlight
