// The loops of normalisation.
#include <algorithm>

#include "kernels/cpu.h"
#include "kernels/normalization.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

constexpr int lanes = 32;
constexpr std::int64_t block = 2048;  ///< terms that are added in T before they are added in double

template <class T>
double joined(T* acc) {
  for (int width = lanes / 2; width; width /= 2)
    for (int l = 0; l < width; ++l) acc[l] += acc[l + width];
  return double(acc[0]);
}

/// The sum of f(i), i < n.
template <class T, class F>
double blocked_sum(std::int64_t n, F f) {
  double total = 0;
  for (std::int64_t at = 0; at < n; at += block) {
    T acc[lanes] = {};
    std::int64_t end = std::min(n, at + block), i = at;
    for (; i + lanes <= end; i += lanes)
      for (int l = 0; l < lanes; ++l) acc[l] += f(i + l);
    for (int l = 0; i < end; ++i, ++l) acc[l] += f(i);
    total += joined(acc);
  }
  return total;
}

/// The sums of f(i) and of f(i) * h(i).
template <class T, class F, class H>
void blocked_sums(std::int64_t n, double* total, F f, H h) {
  total[0] = total[1] = 0;
  for (std::int64_t at = 0; at < n; at += block) {
    T first[lanes] = {}, second[lanes] = {};
    std::int64_t end = std::min(n, at + block), i = at;
    for (; i + lanes <= end; i += lanes)
      for (int l = 0; l < lanes; ++l) {
        T v = f(i + l);
        first[l] += v;
        second[l] += v * h(i + l);
      }
    for (int l = 0; i < end; ++i, ++l) {
      T v = f(i);
      first[l] += v;
      second[l] += v * h(i);
    }
    total[0] += joined(first);
    total[1] += joined(second);
  }
}

template <class T>
double sum(const T* x, std::int64_t n) {
  return blocked_sum<T>(n, [=](std::int64_t i) { return x[i]; });
}
template <class T>
double deviation(const T* x, std::int64_t n, T mean) {
  return blocked_sum<T>(n, [=](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); });
}
template <class T>
void affine(const T* x, std::int64_t n, T mean, T scale, T shift, T* __restrict y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale + shift;
}
template <class T>
void sums(const T* g, const T* x, std::int64_t n, T mean, double* total) {
  blocked_sums<T>(n, total, [=](std::int64_t i) { return g[i]; }, [=](std::int64_t i) { return x[i] - mean; });
}
template <class T>
void combine(const T* g, const T* x, std::int64_t n, T mean, T a, T b, T c, T* __restrict out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = a * g[i] + (b * (x[i] - mean) + c);
}

template <class T>
void row(const T* x, std::int64_t n, T mean, T rstd, const T* w, const T* b, T* __restrict y) {
  if (w && b)
    for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd * w[i] + b[i];
  else if (w)
    for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd * w[i];
  else if (b)
    for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd + b[i];
  else
    for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * rstd;
}
template <class T>
void row_sums(const T* g, const T* x, const T* w, std::int64_t n, T mean, double* total) {
  if (w)
    blocked_sums<T>(n, total, [=](std::int64_t i) { return g[i] * w[i]; }, [=](std::int64_t i) { return x[i] - mean; });
  else
    sums(g, x, n, mean, total);
}
template <class T>
void row_vjp(const T* g, const T* x, const T* w, std::int64_t n, T mean, T a, T b, T c, T* __restrict out) {
  if (w)
    for (std::int64_t i = 0; i < n; ++i) out[i] = a * (g[i] * w[i]) + (b * (x[i] - mean) + c);
  else
    combine(g, x, n, mean, a, b, c, out);
}
template <class T>
void row_weights(const T* g, const T* x, std::int64_t n, T mean, T rstd, T* __restrict dw, T* __restrict db) {
  if (dw && db)
    for (std::int64_t i = 0; i < n; ++i) {
      dw[i] += g[i] * ((x[i] - mean) * rstd);
      db[i] += g[i];
    }
  else if (dw)
    for (std::int64_t i = 0; i < n; ++i) dw[i] += g[i] * ((x[i] - mean) * rstd);
  else if (db)
    for (std::int64_t i = 0; i < n; ++i) db[i] += g[i];
}

/// total[column] += the sum of f(place, column) over rows.
template <class T, class F>
void fold_columns(std::int64_t rows, std::int64_t n, T* __restrict total, F f) {
  std::int64_t at = 0;
  for (; at + lanes <= n; at += lanes) {
    T acc[lanes] = {};
    for (std::int64_t r = 0; r < rows; ++r)
      for (int l = 0; l < lanes; ++l) acc[l] += f(r * n + at + l, at + l);
    for (int l = 0; l < lanes; ++l) total[at + l] += acc[l];
  }
  for (; at < n; ++at) {
    T acc = 0;
    for (std::int64_t r = 0; r < rows; ++r) acc += f(r * n + at, at);
    total[at] += acc;
  }
}

template <class T>
void columns_add(const T* x, std::int64_t rows, std::int64_t n, T* total) {
  fold_columns(rows, n, total, [=](std::int64_t i, std::int64_t) { return x[i]; });
}
template <class T>
void columns_join(const T* x, std::int64_t rows, std::int64_t n, std::int64_t before, T* work, double* mean,
                  double* squares) {
  T *centre = work, *deviation = work + n;
  std::fill(work, work + 2 * n, T(0));
  columns_add(x, rows, n, centre);
  for (std::int64_t k = 0; k < n; ++k) centre[k] /= T(rows);
  fold_columns(rows, n, deviation, [=](std::int64_t i, std::int64_t k) {
    T d = x[i] - centre[k];
    return d * d;
  });
  double part = double(rows) / double(before + rows), cross = double(before) * part;
  for (std::int64_t k = 0; k < n; ++k) {
    double shift = double(centre[k]) - mean[k];
    mean[k] += shift * part;
    squares[k] += double(deviation[k]) + shift * shift * cross;
  }
}
template <class T>
void columns_affine(const T* x, std::int64_t rows, std::int64_t n, const T* mean, const T* scale, const T* shift,
                    T* __restrict y) {
  for (std::int64_t r = 0; r < rows; ++r, x += n, y += n)
    for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean[i]) * scale[i] + shift[i];
}
template <class T>
void columns_sums(const T* g, const T* x, std::int64_t rows, std::int64_t n, const T* mean, T* plain, T* product) {
  fold_columns(rows, n, plain, [=](std::int64_t i, std::int64_t) { return g[i]; });
  fold_columns(rows, n, product, [=](std::int64_t i, std::int64_t k) { return g[i] * (x[i] - mean[k]); });
}
template <class T>
void columns_combine(const T* g, const T* x, std::int64_t rows, std::int64_t n, const T* mean, const T* a, const T* b,
                     const T* c, T* __restrict out) {
  for (std::int64_t r = 0; r < rows; ++r, g += n, x += n, out += n)
    for (std::int64_t i = 0; i < n; ++i) out[i] = a[i] * g[i] + (b[i] * (x[i] - mean[i]) + c[i]);
}

template <class T>
constexpr NormLoops<T> loops{sum<T>,          deviation<T>,      affine<T>,       sums<T>,           combine<T>,
                             row<T>,          row_sums<T>,       row_vjp<T>,      row_weights<T>,    columns_add<T>,
                             columns_join<T>, columns_affine<T>, columns_sums<T>, columns_combine<T>};

}  // namespace

void norm_loops(const NormLoops<float>*& to) { to = &loops<float>; }
void norm_loops(const NormLoops<double>*& to) { to = &loops<double>; }

}  // namespace rushlight::RUSHLIGHT_ISA
