// Matrix products over memory: OpenBLAS for floating and complex types, plain loops for integers.
//
// OpenBLAS runs on one thread. Large products are cut here, into rows or columns of the result, and large batches into
// their products, so that one set of threads (kernels/parallel.h) serves everything.
#pragma once

#include <cstdint>

#include "tensor/scalar.h"

namespace rushlight {

/// A matrix in memory: address, and element strides of rows and columns.
struct MatrixView {
  void* data;
  std::int64_t rows, cols, row_stride, col_stride;
};

/// c = alpha a b + beta c; c is not read where beta is 0. Strides are arbitrary; what BLAS cannot read in place is
/// packed first. Half types are multiplied and added in float.
void gemm(DType dtype, const MatrixView& a, const MatrixView& b, const MatrixView& c, const Scalar& alpha = 1.0,
          const Scalar& beta = 0.0);
/// The same for `count` products; each matrix begins so many elements (`steps` of a, b, c) after the one before.
void gemm_batch(DType dtype, std::int64_t count, const MatrixView& a, const MatrixView& b, const MatrixView& c,
                const std::int64_t (&steps)[3], const Scalar& alpha = 1.0, const Scalar& beta = 0.0);
/// True where BLAS reads the matrix as it lies.
bool blas_layout(std::int64_t rows, std::int64_t cols, std::int64_t row_stride, std::int64_t col_stride);
const char* blas_config();

}  // namespace rushlight
