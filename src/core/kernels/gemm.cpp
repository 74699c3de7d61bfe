#include "kernels/gemm.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/parallel.h"

// scipy-openblas32 prefixes its symbols
extern "C" {
void scipy_cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);
void scipy_cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double* a, int lda, const double* b, int ldb, double beta, double* c, int ldc);
void scipy_cblas_sgemv(int order, int trans, int m, int n, float alpha, const float* a, int lda, const float* x, int incx, float beta, float* y, int incy);
void scipy_cblas_dgemv(int order, int trans, int m, int n, double alpha, const double* a, int lda, const double* x, int incx, double beta, double* y, int incy);
void scipy_openblas_set_num_threads(int n);
char* scipy_openblas_get_config();
}

namespace rushlight {
namespace {

constexpr int row_major = 101, plain = 111, transposed = 112;

bool fits_int(std::int64_t v) { return v <= 0x7fffffff; }

/// Leading dimension and transposition with which row-major BLAS reads the matrix.
struct Layout {
  int trans;
  int ld;
};
Layout layout_of(const MatrixView& m) {
  if (m.col_stride == 1 || m.cols == 1) return {plain, int(std::max<std::int64_t>(m.rows == 1 ? m.cols : m.row_stride, std::max<std::int64_t>(m.cols, 1)))};
  return {transposed, int(std::max<std::int64_t>(m.cols == 1 ? m.rows : m.col_stride, std::max<std::int64_t>(m.rows, 1)))};
}

template <class T>
std::vector<T> pack(MatrixView& m) {
  std::vector<T> copy(std::size_t(m.rows * m.cols));
  auto* from = static_cast<const T*>(m.data);
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (std::int64_t j = 0; j < m.cols; ++j) copy[std::size_t(i * m.cols + j)] = from[i * m.row_stride + j * m.col_stride];
  m = {copy.data(), m.rows, m.cols, m.cols, 1};
  return copy;
}

template <class T>
void blas(MatrixView a, MatrixView b, const MatrixView& c, double alpha, double beta) {
  std::vector<T> pa, pb;
  if (!blas_layout(a.rows, a.cols, a.row_stride, a.col_stride)) pa = pack<T>(a);
  if (!blas_layout(b.rows, b.cols, b.row_stride, b.col_stride)) pb = pack<T>(b);
  check(fits_int(a.rows) && fits_int(a.cols) && fits_int(b.cols), "matrices beyond 2^31 rows or columns are not supported by the matrix product");
  Layout la = layout_of(a), lb = layout_of(b);
  auto *pa_ = static_cast<const T*>(a.data), *pb_ = static_cast<const T*>(b.data);
  auto* pc = static_cast<T*>(c.data);
  bool big = double(a.rows) * double(a.cols) * double(b.cols) > 1e5;
  void* lock = big ? lock_release() : nullptr;
  if (b.cols == 1 && a.rows > 1) {
    int m = la.trans == plain ? int(a.rows) : int(a.cols), n = la.trans == plain ? int(a.cols) : int(a.rows);
    int incx = b.rows == 1 ? 1 : int(b.row_stride), incy = int(c.rows == 1 ? 1 : c.row_stride);
    if constexpr (std::is_same_v<T, float>)
      scipy_cblas_sgemv(row_major, la.trans, m, n, float(alpha), pa_, la.ld, pb_, incx, float(beta), pc, incy);
    else
      scipy_cblas_dgemv(row_major, la.trans, m, n, alpha, pa_, la.ld, pb_, incx, beta, pc, incy);
  } else {
    int ldc = int(std::max<std::int64_t>(c.rows == 1 ? c.cols : c.row_stride, 1));
    if constexpr (std::is_same_v<T, float>)
      scipy_cblas_sgemm(row_major, la.trans, lb.trans, int(a.rows), int(b.cols), int(a.cols), float(alpha), pa_, la.ld, pb_, lb.ld, float(beta), pc, ldc);
    else
      scipy_cblas_dgemm(row_major, la.trans, lb.trans, int(a.rows), int(b.cols), int(a.cols), alpha, pa_, la.ld, pb_, lb.ld, beta, pc, ldc);
  }
  if (lock) lock_acquire(lock);
}

template <class T>
void loops(const MatrixView& a, const MatrixView& b, const MatrixView& c, double alpha, double beta) {
  auto *x = static_cast<const T*>(a.data), *y = static_cast<const T*>(b.data);
  auto* z = static_cast<T*>(c.data);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < b.cols; ++j) {
      T sum = T(0);
      for (std::int64_t k = 0; k < a.cols; ++k) sum = T(sum + x[i * a.row_stride + k * a.col_stride] * y[k * b.row_stride + j * b.col_stride]);
      T& out = z[i * c.row_stride + j * c.col_stride];
      out = T(sum * T(alpha) + (beta == 0 ? T(0) : T(out * T(beta))));
    }
}

}  // namespace

bool blas_layout(std::int64_t rows, std::int64_t cols, std::int64_t rs, std::int64_t cs) {
  return ((cs == 1 || cols == 1) && (rs >= std::max<std::int64_t>(cols, 1) || rows == 1)) || ((rs == 1 || rows == 1) && (cs >= std::max<std::int64_t>(rows, 1) || cols == 1));
}

void gemm(DType dtype, const MatrixView& a, const MatrixView& b, const MatrixView& c, double alpha, double beta) {
  if (c.rows == 0 || c.cols == 0) return;
  if (dtype == DType::Float32 && a.cols) return blas<float>(a, b, c, alpha, beta);
  if (dtype == DType::Float64 && a.cols) return blas<double>(a, b, c, alpha, beta);
  visit_dtype(dtype, [&]<class T>() { loops<T>(a, b, c, alpha, beta); });
}

void set_blas_threads(int n) { scipy_openblas_set_num_threads(n); }
const char* blas_config() { return scipy_openblas_get_config(); }

}  // namespace rushlight
