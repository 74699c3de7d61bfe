#include "kernels/gemm.h"

#include <algorithm>
#include <complex>
#include <cstdlib>
#include <memory>

#include "kernels/gemm_rows.h"
#include "kernels/parallel.h"

// scipy-openblas32 prefixes its symbols
extern "C" {
#define RUSHLIGHT_BLAS(p, T, S)                                                                                        \
  void scipy_cblas_##p##gemm(int order, int ta, int tb, int m, int n, int k, S alpha, const T* a, int lda, const T* b, \
                             int ldb, S beta, T* c, int ldc);                                                          \
  void scipy_cblas_##p##gemv(int order, int trans, int m, int n, S alpha, const T* a, int lda, const T* x, int incx,   \
                             S beta, T* y, int incy);
RUSHLIGHT_BLAS(s, float, float)
RUSHLIGHT_BLAS(d, double, double)
RUSHLIGHT_BLAS(c, void, const void*)
RUSHLIGHT_BLAS(z, void, const void*)
#undef RUSHLIGHT_BLAS
void scipy_openblas_set_num_threads(int n);
char* scipy_openblas_get_config();
}

namespace rushlight {
namespace {

constexpr int row_major = 101, plain = 111, transposed = 112;
/// Multiplications that are worth another thread: about 20 µs of work.
constexpr double thread_work = 1 << 19;
/// Multiplications from which a look for rows of single numbers (gemm_rows.h) costs next to nothing.
constexpr double single_rows_work = 1 << 15;
/// Above this other threads of the interpreter may run meanwhile.
constexpr double unlock_work = 1e5;
/// Rows or columns of the result that stay together when it is cut: BLAS works in tiles of this order.
constexpr std::int64_t tile = 32;

[[maybe_unused]] const bool one_blas_thread = (scipy_openblas_set_num_threads(1), true);

template <class T>
struct Blas;
#define RUSHLIGHT_BLAS(T, p, address)                                                                                \
  template <>                                                                                                        \
  struct Blas<T> {                                                                                                   \
    static void gemm(int ta, int tb, int m, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb, T beta, \
                     T* c, int ldc) {                                                                                \
      scipy_cblas_##p##gemm(row_major, ta, tb, m, n, k, address alpha, a, lda, b, ldb, address beta, c, ldc);        \
    }                                                                                                                \
    static void gemv(int trans, int m, int n, T alpha, const T* a, int lda, const T* x, int incx, T beta, T* y,      \
                     int incy) {                                                                                     \
      scipy_cblas_##p##gemv(row_major, trans, m, n, address alpha, a, lda, x, incx, address beta, y, incy);          \
    }                                                                                                                \
  };
RUSHLIGHT_BLAS(float, s, )
RUSHLIGHT_BLAS(double, d, )
RUSHLIGHT_BLAS(std::complex<float>, c, &)
RUSHLIGHT_BLAS(std::complex<double>, z, &)
#undef RUSHLIGHT_BLAS

double work_of(const MatrixView& a, const MatrixView& b) { return double(a.rows) * double(a.cols) * double(b.cols); }
MatrixView turned(const MatrixView& m) { return {m.data, m.cols, m.rows, m.col_stride, m.row_stride}; }
template <class T>
MatrixView part(const MatrixView& m, std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols) {
  return {static_cast<T*>(m.data) + row * m.row_stride + col * m.col_stride, rows, cols, m.row_stride, m.col_stride};
}

/// Leading dimension and transposition with which row-major BLAS reads the matrix.
struct Layout {
  int trans;
  int ld;
};
Layout layout_of(const MatrixView& m) {
  if (m.col_stride == 1 || m.cols == 1)
    return {plain, int(std::max<std::int64_t>(m.rows == 1 ? m.cols : m.row_stride, std::max<std::int64_t>(m.cols, 1)))};
  return {transposed,
          int(std::max<std::int64_t>(m.cols == 1 ? m.rows : m.col_stride, std::max<std::int64_t>(m.rows, 1)))};
}

/// A row-major copy of `m` in another type, to which the view is turned.
template <class To, class From>
std::unique_ptr<To[]> pack(MatrixView& m) {
  auto copy = std::make_unique_for_overwrite<To[]>(std::size_t(m.rows * m.cols));
  auto* from = static_cast<const From*>(m.data);
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (std::int64_t j = 0; j < m.cols; ++j)
      copy[std::size_t(i * m.cols + j)] = To(from[i * m.row_stride + j * m.col_stride]);
  m = {copy.get(), m.rows, m.cols, m.cols, 1};
  return copy;
}

bool readable(const MatrixView& m) { return blas_layout(m.rows, m.cols, m.row_stride, m.col_stride); }

/// On this thread; a and b readable by BLAS, c with rows (or columns) that run on.
template <class T>
void one_product(MatrixView a, MatrixView b, MatrixView c, T alpha, T beta) {
  if ((a.rows == 1 && b.cols > 1) || (c.col_stride != 1 && c.cols > 1)) {
    MatrixView left = turned(b);
    b = turned(a), a = left, c = turned(c);
  }
  if constexpr (std::is_floating_point_v<T>)
    if (a.cols == 1 && beta == T(0)) return multiply_column_and_row(a, b, c, alpha);
  Layout la = layout_of(a), lb = layout_of(b);
  auto *pa = static_cast<const T*>(a.data), *pb = static_cast<const T*>(b.data);
  auto* pc = static_cast<T*>(c.data);
  if (b.cols == 1) {
    std::int64_t step = c.rows == 1 ? 1 : c.row_stride;
    if (beta == T(0))  // what lies there may be a NaN, which gemv would keep
      for (std::int64_t i = 0; i < c.rows; ++i) pc[i * step] = T(0);
    int m = int(la.trans == plain ? a.rows : a.cols), n = int(la.trans == plain ? a.cols : a.rows);
    Blas<T>::gemv(la.trans, m, n, alpha, pa, la.ld, pb, int(b.rows == 1 ? 1 : b.row_stride), beta, pc, int(step));
  } else {
    int ldc = int(std::max<std::int64_t>(c.rows == 1 ? c.cols : c.row_stride, 1));
    Blas<T>::gemm(la.trans, lb.trans, int(a.rows), int(b.cols), int(a.cols), alpha, pa, la.ld, pb, lb.ld, beta, pc,
                  ldc);
  }
}

/// Rows (or columns) of a result in pieces, each one product: as many as there are threads, or, where bits must not
/// depend on these, as the sizes say.
struct Pieces {
  std::int64_t lines, tiles, count;
  Pieces(std::int64_t lines, double work) : lines(lines), tiles((lines + tile / 2) / tile) {
    std::int64_t most = deterministic() ? 16 : in_parallel() ? 1 : num_threads();
    count =
        std::clamp<std::int64_t>(std::int64_t(work / thread_work), 1, std::max<std::int64_t>(1, std::min(most, tiles)));
  }
  /// The last one takes what is left of a tile: never a single line, which BLAS would sum in another way.
  std::int64_t begin(std::int64_t i) const { return i == count ? lines : tiles * i / count * tile; }
};

/// Copies the first row of a matrix to all others, along what lies together in memory.
template <class T>
void repeat_first_row(const MatrixView& c) {
  auto* first = static_cast<T*>(c.data);
  if (std::abs(c.row_stride) < std::abs(c.col_stride)) {
    for (std::int64_t j = 0; j < c.cols; ++j) {
      T* column = first + j * c.col_stride;
      T value = *column;
      for (std::int64_t i = 1; i < c.rows; ++i) column[i * c.row_stride] = value;
    }
  } else {
    for (std::int64_t i = 1; i < c.rows; ++i)
      for (std::int64_t j = 0; j < c.cols; ++j) first[i * c.row_stride + j * c.col_stride] = first[j * c.col_stride];
  }
}

/// On as many threads as pay, each with rows or columns of c.
template <class T>
void blas(MatrixView a, MatrixView b, const MatrixView& c, T alpha, T beta) {
  if (beta == T(0) && a.row_stride == 0 && a.rows > 2) {  // rows that are one (expanded) are multiplied once
    blas<T>({a.data, 1, a.cols, a.cols, a.col_stride}, b, {c.data, 1, c.cols, c.cols, c.col_stride}, alpha, beta);
    repeat_first_row<T>(c);
    return;
  }
  if (beta == T(0) && b.col_stride == 0 && b.cols > 2) return blas<T>(turned(b), turned(a), turned(c), alpha, beta);
  double work = work_of(a, b);
  if constexpr (std::is_floating_point_v<T>)
    if (beta == T(0) && work >= single_rows_work) {
      if (may_be_single_rows<T>(a) && multiply_single_rows(a, b, c, alpha)) return;
      if (may_be_single_rows<T>(turned(b)) && multiply_single_rows(turned(b), turned(a), turned(c), alpha)) return;
    }
  std::unique_ptr<T[]> pa, pb;
  if (!readable(a)) pa = pack<T, T>(a);
  if (!readable(b)) pb = pack<T, T>(b);
  bool by_rows = a.rows >= b.cols;
  Pieces pieces(by_rows ? a.rows : b.cols, work);
  if (pieces.count == 1) {
    void* lock = work > unlock_work && !in_parallel() ? lock_release() : nullptr;
    one_product<T>(a, b, c, alpha, beta);
    if (lock) lock_acquire(lock);
    return;
  }
  parallel_for(pieces.count, 1, [&](std::int64_t first, std::int64_t last) {
    for (; first < last; ++first) {
      std::int64_t begin = pieces.begin(first), n = pieces.begin(first + 1) - begin;
      if (by_rows)
        one_product<T>(part<T>(a, begin, n, 0, a.cols), b, part<T>(c, begin, n, 0, c.cols), alpha, beta);
      else
        one_product<T>(a, part<T>(b, 0, b.rows, begin, n), part<T>(c, 0, c.rows, begin, n), alpha, beta);
    }
  });
}

template <class T>
void through_float(MatrixView a, MatrixView b, const MatrixView& c, float alpha, float beta) {
  auto pa = pack<float, T>(a), pb = pack<float, T>(b);
  MatrixView wide = c;
  auto sums = pack<float, T>(wide);
  blas<float>(a, b, wide, alpha, beta);
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.cols; ++j)
      static_cast<T*>(c.data)[i * c.row_stride + j * c.col_stride] = T(sums[std::size_t(i * c.cols + j)]);
}

/// Integers, which wrap around, and products over no elements.
template <class T>
void loops(const MatrixView& a, const MatrixView& b, const MatrixView& c, T alpha, T beta) {
  auto *x = static_cast<const T*>(a.data), *y = static_cast<const T*>(b.data);
  auto* z = static_cast<T*>(c.data);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < b.cols; ++j) {
      T& out = z[i * c.row_stride + j * c.col_stride];
      out = beta == T(0) ? T(0) : T(out * beta);
    }
    for (std::int64_t k = 0; k < a.cols; ++k) {
      T factor = T(alpha * x[i * a.row_stride + k * a.col_stride]);
      for (std::int64_t j = 0; j < b.cols; ++j) {
        T& out = z[i * c.row_stride + j * c.col_stride];
        out = T(out + factor * y[k * b.row_stride + j * b.col_stride]);
      }
    }
  }
}

