// Statistics of channels that are columns: data without space, or with its channels last.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/normalization.h"
#include "kernels/parallel.h"

namespace rushlight {
namespace {

/// Rows in blocks whose sums are taken in T, and blocks in tasks whose totals are joined in double: by sizes alone.
struct Tasks {
  std::int64_t rows, n, block, count;
  Tasks(std::int64_t rows, std::int64_t n)
      : rows(rows),
        n(n),
        block(std::clamp<std::int64_t>(8192 / std::max<std::int64_t>(n, 1), 16, 64)),
        count(std::clamp<std::int64_t>(rows / (4 * block), 1, 32)) {}

  std::int64_t first(std::int64_t task) const {
    return std::min(rows, (rows * task / count + block - 1) / block * block);
  }
  /// Calls f(task, first row, rows) for each block.
  template <class F>
  void each(bool keep_lock, F&& f) const {
    std::int64_t work = std::max<std::int64_t>(1, rows * n / count);
    parallel_for(
        count, std::max<std::int64_t>(1, (1 << 14) / work),
        [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t task = begin; task < end; ++task) {
            std::int64_t last = task + 1 == count ? rows : first(task + 1);
            for (std::int64_t r = first(task); r < last; r += block) f(task, r, std::min(block, last - r));
          }
        },
        keep_lock);
  }
};

std::size_t size_of(std::int64_t n) { return static_cast<std::size_t>(n); }

}  // namespace

template <class T>
void column_statistics(const NormChannels<T>& c, double eps, T* variance) {
  auto& f = norm_loops<T>();
  std::int64_t n = c.channels;
  Tasks tasks(c.samples, n);
  std::vector<double> moments(size_of(2 * n * tasks.count));
  std::vector<T> work(size_of(2 * n * tasks.count));
  tasks.each(c.keep_lock, [&](std::int64_t task, std::int64_t row, std::int64_t rows) {
    double* mean = moments.data() + 2 * n * task;
    f.columns_join(c.x + row * n, rows, n, row - tasks.first(task), work.data() + 2 * n * task, mean, mean + n);
  });
  double *mean = moments.data(), *squares = mean + n;
  for (std::int64_t task = 1; task < tasks.count; ++task) {
    std::int64_t begin = tasks.first(task), end = task + 1 == tasks.count ? c.samples : tasks.first(task + 1);
    if (begin == end) continue;
    const double* other = moments.data() + 2 * n * task;
    double part = double(end - begin) / double(end), cross = double(begin) * part;
    for (std::int64_t k = 0; k < n; ++k) {
      double shift = other[k] - mean[k];
      mean[k] += shift * part;
      squares[k] += other[n + k] + shift * shift * cross;
    }
  }
  for (std::int64_t k = 0; k < n; ++k) {
    double v = squares[k] / double(c.samples);
    c.mean[k] = T(mean[k]);
    c.rstd[k] = T(1 / std::sqrt(v + eps));
    if (variance) variance[k] = T(v);
  }
}

template <class T>
void normalize_columns(const NormChannels<T>& c, T* y) {
  auto& f = norm_loops<T>();
  std::int64_t n = c.channels;
  std::vector<T> factors(size_of(2 * n));
  T *scale = factors.data(), *shift = scale + n;
  for (std::int64_t k = 0; k < n; ++k) {
    scale[k] = c.weight ? c.rstd[k] * c.weight[k] : c.rstd[k];
    shift[k] = c.bias ? c.bias[k] : T(0);
  }
  Tasks(c.samples, n).each(c.keep_lock, [&](std::int64_t, std::int64_t row, std::int64_t rows) {
    f.columns_affine(c.x + row * n, rows, n, c.mean, scale, shift, y + row * n);
  });
}

template <class T>
void normalize_columns_vjp(const NormChannels<T>& c, bool constant, const T* g, T* dx, T* dw, T* db) {
  auto& f = norm_loops<T>();
  std::int64_t n = c.channels;
  Tasks tasks(c.samples, n);
  std::vector<double> totals(size_of(2 * n * tasks.count));  // of each task: g, then g (x - mean)
  std::vector<T> work(size_of(2 * n * tasks.count));
  tasks.each(c.keep_lock, [&](std::int64_t task, std::int64_t row, std::int64_t rows) {
    T* part = work.data() + 2 * n * task;
    double* total = totals.data() + 2 * n * task;
    std::fill(part, part + 2 * n, T(0));
    f.columns_sums(g + row * n, c.x + row * n, rows, n, c.mean, part, part + n);
    for (std::int64_t k = 0; k < 2 * n; ++k) total[k] += double(part[k]);
  });
  for (std::int64_t task = 1; task < tasks.count; ++task)
    for (std::int64_t k = 0; k < 2 * n; ++k) totals[size_of(k)] += totals[size_of(2 * n * task + k)];
  std::vector<T> factors(size_of(3 * n));
  T *a = factors.data(), *b = a + n, *shift = b + n;
  for (std::int64_t k = 0; k < n; ++k) {
    double plain = totals[size_of(k)], product = totals[size_of(n + k)], rstd = double(c.rstd[k]);
    double scale = rstd * (c.weight ? double(c.weight[k]) : 1.0);
    a[k] = T(scale);
    b[k] = constant ? T(0) : T(-scale * rstd * rstd * product / double(c.samples));
    shift[k] = constant ? T(0) : T(-scale * plain / double(c.samples));
    if (dw) dw[k] = T(product * rstd);
    if (db) db[k] = T(plain);
  }
  if (!dx) return;
  tasks.each(c.keep_lock, [&](std::int64_t, std::int64_t row, std::int64_t rows) {
    f.columns_combine(g + row * n, c.x + row * n, rows, n, c.mean, a, b, shift, dx + row * n);
  });
}

template <class T>
void sum_columns(const T* x, std::int64_t rows, std::int64_t n, bool keep_lock, T* total) {
  auto& f = norm_loops<T>();
  Tasks tasks(rows, n);
  std::vector<double> totals(size_of(n * tasks.count));
  std::vector<T> work(size_of(n * tasks.count));
  tasks.each(keep_lock, [&](std::int64_t task, std::int64_t row, std::int64_t count) {
    T* part = work.data() + n * task;
    std::fill(part, part + n, T(0));
    f.columns_add(x + row * n, count, n, part);
    for (std::int64_t k = 0; k < n; ++k) totals[size_of(n * task + k)] += double(part[k]);
  });
  for (std::int64_t k = 0; k < n; ++k) {
    double sum = 0;
    for (std::int64_t task = 0; task < tasks.count; ++task) sum += totals[size_of(n * task + k)];
    total[k] = T(sum);
  }
}

#define RUSHLIGHT_INSTANTIATE(T)                                                           \
  template void column_statistics(const NormChannels<T>&, double, T*);                     \
  template void normalize_columns(const NormChannels<T>&, T*);                             \
  template void normalize_columns_vjp(const NormChannels<T>&, bool, const T*, T*, T*, T*); \
  template void sum_columns(const T*, std::int64_t, std::int64_t, bool, T*);
RUSHLIGHT_INSTANTIATE(float)
RUSHLIGHT_INSTANTIATE(double)
#undef RUSHLIGHT_INSTANTIATE

}  // namespace rushlight
