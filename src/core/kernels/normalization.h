// Normalisation over memory: (x - mean) * rstd * weight + bias and its derivative, forward and backward each in two
// passes over a piece that fits the cache. Sums of long pieces are joined in double, block by block; who adds what
// depends on sizes alone.
#pragma once

#include <cstdint>

namespace rushlight {

/// The loops, built once per instruction set.
template <class T>
struct NormLoops {
  double (*sum)(const T* x, std::int64_t n);
  double (*deviation)(const T* x, std::int64_t n, T mean);                      ///< sum of (x - mean)^2
  void (*affine)(const T* x, std::int64_t n, T mean, T scale, T shift, T* y);   ///< y = (x - mean) * scale + shift
  void (*sums)(const T* g, const T* x, std::int64_t n, T mean, double* total);  ///< of g, and of g (x - mean)
  void (*combine)(const T* g, const T* x, std::int64_t n, T mean, T a, T b, T c,
                  T* out);  ///< out = a g + b (x - mean) + c
  // weights along the row: w and b may be null
  void (*row)(const T* x, std::int64_t n, T mean, T rstd, const T* w, const T* b, T* y);
  void (*row_sums)(const T* g, const T* x, const T* w, std::int64_t n, T mean,
                   double* total);  ///< of g w, and of g w (x - mean)
  void (*row_vjp)(const T* g, const T* x, const T* w, std::int64_t n, T mean, T a, T b, T c,
                  T* out);  ///< out = a g w + b (x - mean) + c
  void (*row_weights)(const T* g, const T* x, std::int64_t n, T mean, T rstd, T* dw,
                      T* db);  ///< dw += g (x - mean) rstd, db += g
  // `rows` rows of n columns
  void (*columns_add)(const T* x, std::int64_t rows, std::int64_t n, T* total);  ///< total += x
  /// Joins rows to mean and sum of (x - mean)^2 of `before` rows; `work`: 2 n numbers.
  void (*columns_join)(const T* x, std::int64_t rows, std::int64_t n, std::int64_t before, T* work, double* mean,
                       double* squares);
  void (*columns_affine)(const T* x, std::int64_t rows, std::int64_t n, const T* mean, const T* scale, const T* shift,
                         T* y);
  void (*columns_sums)(const T* g, const T* x, std::int64_t rows, std::int64_t n, const T* mean, T* plain,
                       T* product);  ///< plain += g, product += g (x - mean)
  void (*columns_combine)(const T* g, const T* x, std::int64_t rows, std::int64_t n, const T* mean, const T* a,
                          const T* b, const T* c, T* out);
};
template <class T>
const NormLoops<T>& norm_loops();

/// Rows of n numbers, each normalised by itself; mean is null where numbers are not centred (root mean square).
template <class T>
struct NormRows {
  std::int64_t rows, n;
  const T *x, *weight, *bias;  ///< weight and bias: n numbers each, or null
  T *mean, *rstd;              ///< one per row
};
template <class T>
void normalize_rows(const NormRows<T>& r, double eps, T* y);
/// Each of dx, dw and db may be null.
template <class T>
void normalize_rows_vjp(const NormRows<T>& r, const T* g, T* dx, T* dw, T* db);

/// (N, C, S) with statistics per channel over N and S (groups = 0), or per sample and group of channels.
template <class T>
struct NormChannels {
  std::int64_t samples, channels, space, groups;
  const T *x, *weight, *bias;  ///< weight and bias: one number per channel, or null
  T *mean, *rstd;              ///< one per channel, or per sample and group
  bool keep_lock = false;      ///< another thread must not find the work half done
  bool are_columns() const { return groups == 0 && space == 1; }
};
/// mean and rstd from x; `variance` (biased, one per statistic) where not null.
template <class T>
void channel_statistics(const NormChannels<T>& c, double eps, T* variance);
template <class T>
void normalize_channels(const NormChannels<T>& c, T* y);
/// `constant`: mean and rstd do not depend on x. Each of dx, dw and db may be null.
template <class T>
void normalize_channels_vjp(const NormChannels<T>& c, bool constant, const T* g, T* dx, T* dw, T* db);

// the same where channels are columns (normalization_columns.cpp)
template <class T>
void column_statistics(const NormChannels<T>& c, double eps, T* variance);
template <class T>
void normalize_columns(const NormChannels<T>& c, T* y);
template <class T>
void normalize_columns_vjp(const NormChannels<T>& c, bool constant, const T* g, T* dx, T* dw, T* db);
/// total = the sums of the columns of x.
template <class T>
void sum_columns(const T* x, std::int64_t rows, std::int64_t n, bool keep_lock, T* total);

}  // namespace rushlight
