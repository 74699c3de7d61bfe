// Lines and strips of softmax, compiled once per instruction set.
#include <cmath>

#include "kernels/exponential.h"
#include "kernels/lane.h"
#include "kernels/softmax.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

template <class T>
T larger(T a, T b) {
  return a > b ? a : b;
}

template <class T>
T line_max(const T* x, std::int64_t n) {
  return in_lanes<T>(n, -std::numeric_limits<T>::infinity(), [=](std::int64_t i) { return x[i]; }, larger<T>);
}
template <class T>
T line_exp_sum(const T* x, std::int64_t n, T largest) {
  return in_lanes<T>(
      n, T(0), [=](std::int64_t i) { return exponential(x[i] - largest); }, [](T a, T b) { return a + b; });
}

template <class T>
void forward_line(SoftmaxKind kind, const T* x, T* y, std::int64_t n) {
  T largest = line_max(x, n);
  if (kind == SoftmaxKind::Softmax) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) y[i] = exponential(x[i] - largest);
    T total = in_lanes<T>(n, T(0), [=](std::int64_t i) { return y[i]; }, [](T a, T b) { return a + b; });
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) y[i] = y[i] / total;
  } else {
    T log_total = std::log(line_exp_sum(x, n, largest));
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - largest) - log_total;
  }
}

template <class T>
void vjp_line(SoftmaxKind kind, const T* y, const T* g, T* dx, std::int64_t n) {
  auto plus = [](T a, T b) { return a + b; };
  if (kind == SoftmaxKind::Softmax) {
    T total = in_lanes<T>(n, T(0), [=](std::int64_t i) { return g[i] * y[i]; }, plus);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) dx[i] = y[i] * (g[i] - total);
  } else {
    T total = in_lanes<T>(n, T(0), [=](std::int64_t i) { return g[i]; }, plus);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) dx[i] = g[i] - exponential(y[i]) * total;
  }
}

/// A strip: `width` lines side by side, element i of line j at [i * inner + j].
template <class T, class F>
void over_strip(std::int64_t n, std::int64_t inner, std::int64_t width, F&& f) {
  for (std::int64_t i = 0; i < n; ++i) {
#pragma GCC ivdep
    for (std::int64_t j = 0; j < width; ++j) f(i * inner + j, j);
  }
}

template <class T>
void strip_max(const T* x, T* largest, std::int64_t n, std::int64_t inner, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) largest[j] = -std::numeric_limits<T>::infinity();
  over_strip<T>(n, inner, width, [=](std::int64_t at, std::int64_t j) { largest[j] = larger(largest[j], x[at]); });
}

template <class T>
void forward_strip(SoftmaxKind kind, const T* x, T* y, std::int64_t n, std::int64_t inner, std::int64_t width) {
  T largest[softmax_strip], total[softmax_strip] = {};
  T *m = largest, *s = total;
  strip_max(x, m, n, inner, width);
  if (kind == SoftmaxKind::Softmax) {
    over_strip<T>(n, inner, width, [=](std::int64_t at, std::int64_t j) {
      T e = exponential(x[at] - m[j]);
      y[at] = e;
      s[j] += e;
    });
    over_strip<T>(n, inner, width, [=](std::int64_t at, std::int64_t j) { y[at] = y[at] / s[j]; });
  } else {
    over_strip<T>(n, inner, width, [=](std::int64_t at, std::int64_t j) { s[j] += exponential(x[at] - m[j]); });
    for (std::int64_t j = 0; j < width; ++j) s[j] = std::log(s[j]);
    over_strip<T>(n, inner, width, [=](std::int64_t at, std::int64_t j) { y[at] = (x[at] - m[j]) - s[j]; });
  }
}

template <class T>
void vjp_strip(SoftmaxKind kind, const T* y, const T* g, T* dx, std::int64_t n, std::int64_t inner,
               std::int64_t width) {
  T total[softmax_strip] = {};
  T* s = total;
  if (kind == SoftmaxKind::Softmax) {
    over_strip<T>(n, inner, width, [=](std::int64_t at, std::int64_t j) { s[j] += g[at] * y[at]; });
    over_strip<T>(n, inner, width, [=](std::int64_t at, std::int64_t j) { dx[at] = y[at] * (g[at] - s[j]); });
  } else {
    over_strip<T>(n, inner, width, [=](std::int64_t at, std::int64_t j) { s[j] += g[at]; });
    over_strip<T>(n, inner, width,
                  [=](std::int64_t at, std::int64_t j) { dx[at] = g[at] - exponential(y[at]) * s[j]; });
  }
}

