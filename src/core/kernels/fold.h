// The loops that every fold shares; included by the sources that are compiled once per instruction set.
#pragma once

#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/reduction.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

constexpr int fold_lanes = 32;

/// A fold: `template <class T> struct Op`, with `State`, `identity()`, `map(x, centre)` and `join(a, b)`.
template <class Op, class T>
void fold_line(const char* from, std::int64_t n, std::int64_t step, const char* centre_, char* out) {
  using A = typename Op::State;
  A centre{}, acc[fold_lanes];
  if (centre_) std::memcpy(&centre, centre_, sizeof centre);
  for (auto& a : acc) a = Op::identity();
  std::int64_t i = 0;
  if (step == std::int64_t(sizeof(T))) {
    auto* x = reinterpret_cast<const T*>(from);
    for (; i + fold_lanes <= n; i += fold_lanes)
      for (int l = 0; l < fold_lanes; ++l) acc[l] = Op::join(acc[l], Op::map(x[i + l], centre));
    for (int l = 0; i < n; ++i, ++l) acc[l] = Op::join(acc[l], Op::map(x[i], centre));
  } else {
    for (; i < n; ++i) acc[i % 4] = Op::join(acc[i % 4], Op::map(*reinterpret_cast<const T*>(from + i * step), centre));
  }
  for (int width = fold_lanes / 2; width; width /= 2)
    for (int l = 0; l < width; ++l) acc[l] = Op::join(acc[l], acc[l + width]);
  std::memcpy(out, &acc[0], sizeof(A));
}

template <class Op, class T>
void fold_rows(char* states, const char* from, std::int64_t n, std::int64_t step, const char* centres) {
  using A = typename Op::State;
  auto* acc = reinterpret_cast<A*>(states);
  auto* centre = reinterpret_cast<const A*>(centres);
  if (centre) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i)
      acc[i] = Op::join(acc[i], Op::map(*reinterpret_cast<const T*>(from + i * step), centre[i]));
  } else if (step == std::int64_t(sizeof(T))) {
    auto* x = reinterpret_cast<const T*>(from);
#pragma GCC ivdep
    for (std::int64_t i = 0; i < n; ++i) acc[i] = Op::join(acc[i], Op::map(x[i], A{}));
  } else {
    for (std::int64_t i = 0; i < n; ++i)
      acc[i] = Op::join(acc[i], Op::map(*reinterpret_cast<const T*>(from + i * step), A{}));
  }
}

template <class Op>
void fold_merge(char* states, const char* others, std::int64_t n) {
  using A = typename Op::State;
  auto* acc = reinterpret_cast<A*>(states);
  auto* other = reinterpret_cast<const A*>(others);
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) acc[i] = Op::join(acc[i], other[i]);
}

template <class Op, class T>
void fill_fold(Fold& f) {
  using A = typename Op::State;
  f.state = dtype_of<A>;
  A identity = Op::identity();
  std::memcpy(f.identity, &identity, sizeof identity);
  f.line = &fold_line<Op, T>;
  f.rows = &fold_rows<Op, T>;
  f.merge = &fold_merge<Op>;
}

/// Fills in Op<T> where T is one of Ts.
template <template <class> class Op, class... Ts>
bool pick_fold(DType type, Fold& f) {
  bool found = false;
  ((type == dtype_of<Ts> ? (fill_fold<Op<Ts>, Ts>(f), found = true) : false) || ...);
  return found;
}

template <class T>
inline constexpr bool is_half_type = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

#define RUSHLIGHT_FOLD_INTS bool, std::uint8_t, std::int8_t, std::int16_t, std::int32_t, std::int64_t
#define RUSHLIGHT_FOLD_FLOATS Half, BFloat16, float, double
#define RUSHLIGHT_FOLD_COMPLEX std::complex<float>, std::complex<double>

}  // namespace
}  // namespace rushlight::RUSHLIGHT_ISA
