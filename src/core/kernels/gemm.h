// Matrix products over memory: OpenBLAS for float and double, plain loops for other types.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace rushlight {

/// A matrix in memory: address, and element strides of rows and columns.
struct MatrixView {
  void* data;
  std::int64_t rows, cols, row_stride, col_stride;
};

/// c = alpha a b + beta c. Strides are arbitrary; what BLAS cannot read in place is packed first.
void gemm(DType dtype, const MatrixView& a, const MatrixView& b, const MatrixView& c, double alpha, double beta);
/// True where BLAS reads the matrix as it lies.
bool blas_layout(std::int64_t rows, std::int64_t cols, std::int64_t row_stride, std::int64_t col_stride);
void set_blas_threads(int n);
const char* blas_config();

}  // namespace rushlight
