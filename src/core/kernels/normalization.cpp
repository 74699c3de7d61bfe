#include "kernels/normalization.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "kernels/cpu.h"
#include "kernels/parallel.h"

namespace rushlight {

#define RUSHLIGHT_DECLARE(isa)                   \
  namespace isa {                                \
  void norm_loops(const NormLoops<float>*& to);  \
  void norm_loops(const NormLoops<double>*& to); \
  }
RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE)
#undef RUSHLIGHT_DECLARE

template <class T>
const NormLoops<T>& norm_loops() {
  static const NormLoops<T>* chosen = [] {
    const NormLoops<T>* to;
    RUSHLIGHT_BEST(norm_loops(to));
    return to;
  }();
  return *chosen;
}

namespace {

/// Pieces of n numbers that make a part worth a thread.
std::int64_t grain(std::int64_t n) { return std::max<std::int64_t>(1, (1 << 14) / std::max<std::int64_t>(n, 1)); }

/// Rows whose contributions to the weights' gradients are added up together.
std::int64_t rows_together(std::int64_t rows) { return std::max<std::int64_t>(16, (rows + 31) / 32); }

}  // namespace

template <class T>
void normalize_rows(const NormRows<T>& r, double eps, T* y) {
  auto& f = norm_loops<T>();
  parallel_for(r.rows, grain(r.n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* x = r.x + i * r.n;
      T mean = r.mean ? T(f.sum(x, r.n) / double(r.n)) : T(0);
      T rstd = T(1 / std::sqrt(f.deviation(x, r.n, mean) / double(r.n) + eps));
      f.row(x, r.n, mean, rstd, r.weight, r.bias, y + i * r.n);
      if (r.mean) r.mean[i] = mean;
      r.rstd[i] = rstd;
    }
  });
}

template <class T>
void normalize_rows_vjp(const NormRows<T>& r, const T* g, T* dx, T* dw, T* db) {
  auto& f = norm_loops<T>();
  std::int64_t together = rows_together(r.rows), blocks = (r.rows + together - 1) / together, n = r.n;
  bool weights = dw || db;
  std::vector<T> partial(weights ? std::size_t(2 * blocks * n) : 0);
  parallel_for(blocks, grain(n * together), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      T* w = weights ? partial.data() + 2 * b * n : nullptr;
      for (std::int64_t i = b * together; i < std::min(r.rows, (b + 1) * together); ++i) {
        const T *x = r.x + i * n, *gi = g + i * n;
        T mean = r.mean ? r.mean[i] : T(0), rstd = r.rstd[i];
        if (dx) {
          double total[2], scale = double(rstd) / double(n);
          f.row_sums(gi, x, r.weight, n, mean, total);
          f.row_vjp(gi, x, r.weight, n, mean, rstd, T(-scale * double(rstd) * double(rstd) * total[1]),
                    r.mean ? T(-scale * total[0]) : T(0), dx + i * n);
        }
        if (weights) f.row_weights(gi, x, n, mean, rstd, dw ? w : nullptr, db ? w + n : nullptr);
      }
    }
  });
  for (int which = 0; which < 2; ++which)
    if (T* to = which ? db : dw) {
      std::fill(to, to + n, T(0));
      for (std::int64_t b = 0; b < blocks; ++b) f.columns_add(partial.data() + (2 * b + which) * n, 1, n, to);
    }
}

template <class T>
void channel_statistics(const NormChannels<T>& c, double eps, T* variance) {
  if (c.are_columns()) return column_statistics(c, eps, variance);
  auto& f = norm_loops<T>();
  // one statistic covers `pieces` runs of `n` numbers, `step` apart
  bool grouped = c.groups > 0;
  std::int64_t count = grouped ? c.samples * c.groups : c.channels, pieces = grouped ? 1 : c.samples;
  std::int64_t n = grouped ? c.channels / c.groups * c.space : c.space, step = c.channels * c.space;
  parallel_for(count, grain(pieces * n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      const T* x = c.x + k * n;
      double total = 0, v = 0, size = double(pieces * n);
      for (std::int64_t i = 0; i < pieces; ++i) total += f.sum(x + i * step, n);
      T mean = T(total / size);
      for (std::int64_t i = 0; i < pieces; ++i) v += f.deviation(x + i * step, n, mean);
      c.mean[k] = mean;
      c.rstd[k] = T(1 / std::sqrt(v / size + eps));
      if (variance) variance[k] = T(v / size);
    }
  });
}