void check_extents(const MatrixView& a, const MatrixView& b) {
  constexpr std::int64_t most = 0x7fffffff;
  check(a.rows <= most && a.cols <= most && b.cols <= most,
        "matrices beyond 2^31 rows or columns are not supported by the matrix product");
}

}  // namespace

bool blas_layout(std::int64_t rows, std::int64_t cols, std::int64_t rs, std::int64_t cs) {
  return ((cs == 1 || cols == 1) && (rs >= std::max<std::int64_t>(cols, 1) || rows == 1)) ||
         ((rs == 1 || rows == 1) && (cs >= std::max<std::int64_t>(rows, 1) || cols == 1));
}

void gemm(DType dtype, const MatrixView& a, const MatrixView& b, const MatrixView& c, const Scalar& alpha,
          const Scalar& beta) {
  if (c.rows == 0 || c.cols == 0) return;
  check_extents(a, b);
  visit_dtype(dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T>)
      loops<T>(a, b, c, alpha.to<T>(), beta.to<T>());
    else if (a.cols == 0)
      loops<T>(a, b, c, alpha.to<T>(), beta.to<T>());
    else if constexpr (sizeof(T) == 2)
      through_float<T>(a, b, c, alpha.to<float>(), beta.to<float>());
    else
      blas<T>(a, b, c, alpha.to<T>(), beta.to<T>());
  });
}

