// Products with a factor that has at most one number in each row: unit vectors, a diagonal, a permutation, one-hot
// codes. Each row of the result is then a multiple of one row of the other factor, which is read off instead of summed.
// The cotangents and tangents of a Jacobian are of this kind, and so is what pointwise operators make of them.
#pragma once

#include "kernels/gemm.h"

namespace rushlight {

/// c = alpha a b where `a` is of that kind and b is finite (0 times infinity would count), with the bits of the sums.
/// False where it is not: nothing was written. float and double.
template <class T>
bool multiply_single_rows(const MatrixView& a, const MatrixView& b, const MatrixView& c, T alpha);

/// c = alpha a b where `a` is a column and b a row, both of c's rows run on. float and double.
template <class T>
void multiply_column_and_row(const MatrixView& a, const MatrixView& b, const MatrixView& c, T alpha);

/// A glance at the first row, which most matrices do not pass.
template <class T>
bool may_be_single_rows(const MatrixView& a) {
  if (a.col_stride != 1) return false;
  auto* x = static_cast<const T*>(a.data);
  int found = 0;
  for (std::int64_t j = 0; j < a.cols; ++j)
    if (x[j] != T(0) && ++found > 1) return false;
  return true;
}

}  // namespace rushlight
