// The innermost loops of reductions, compiled once per instruction set.
#include <complex>
#include <cstdint>

#include "kernels/reduction.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

constexpr int lanes = 32;

template <class T>
T sum_of(const char* from, std::int64_t n, std::int64_t step) {
  T acc[lanes] = {};
  std::int64_t i = 0;
  if (step == std::int64_t(sizeof(T))) {
    auto* x = reinterpret_cast<const T*>(from);
    for (; i + lanes <= n; i += lanes)
      for (int l = 0; l < lanes; ++l) acc[l] = T(acc[l] + x[i + l]);
    for (int l = 0; i < n; ++i, ++l) acc[l] = T(acc[l] + x[i]);
  } else {
    for (; i < n; ++i) acc[i % 4] = T(acc[i % 4] + *reinterpret_cast<const T*>(from + i * step));
  }
  for (int width = lanes / 2; width; width /= 2)
    for (int l = 0; l < width; ++l) acc[l] = T(acc[l] + acc[l + width]);
  return acc[0];
}

void sum_line(DType dtype, const char* from, std::int64_t n, std::int64_t step, char* out) {
  visit_dtype(dtype, [&]<class T>() { *reinterpret_cast<T*>(out) = sum_of<T>(from, n, step); });
}

void add_line(DType dtype, char* acc_, const char* from, std::int64_t n, std::int64_t step) {
  visit_dtype(dtype, [&]<class T>() {
    auto* acc = reinterpret_cast<T*>(acc_);
    if (step == std::int64_t(sizeof(T))) {
      auto* x = reinterpret_cast<const T*>(from);
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) acc[i] = T(acc[i] + x[i]);
    } else {
      for (std::int64_t i = 0; i < n; ++i) acc[i] = T(acc[i] + *reinterpret_cast<const T*>(from + i * step));
    }
  });
}

}  // namespace

ReductionBuild reduction_build() { return {&sum_line, &add_line}; }

}  // namespace rushlight::RUSHLIGHT_ISA
