#include "kernels/pool.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "kernels/parallel.h"

namespace rushlight {
namespace {

template <class F>
void for_planes(const Windows& w, std::int64_t planes, F&& f) {
  parallel_for(planes, std::max<std::int64_t>(1, (1 << 14) / std::max<std::int64_t>(w.in_space() + w.out_space(), 1)),
               [&](std::int64_t begin, std::int64_t end) { f(begin, end); });
}

/// Calls f(output line, window of z, window of y) for each line of outputs.
template <class F>
void for_lines(const Windows& w, F&& f) {
  for (std::int64_t z = 0; z < w.line[0].out(); ++z)
    for (std::int64_t y = 0; y < w.line[1].out(); ++y) f(z * w.line[1].out() + y, z, y);
}

/// Calls f(row) for each row (z, y as one number) of the plane that the windows z and y cover.
template <class F>
void for_rows(const Windows& w, std::int64_t z, std::int64_t y, F&& f) {
  const WindowLine &depth = w.line[0], &height = w.line[1];
  for (std::int64_t a = 0; a < depth.count[std::size_t(z)]; ++a)
    for (std::int64_t b = 0; b < height.count[std::size_t(y)]; ++b)
      f((depth.first[std::size_t(z)] + a * depth.step) * height.in + height.first[std::size_t(y)] + b * height.step);
}

template <class T>
bool is_nan(T v) {
  if constexpr (std::is_floating_point_v<T>) return v != v;
  return false;
}
template <class T>
T lowest() {
  if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::lowest();
}

/// One plane; `best` and `row` hold the largest element of each column and the row that it stands in.
template <class T>
void plane_max(const Windows& w, const T* x, T* values, std::int64_t* places, T* best, std::int32_t* row) {
  const WindowLine& across = w.line[2];
  std::int64_t width = across.in, n = across.out();
  for_lines(w, [&](std::int64_t line, std::int64_t z, std::int64_t y) {
    bool first = true;
    for_rows(w, z, y, [&](std::int64_t r) {
      const T* from = x + r * width;
      auto here = std::int32_t(r);
      if (first) {
        std::copy_n(from, width, best);
        std::fill_n(row, width, here);
        first = false;
        return;
      }
      for (std::int64_t i = 0; i < width; ++i) {
        T v = from[i];
        bool better = v > best[i] || is_nan(v);
        best[i] = better ? v : best[i];
        row[i] = better ? here : row[i];
      }
    });
    for (std::int64_t o = 0; o < n; ++o) {
      std::int64_t at = across.first[std::size_t(o)], count = first ? 0 : across.count[std::size_t(o)];
      T top = count ? best[at] : lowest<T>();
      std::int64_t place = count ? row[at] * width + at : at;
      for (std::int64_t k = 1; k < count; ++k) {
        std::int64_t i = at + k * across.step, candidate = row[i] * width + i;
        T v = best[i];
        bool better = v > top || (v == top && candidate < place) || (is_nan(v) && (!is_nan(top) || candidate > place));
        top = better ? v : top;
        place = better ? candidate : place;
      }
      values[line * n + o] = top;
      places[line * n + o] = place;
    }
  });
}

/// What the mean at (z, y, x) multiplies its sum by is the product of these and of the weight at x.
double line_weight(const Windows& w, std::int64_t z, std::int64_t y) {
  return w.scale * w.line[0].weight[std::size_t(z)] * w.line[1].weight[std::size_t(y)];
}

template <class T, class Sum>
void plane_mean(const Windows& w, const T* x, T* out, Sum* sums) {
  const WindowLine& across = w.line[2];
  std::int64_t width = across.in, n = across.out();
  for_lines(w, [&](std::int64_t line, std::int64_t z, std::int64_t y) {
    std::fill_n(sums, width, Sum(0));
    for_rows(w, z, y, [&](std::int64_t r) {
      for (std::int64_t i = 0; i < width; ++i) sums[i] += Sum(x[r * width + i]);
    });
    double weight = line_weight(w, z, y);
    for (std::int64_t o = 0; o < n; ++o) {
      Sum total = 0;
      std::int64_t at = across.first[std::size_t(o)], end = at + across.count[std::size_t(o)];
      for (; at < end; ++at) total += sums[at];
      out[line * n + o] = T(total * Sum(weight * across.weight[std::size_t(o)]));
    }
  });
}

template <class T>
void plane_mean_transpose(const Windows& w, const T* gy, T* gx, T* sums) {
  const WindowLine& across = w.line[2];
  std::int64_t width = across.in, n = across.out();
  std::fill_n(gx, w.in_space(), T(0));
  for_lines(w, [&](std::int64_t line, std::int64_t z, std::int64_t y) {
    std::fill_n(sums, width, T(0));
    double weight = line_weight(w, z, y);
    for (std::int64_t o = 0; o < n; ++o) {
      T part = gy[line * n + o] * T(weight * across.weight[std::size_t(o)]);
      std::int64_t at = across.first[std::size_t(o)], end = at + across.count[std::size_t(o)];
      for (; at < end; ++at) sums[at] += part;
    }
    for_rows(w, z, y, [&](std::int64_t r) {
      for (std::int64_t i = 0; i < width; ++i) gx[r * width + i] += sums[i];
    });
  });
}

}  // namespace

void window_max(DType dtype, const Windows& w, std::int64_t planes, const void* x, void* values, std::int64_t* places) {
  visit_real(dtype, "max_pool", [&]<class T>() {
    for_planes(w, planes, [&](std::int64_t begin, std::int64_t end) {
      std::vector<std::int32_t> row(std::size_t(w.line[2].in));
      auto best = std::make_unique<T[]>(std::size_t(w.line[2].in));
      for (std::int64_t i = begin; i < end; ++i)
        plane_max(w, static_cast<const T*>(x) + i * w.in_space(), static_cast<T*>(values) + i * w.out_space(),
                  places + i * w.out_space(), best.get(), row.data());
    });
  });
}

void window_mean(DType dtype, const Windows& w, std::int64_t planes, const void* x, void* y) {
  visit_real(dtype, "avg_pool", [&]<class T>() {
    using Sum = std::conditional_t<std::is_floating_point_v<T>, T, double>;
    for_planes(w, planes, [&](std::int64_t begin, std::int64_t end) {
      std::vector<Sum> sums(std::size_t(w.line[2].in));
      for (std::int64_t i = begin; i < end; ++i)
        plane_mean(w, static_cast<const T*>(x) + i * w.in_space(), static_cast<T*>(y) + i * w.out_space(), sums.data());
    });
  });
}

void window_mean_transpose(DType dtype, const Windows& w, std::int64_t planes, const void* gy, void* gx) {
  auto run = [&]<class T>() {
    for_planes(w, planes, [&](std::int64_t begin, std::int64_t end) {
      std::vector<T> sums(std::size_t(w.line[2].in));
      for (std::int64_t i = begin; i < end; ++i)
        plane_mean_transpose(w, static_cast<const T*>(gy) + i * w.out_space(), static_cast<T*>(gx) + i * w.in_space(),
                             sums.data());
    });
  };
  dtype == DType::Float32 ? run.operator()<float>() : run.operator()<double>();
}

}  // namespace rushlight