namespace {

/// The matrices of a batch below each other, where their rows are evenly spaced.
bool stack_rows(MatrixView& m, std::int64_t count, std::int64_t step) {
  if (m.rows != 1 && step != m.rows * m.row_stride) return false;
  if (m.rows == 1) m.row_stride = step;
  m.rows *= count;
  return true;
}

/// A batch whose products share a factor, as one product: of all rows with the one b, or of the one a with all columns.
bool join_batch(std::int64_t count, MatrixView& a, MatrixView& b, MatrixView& c, const std::int64_t (&steps)[3]) {
  if (steps[1] == 0) return stack_rows(a, count, steps[0]) && stack_rows(c, count, steps[2]);
  if (steps[0] != 0) return false;
  MatrixView columns = turned(b), results = turned(c);
  if (!stack_rows(columns, count, steps[1]) || !stack_rows(results, count, steps[2])) return false;
  b = turned(columns), c = turned(results);
  return true;
}

/// Matrices so small that a call for each would cost more than its arithmetic: an element of many results at a time.
bool is_tiny(const MatrixView& a, const MatrixView& b) { return a.rows * a.cols * b.cols <= 64 && a.cols > 0; }

template <class T>
void tiny_products(std::int64_t begin, std::int64_t end, const MatrixView& a, const MatrixView& b, const MatrixView& c,
                   const std::int64_t (&steps)[3], T alpha, T beta) {
  constexpr std::int64_t some = 64;
  auto *x = static_cast<const T*>(a.data), *y = static_cast<const T*>(b.data);
  auto* z = static_cast<T*>(c.data);
  for (std::int64_t at = begin; at < end; at += some) {
    std::int64_t n = std::min(some, end - at);
    for (std::int64_t i = 0; i < a.rows; ++i)
      for (std::int64_t j = 0; j < b.cols; ++j) {
        T sums[some] = {};
        for (std::int64_t k = 0; k < a.cols; ++k) {
          const T* left = x + at * steps[0] + i * a.row_stride + k * a.col_stride;
          const T* right = y + at * steps[1] + k * b.row_stride + j * b.col_stride;
          for (std::int64_t m = 0; m < n; ++m) sums[m] += left[m * steps[0]] * right[m * steps[1]];
        }
        T* out = z + at * steps[2] + i * c.row_stride + j * c.col_stride;
        for (std::int64_t m = 0; m < n; ++m) {
          T& to = out[m * steps[2]];
          to = beta == T(0) ? alpha * sums[m] : alpha * sums[m] + beta * to;
        }
      }
  }
}

}  // namespace

