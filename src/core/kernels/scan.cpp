#include "kernels/scan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "kernels/log_add_exp.h"
#include "kernels/order.h"

namespace rushlight {

namespace {

constexpr std::int64_t group = 16;  // lines worked on together: 64 bytes of floats

template <class T>
struct Accumulator {
  using type = T;
};
template <>
struct Accumulator<Half> {
  using type = float;
};
template <>
struct Accumulator<BFloat16> {
  using type = float;
};
template <>
struct Accumulator<float> {
  using type = double;
};
template <>
struct Accumulator<std::complex<float>> {
  using type = std::complex<double>;
};
template <class T>
using accumulator = typename Accumulator<T>::type;

// Integers are added and multiplied without a sign, where overflow is defined.
template <class A>
A add(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return A(std::uint64_t(a) + std::uint64_t(b));
  else
    return a + b;
}

template <class A>
A multiply(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return A(std::uint64_t(a) * std::uint64_t(b));
  else if constexpr (is_complex_type<A>)  // std::complex's product looks for infinities; PyTorch's does not
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  else
    return a * b;
}

// Runs state = step(state, x, i), emit(j, i, state) along every line j, all of which begin with `initial`.
template <class T, class State, class Step, class Emit>
void scan(Lines<const T> in, std::int64_t n, std::int64_t count, State initial, Step step, Emit emit) {
  constexpr std::int64_t short_line = 16;  // a group of these still fits a few cache lines
  if ((std::abs(in.stride) <= std::abs(in.gap) && n > short_line) || count == 1) {
    for (std::int64_t j = 0; j < count; ++j) {
      State state = initial;
      for (std::int64_t i = 0; i < n; ++i) emit(j, i, state = step(state, in.at(j, i), i));
    }
    return;
  }
  std::array<State, group> states;
  for (std::int64_t begin = 0; begin < count; begin += group) {
    const std::int64_t width = std::min(group, count - begin);
    states.fill(initial);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t k = 0; k < width; ++k) {
        State& state = states[std::size_t(k)];
        emit(begin + k, i, state = step(state, in.at(begin + k, i), i));
      }
    }
  }
}

template <class T, class Step>
void scan_values(Lines<const T> in, Lines<T> out, std::int64_t n, std::int64_t count, accumulator<T> initial,
                 Step step) {
  using A = accumulator<T>;
  scan(
      in, n, count, initial, [step](A state, T x, std::int64_t) { return step(state, A(x)); },
      [out](std::int64_t j, std::int64_t i, A state) { out.at(j, i) = T(state); });
}

template <class T>
struct Extreme {
  T value;
  std::int64_t index;
};

template <class T, class Beats>
bool replaces(T x, T best, Beats beats) {
  return is_nan(x) | (!is_nan(best) & beats(x, best));
}

template <class T, class Beats>
void scan_extremes(Lines<const T> in, Lines<T> values, Lines<std::int64_t> indices, std::int64_t n, std::int64_t count,
                   Beats beats) {
  if (n == 0) return;
  if (std::abs(in.stride) <= std::abs(in.gap) || count == 1) {
    for (std::int64_t j = 0; j < count; ++j) {
      Extreme<T> best{in.at(j, 0), 0};
      for (std::int64_t i = 0; i < n; ++i) {
        if (const T x = in.at(j, i); replaces(x, best.value, beats)) best = {x, i};
        values.at(j, i) = best.value;
        indices.at(j, i) = best.index;
      }
    }
    return;
  }
  // Side by side, each row takes over what the row before it has written; without branches, which would be
  // mispredicted.
  for (std::int64_t j = 0; j < count; ++j) {
    values.at(j, 0) = in.at(j, 0);
    indices.at(j, 0) = 0;
  }
  for (std::int64_t i = 1; i < n; ++i) {
    for (std::int64_t j = 0; j < count; ++j) {
      const T x = in.at(j, i), best = values.at(j, i - 1);
      const bool better = replaces(x, best, beats);
      values.at(j, i) = better ? x : best;
      indices.at(j, i) = better ? i : indices.at(j, i - 1);
    }
  }
}

}  // namespace

template <class T>
void cumsum_lines(Lines<const T> in, Lines<T> out, std::int64_t n, std::int64_t count) {
  using A = accumulator<T>;
  scan_values(in, out, n, count, A(0), [](A a, A b) { return add(a, b); });
}

template <class T>
void cumprod_lines(Lines<const T> in, Lines<T> out, std::int64_t n, std::int64_t count) {
  using A = accumulator<T>;
  scan_values(in, out, n, count, A(1), [](A a, A b) { return multiply(a, b); });
}

template <class T>
void cummax_lines(Lines<const T> in, Lines<T> values, Lines<std::int64_t> indices, std::int64_t n, std::int64_t count) {
  scan_extremes(in, values, indices, n, count, [](T x, T best) { return x >= best; });
}

template <class T>
void cummin_lines(Lines<const T> in, Lines<T> values, Lines<std::int64_t> indices, std::int64_t n, std::int64_t count) {
  scan_extremes(in, values, indices, n, count, [](T x, T best) { return x <= best; });
}

template <class T>
void logcumsumexp_lines(Lines<const T> in, Lines<T> out, std::int64_t n, std::int64_t count) {
  using A = accumulator<T>;
  scan_values(in, out, n, count, A(-HUGE_VAL), [](A a, A b) { return log_add_exp(b, a); });
}

// clang-format off
#define INSTANTIATE_SUM(T) \
  template void cumsum_lines(Lines<const T>, Lines<T>, std::int64_t, std::int64_t); \
  template void cumprod_lines(Lines<const T>, Lines<T>, std::int64_t, std::int64_t);
#define INSTANTIATE_EXTREME(T) \
  template void cummax_lines(Lines<const T>, Lines<T>, Lines<std::int64_t>, std::int64_t, std::int64_t); \
  template void cummin_lines(Lines<const T>, Lines<T>, Lines<std::int64_t>, std::int64_t, std::int64_t);
#define INSTANTIATE_LOG(T) \
  template void logcumsumexp_lines(Lines<const T>, Lines<T>, std::int64_t, std::int64_t);
#define FOR_INTEGRAL(M) M(std::uint8_t) M(std::int8_t) M(std::int16_t) M(std::int32_t) M(std::int64_t)
#define FOR_FLOATING(M) M(Half) M(BFloat16) M(float) M(double)
FOR_INTEGRAL(INSTANTIATE_SUM)
FOR_FLOATING(INSTANTIATE_SUM)
INSTANTIATE_SUM(std::complex<float>)
INSTANTIATE_SUM(std::complex<double>)
INSTANTIATE_EXTREME(bool)
FOR_INTEGRAL(INSTANTIATE_EXTREME)
FOR_FLOATING(INSTANTIATE_EXTREME)
FOR_FLOATING(INSTANTIATE_LOG)
INSTANTIATE_LOG(std::complex<float>)
INSTANTIATE_LOG(std::complex<double>)
// clang-format on

}  // namespace rushlight
