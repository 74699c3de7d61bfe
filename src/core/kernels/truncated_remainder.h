// The remainder of a division rounded towards zero, C's fmod, without branches where the quotient is not large; for
// loops that the compiler makes vectors of; included by sources compiled once per instruction set. Exact.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace rushlight::RUSHLIGHT_ISA {
namespace {

/// Whether the quotient is too large for `truncated_remainder`, or an operand is not finite, or zero divides.
template <class T>
bool far_apart(T x, T y) {
  // the quotient's bits and those of the divisor (half of them, for double) must fit into 53
  double ratio = std::fabs(double(x) / double(y));
  return !(ratio < (std::is_same_v<T, float> ? 0x1p28 : 0x1p26)) | (y - y != T(0));
}

/// x - trunc(x / y) y. The quotient may be rounded up to an integer; then the result is a divisor too low.
template <class T>
T truncated_remainder(T x, T y) {
  double a = std::fabs(double(x)), b = std::fabs(double(y)), q = std::trunc(a / b), r;
  if constexpr (std::is_same_v<T, float>) {
    r = a - q * b;
  } else {
    double high = std::bit_cast<double>(std::bit_cast<std::uint64_t>(b) & ~std::uint64_t(0x7ffffff)), low = b - high;
    r = (a - q * high) - q * low;
  }
  r = r < 0.0 ? r + b : r;
  return T(std::copysign(r, double(x)));
}

}  // namespace
}  // namespace rushlight::RUSHLIGHT_ISA
