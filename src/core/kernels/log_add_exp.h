// log(exp(x) + exp(y)), without overflow.
#pragma once

#include <cmath>
#include <complex>

namespace rushlight {

/// Of two infinities of one sign, that.
template <class A>
inline A log_add_exp(A x, A y) {
  const A low = x < y ? x : y, high = x < y ? y : x;
  if (x != x || y != y) return x + y;
  if (low == high && !std::isfinite(low)) return x;
  return high + std::log1p(std::exp(low - high));
}

/// Complex numbers are compared by their real parts, the sizes of what is added; exp of -inf is 0 at any angle.
template <class R>
inline std::complex<R> log_add_exp(std::complex<R> x, std::complex<R> y) {
  using C = std::complex<R>;
  if (x != x || y != y) return C(NAN, NAN);
  const C low = x.real() < y.real() ? x : y, high = x.real() < y.real() ? y : x;
  if (std::isinf(low.real()) && low.real() == high.real())
    return low.real() < 0 ? y : std::log(std::exp(x) + std::exp(y));
  return high + std::log(R(1) + std::exp(low - high));
}

}  // namespace rushlight
