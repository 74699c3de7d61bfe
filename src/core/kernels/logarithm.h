// log x and log(1 + x) without branches, for loops that the compiler makes vectors of; included by sources compiled
// once per instruction set. Within 1 ulp; zero, infinity, NaN and subnormal numbers as they should be.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "kernels/horner.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

/// x = 2^k (1 + f) with 1 + f from sqrt(1/2) to sqrt(2), and log(1 + f) = f - f^2 / 2 + s (f^2 / 2 + s^2 p(s^2)), where
/// s = f / (2 + f); p interpolates (2 artanh(s) - 2 s) / s^3 at Chebyshev's nodes. k log 2 is added in two parts.
inline double logarithm(double x) {
  constexpr std::uint64_t root_half = 0x3fe6a09e667f3bcd;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  bool subnormal = x < std::numeric_limits<double>::min();
  std::uint64_t bits = std::bit_cast<std::uint64_t>(subnormal ? x * 0x1p54 : x);
  std::int64_t e = std::int64_t(bits - root_half) >> 52;
  double f = std::bit_cast<double>(bits - (std::uint64_t(e) << 52)) - 1.0;
  double k = double(std::int32_t(e)) - (subnormal ? 54.0 : 0.0);
  double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
  double p = horner(z, 0.13086628467536549, 0.13268772916844226, 0.15386239711097155, 0.1818179563998063,
                    0.22222222391715343, 0.28571428570803603, 0.40000000000000879, 0.66666666666666663);
  double value = k * 6.93147180369123816490e-01 - ((half - (s * (half + z * p) + k * 1.90821492927058770002e-10)) - f);
  value = x == infinity ? x : value;
  return x > 0.0 ? value : x == 0.0 ? -infinity : std::numeric_limits<double>::quiet_NaN();
}

// log(1 + x) for x from 0 to 1: 2 artanh(s) with s = x / (2 + x), interpolated as above.

inline double logarithm_of_one_plus(double x) {
  double s = x / (2.0 + x), z = s * s;
  double p = horner(z, 0.15630654350971537, 0.074921034519164167, 0.10845187404793405, 0.11734277950937912,
                    0.13335178713836779, 0.15384543961092945, 0.18181819898067103, 0.2222222219823512,
                    0.2857142857160011, 0.39999999999999525, 0.66666666666666663);
  return s * z * p + (s + s);
}
inline float logarithm_of_one_plus(float x) {
  float s = x / (2.0f + x), z = s * s;
  float p = horner(z, 0.2322437663f, 0.2170656662f, 0.2859235834f, 0.3999970632f, 0.6666666732f);
  return s * z * p + (s + s);
}

}  // namespace
}  // namespace rushlight::RUSHLIGHT_ISA