void gemm_batch(DType dtype, std::int64_t count, const MatrixView& a, const MatrixView& b, const MatrixView& c,
                const std::int64_t (&steps)[3], const Scalar& alpha, const Scalar& beta) {
  check_extents(a, b);
  MatrixView all_a = a, all_b = b, all_c = c;
  if (count > 1 && join_batch(count, all_a, all_b, all_c, steps)) return gemm(dtype, all_a, all_b, all_c, alpha, beta);
  if (count >= 8 && is_tiny(a, b) && (dtype == DType::Float32 || dtype == DType::Float64)) {
    std::int64_t grain = std::max<std::int64_t>(64, std::int64_t(thread_work / std::max(work_of(a, b), 1.0)));
    return visit_wide(dtype, "bmm", [&]<class T>() {
      parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
        tiny_products<T>(begin, end, a, b, c, steps, alpha.to<T>(), beta.to<T>());
      });
    });
  }
  auto at = [&](const MatrixView& m, std::int64_t i, int which) {
    return MatrixView{static_cast<std::byte*>(m.data) + i * steps[which] * item_size(dtype), m.rows, m.cols,
                      m.row_stride, m.col_stride};
  };
  auto run = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) gemm(dtype, at(a, i, 0), at(b, i, 1), at(c, i, 2), alpha, beta);
  };
  double work = work_of(a, b);
  if (count >= num_threads())
    parallel_for(count, std::max<std::int64_t>(1, std::int64_t(thread_work / std::max(work, 1.0))), run);
  else
    run(0, count);
}

const char* blas_config() { return scipy_openblas_get_config(); }

}  // namespace rushlight
