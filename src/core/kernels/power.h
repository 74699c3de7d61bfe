// x^y in float without branches, for loops that the compiler makes vectors of; included by sources compiled once per
// instruction set. Computed in double: within 1 ulp.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace rushlight::RUSHLIGHT_ISA {
namespace {

/// log x for x that is positive, finite and normal. x = 2^e m with m from sqrt(1/2) to sqrt(2), log m by the series of
/// 2 artanh((m - 1) / (m + 1)); relative error below 1e-10.
inline double coarse_logarithm(double x) {
  constexpr std::uint64_t root_half = 0x3fe6a09e667f3bcd;
  std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  std::int64_t e = std::int64_t(bits - root_half) >> 52;
  double m = std::bit_cast<double>(bits - (std::uint64_t(e) << 52));
  double s = (m - 1.0) / (m + 1.0), z = s * s;
  double p = 2.0 / 13.0;
  p = p * z + 2.0 / 11.0;
  p = p * z + 2.0 / 9.0;
  p = p * z + 2.0 / 7.0;
  p = p * z + 2.0 / 5.0;
  p = p * z + 2.0 / 3.0;
  return double(std::int32_t(e)) * 0.693147180559945309417 + (s * z * p + s * 2.0);
}

/// e^x for x within the exponents of float and their double; Taylor's polynomial on |r| <= ln 2 / 2, relative error
/// below 1e-9.
inline double coarse_exponential(double x) {
  constexpr double rounder = 6755399441055744.0;
  double clamped = x < -300.0 ? -300.0 : x > 300.0 ? 300.0 : x;
  double shifted = clamped * 1.44269504088896340736 + rounder;
  double r = clamped - (shifted - rounder) * 0.693147180559945309417;
  double p = 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * (r * r) + r + 1.0;
  return std::bit_cast<double>(std::bit_cast<std::int64_t>(p) + (std::bit_cast<std::int64_t>(shifted) << 52));
}

/// As C's pow: 1 where y is 0 or x is 1, whatever the other is; NaN for a negative x and a y that is no integer.
inline float power(float x, float y) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double a = std::fabs(double(x)), b = y;
  double logarithm = a == 0.0 ? -infinity : a == infinity ? infinity : coarse_logarithm(a);
  double exponent = a == 1.0 ? 0.0 : b * logarithm;
  double magnitude = coarse_exponential(exponent);
  bool whole = std::floor(b) == b, odd = std::floor(b * 0.5) != b * 0.5;
  double negative = !whole ? std::numeric_limits<double>::quiet_NaN() : odd ? -magnitude : magnitude;
  double value = std::signbit(x) && (whole || (x != 0.0f && a != infinity)) ? negative : magnitude;
  value = x != x || y != y ? double(x) + b : value;
  return b == 0.0 || x == 1.0f ? 1.0f : float(value);
}

}  // namespace
}  // namespace rushlight::RUSHLIGHT_ISA