template <class T>
void normalize_channels(const NormChannels<T>& c, T* y) {
  auto& f = norm_loops<T>();
  auto scale = [&](std::int64_t channel, std::int64_t k) {
    return c.weight ? c.rstd[k] * c.weight[channel] : c.rstd[k];
  };
  auto shift = [&](std::int64_t channel) { return c.bias ? c.bias[channel] : T(0); };
  if (c.are_columns()) return normalize_columns(c, y);
  std::int64_t in_group = c.groups ? c.channels / c.groups : 1;
  parallel_for(c.samples * c.channels, grain(c.space), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t channel = i % c.channels, k = c.groups ? i / in_group : channel;
      f.affine(c.x + i * c.space, c.space, c.mean[k], scale(channel, k), shift(channel), y + i * c.space);
    }
  });
}

template <class T>
void normalize_channels_vjp(const NormChannels<T>& c, bool constant, const T* g, T* dx, T* dw, T* db) {
  if (c.are_columns()) return normalize_columns_vjp(c, constant, g, dx, dw, db);
  auto& f = norm_loops<T>();
  std::int64_t pieces = c.samples * c.channels, in_group = c.groups ? c.channels / c.groups : 1;
  auto statistic = [&](std::int64_t piece) { return c.groups ? piece / in_group : piece % c.channels; };
  auto totals = std::make_unique<double[]>(std::size_t(2 * pieces));  // of each sample's channel: g, g (x - mean)
  parallel_for(pieces, grain(c.space), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      f.sums(g + i * c.space, c.x + i * c.space, c.space, c.mean[statistic(i)], &totals[std::size_t(2 * i)]);
  });
  std::int64_t count = c.groups ? c.samples * c.groups : c.channels;
  std::vector<double> along(static_cast<std::size_t>(2 * count));  // of each statistic, weighted
  std::vector<double> weights(static_cast<std::size_t>(2 * c.channels));
  for (std::int64_t i = 0; i < pieces; ++i) {
    std::int64_t channel = i % c.channels, k = statistic(i);
    double w = c.weight ? double(c.weight[channel]) : 1.0;
    for (int j = 0; j < 2; ++j) along[std::size_t(2 * k + j)] += w * totals[std::size_t(2 * i + j)];
    weights[std::size_t(2 * channel)] += totals[std::size_t(2 * i)];
    weights[std::size_t(2 * channel + 1)] += totals[std::size_t(2 * i + 1)] * double(c.rstd[k]);
  }
  for (std::int64_t k = 0; k < c.channels; ++k) {
    if (db) db[k] = T(weights[std::size_t(2 * k)]);
    if (dw) dw[k] = T(weights[std::size_t(2 * k + 1)]);
  }
  if (!dx) return;
  double size = double(pieces) / double(count) * double(c.space);
  parallel_for(pieces, grain(c.space), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t channel = i % c.channels, k = statistic(i);
      double rstd = double(c.rstd[k]), w = c.weight ? double(c.weight[channel]) : 1.0;
      T b = constant ? T(0) : T(-rstd * rstd * rstd * along[std::size_t(2 * k + 1)] / size),
        shift = constant ? T(0) : T(-rstd * along[std::size_t(2 * k)] / size);
      f.combine(g + i * c.space, c.x + i * c.space, c.space, c.mean[k], T(rstd * w), b, shift, dx + i * c.space);
    }
  });
}

#define RUSHLIGHT_INSTANTIATE(T)                                              \
  template const NormLoops<T>& norm_loops();                                  \
  template void normalize_rows(const NormRows<T>&, double, T*);               \
  template void normalize_rows_vjp(const NormRows<T>&, const T*, T*, T*, T*); \
  template void channel_statistics(const NormChannels<T>&, double, T*);       \
  template void normalize_channels(const NormChannels<T>&, T*);               \
  template void normalize_channels_vjp(const NormChannels<T>&, bool, const T*, T*, T*, T*);
RUSHLIGHT_INSTANTIATE(float)
RUSHLIGHT_INSTANTIATE(double)
#undef RUSHLIGHT_INSTANTIATE

}  // namespace rushlight