template <class T>
void normalise_strip(const T* x, T* largest, T* log_sum, bool finite, std::int64_t n, std::int64_t inner,
                     std::int64_t width) {
  T total[softmax_strip] = {};
  T* s = total;
  strip_max(x, largest, n, inner, width);
  for (std::int64_t j = 0; j < width && finite; ++j)
    if (std::isinf(largest[j])) largest[j] = 0;
  over_strip<T>(n, inner, width, [=](std::int64_t at, std::int64_t j) { s[j] += exponential(x[at] - largest[j]); });
  for (std::int64_t j = 0; j < width; ++j) log_sum[j] = std::log(s[j]);
}

template <class T>
void normalise_line(const T* x, T* largest, T* log_sum, bool finite, std::int64_t n) {
  *largest = line_max(x, n);
  if (finite && std::isinf(*largest)) *largest = 0;
  *log_sum = std::log(line_exp_sum(x, n, *largest));
}

template <class T>
void cross_entropy_line(const T* x, T largest, T log_sum, T a, T d, const T* weight, T* dx, std::int64_t n) {
  if (a == 0 && d == 0) {
    for (std::int64_t i = 0; i < n; ++i) dx[i] = 0;
  } else if (d == 0) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) dx[i] = a * exponential((x[i] - largest) - log_sum);
  } else if (!weight) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) dx[i] = a * exponential((x[i] - largest) - log_sum) - d;
  } else {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) dx[i] = a * exponential((x[i] - largest) - log_sum) - d * weight[i];
  }
}

template <class T>
void cross_entropy_strip(const T* x, const T* largest, const T* log_sum, const T* a, const T* d, const T* weight, T* dx,
                         std::int64_t n, std::int64_t inner, std::int64_t width) {
  for (std::int64_t i = 0; i < n; ++i) {
    T w = weight ? weight[i] : T(1);
    const T* row = x + i * inner;
    T* to = dx + i * inner;
#pragma GCC ivdep
    for (std::int64_t j = 0; j < width; ++j) {
      T value = a[j] * exponential((row[j] - largest[j]) - log_sum[j]) - d[j] * w;
      to[j] = a[j] == 0 && d[j] == 0 ? T(0) : value;
    }
  }
}

template <class F>
void visit(DType dtype, F&& f) {
  if (dtype == DType::Float32)
    f.template operator()<float>();
  else
    f.template operator()<double>();
}

template <class T>
const T* as(const char* p) {
  return reinterpret_cast<const T*>(p);
}
template <class T>
T* as(char* p) {
  return reinterpret_cast<T*>(p);
}

void forward(SoftmaxKind kind, DType dtype, const char* x, char* y, std::int64_t n, std::int64_t inner,
             std::int64_t width) {
  visit(dtype, [&]<class T>() {
    if (inner == 1)
      forward_line(kind, as<T>(x), as<T>(y), n);
    else
      forward_strip(kind, as<T>(x), as<T>(y), n, inner, width);
  });
}

void vjp(SoftmaxKind kind, DType dtype, const char* y, const char* g, char* dx, std::int64_t n, std::int64_t inner,
         std::int64_t width) {
  visit(dtype, [&]<class T>() {
    if (inner == 1)
      vjp_line(kind, as<T>(y), as<T>(g), as<T>(dx), n);
    else
      vjp_strip(kind, as<T>(y), as<T>(g), as<T>(dx), n, inner, width);
  });
}

void normalisers(DType dtype, const char* x, char* largest, char* log_sum, bool finite, std::int64_t n,
                 std::int64_t inner, std::int64_t width) {
  visit(dtype, [&]<class T>() {
    if (inner == 1)
      normalise_line(as<T>(x), as<T>(largest), as<T>(log_sum), finite, n);
    else
      normalise_strip(as<T>(x), as<T>(largest), as<T>(log_sum), finite, n, inner, width);
  });
}

void cross_entropy_vjp(DType dtype, const CrossEntropyVjp& v, std::int64_t at, std::int64_t line, std::int64_t n,
                       std::int64_t inner, std::int64_t width) {
  visit(dtype, [&]<class T>() {
    auto *x = static_cast<const T*>(v.x) + at, *largest = static_cast<const T*>(v.largest) + line,
         *log_sum = static_cast<const T*>(v.log_sum) + line;
    auto *a = static_cast<const T*>(v.a) + line, *d = static_cast<const T*>(v.d) + line,
         *weight = static_cast<const T*>(v.weight);
    T* dx = static_cast<T*>(v.dx) + at;
    if (inner == 1)
      cross_entropy_line(x, *largest, *log_sum, *a, *d, weight, dx, n);
    else
      cross_entropy_strip(x, largest, log_sum, a, d, weight, dx, n, inner, width);
  });
}

}  // namespace

SoftmaxBuild softmax_build() { return {&forward, &vjp, &normalisers, &cross_entropy_vjp}; }

}  // namespace rushlight::RUSHLIGHT_ISA
