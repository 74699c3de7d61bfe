#include "kernels/gemm_rows.h"

#include "kernels/cpu.h"

namespace rushlight {

#define RUSHLIGHT_DECLARE(isa)                                                                               \
  namespace isa {                                                                                            \
  bool multiply_single_rows(const MatrixView& a, const MatrixView& b, const MatrixView& c, float alpha);     \
  bool multiply_single_rows(const MatrixView& a, const MatrixView& b, const MatrixView& c, double alpha);    \
  void multiply_column_and_row(const MatrixView& a, const MatrixView& b, const MatrixView& c, float alpha);  \
  void multiply_column_and_row(const MatrixView& a, const MatrixView& b, const MatrixView& c, double alpha); \
  }
RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE)

template <>
bool multiply_single_rows<float>(const MatrixView& a, const MatrixView& b, const MatrixView& c, float alpha) {
  return RUSHLIGHT_BEST(multiply_single_rows(a, b, c, alpha));
}
template <>
bool multiply_single_rows<double>(const MatrixView& a, const MatrixView& b, const MatrixView& c, double alpha) {
  return RUSHLIGHT_BEST(multiply_single_rows(a, b, c, alpha));
}

template <>
void multiply_column_and_row<float>(const MatrixView& a, const MatrixView& b, const MatrixView& c, float alpha) {
  RUSHLIGHT_BEST(multiply_column_and_row(a, b, c, alpha));
}
template <>
void multiply_column_and_row<double>(const MatrixView& a, const MatrixView& b, const MatrixView& c, double alpha) {
  RUSHLIGHT_BEST(multiply_column_and_row(a, b, c, alpha));
}

}  // namespace rushlight
