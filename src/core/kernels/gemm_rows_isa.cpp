// Products with a factor of single numbers per row, compiled once per instruction set.
#include <vector>

#include "kernels/finite.h"
#include "kernels/gemm.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

/// The place of the only number of a row that is not zero (0 where all are), or -1 where there are several.
template <class T, class Word>
std::int64_t single_place(const T* row, std::int64_t n) {
  Word count = 0, place = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    auto set = Word(row[j] != T(0));
    count += set;
    place += set * Word(j);
  }
  return count > 1 ? -1 : std::int64_t(place);
}

/// Whether the numbers along the unit stride of a matrix, row by row, are finite.
template <class T>
bool is_finite(const MatrixView& m) {
  bool rows = m.col_stride == 1;
  std::int64_t lines = rows ? m.rows : m.cols, n = rows ? m.cols : m.rows;
  std::int64_t step = (rows ? m.row_stride : m.col_stride) * std::int64_t(sizeof(T));
  if (step == n * std::int64_t(sizeof(T))) n *= lines, lines = 1;
  FindFaults faults = rushlight::fault_search(sizeof(T) == 4 ? DType::Float32 : DType::Float64);
  for (std::int64_t i = 0; i < lines; ++i)
    if (faults(static_cast<const char*>(m.data) + i * step, n, sizeof(T))) return false;
  return true;
}

/// A multiple of a row, as a sum gives it, which begins with a zero: a product of -0 becomes 0.
template <class T>
inline void multiply_row(T factor, const T* from, std::int64_t from_step, T* to, std::int64_t to_step, std::int64_t n,
                         T alpha) {
  if (from_step == 1 && to_step == 1) {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n; ++j) to[j] = alpha * (T(0) + factor * from[j]);
  } else {
    for (std::int64_t j = 0; j < n; ++j) to[j * to_step] = alpha * (T(0) + factor * from[j * from_step]);
  }
}

template <class T, class Word>
bool multiply(const MatrixView& a, const MatrixView& b, const MatrixView& c, T alpha) {
  auto *x = static_cast<const T*>(a.data), *y = static_cast<const T*>(b.data);
  auto* z = static_cast<T*>(c.data);
  std::vector<std::int64_t> places(std::size_t(a.rows));
  for (std::int64_t i = 0; i < a.rows; ++i) {
    std::int64_t place = single_place<T, Word>(x + i * a.row_stride, a.cols);
    if (place < 0) return false;
    places[std::size_t(i)] = place;
  }
  if (b.col_stride != 1 && b.row_stride != 1) return false;
  if (!is_finite<T>(b)) return false;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    std::int64_t place = places[std::size_t(i)];
    multiply_row(x[i * a.row_stride + place], y + place * b.row_stride, b.col_stride, z + i * c.row_stride,
                 c.col_stride, b.cols, alpha);
  }
  return true;
}

template <class T>
void multiply_each_row(const MatrixView& a, const MatrixView& b, const MatrixView& c, T alpha) {
  auto *x = static_cast<const T*>(a.data), *y = static_cast<const T*>(b.data);
  auto* z = static_cast<T*>(c.data);
  for (std::int64_t i = 0; i < a.rows; ++i)
    multiply_row(x[i * a.row_stride], y, b.col_stride, z + i * c.row_stride, c.col_stride, b.cols, alpha);
}

}  // namespace

bool multiply_single_rows(const MatrixView& a, const MatrixView& b, const MatrixView& c, float alpha) {
  return multiply<float, std::uint32_t>(a, b, c, alpha);
}
bool multiply_single_rows(const MatrixView& a, const MatrixView& b, const MatrixView& c, double alpha) {
  return multiply<double, std::uint64_t>(a, b, c, alpha);
}

void multiply_column_and_row(const MatrixView& a, const MatrixView& b, const MatrixView& c, float alpha) {
  multiply_each_row(a, b, c, alpha);
}
void multiply_column_and_row(const MatrixView& a, const MatrixView& b, const MatrixView& c, double alpha) {
  multiply_each_row(a, b, c, alpha);
}

}  // namespace rushlight::RUSHLIGHT_ISA
