// e^x without branches, for loops that the compiler makes vectors of; included by sources compiled once per instruction
// set. Within 1 ulp of the exact value; infinities, NaN, overflow and subnormal results as they should be.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace rushlight::RUSHLIGHT_ISA {
namespace {

// x = k ln 2 + r with |r| <= ln 2 / 2, so that e^x = 2^k e^r. e^r = 1 + r + r^2 p(r) with p interpolating at
// Chebyshev's nodes; k ln 2 is subtracted in two parts, the first of which is exact. Adding 1.5 * 2^(mantissa bits)
// rounds to the nearest integer and leaves it in the lowest bits. 2^k is multiplied in two halves, since k may lie
// beyond the exponents.

inline float exponential(float x) {
  constexpr float rounder = 12582912.0f;
  float clamped = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;
  float shifted = clamped * 1.44269504088896341f + rounder;
  float k = shifted - rounder;
  float r = (clamped - k * 0.693359375f) + k * 2.12194440e-4f;
  float p = 1.98910304e-4f;
  p = p * r + 1.39336858e-3f;
  p = p * r + 8.33331048e-3f;
  p = p * r + 4.16664630e-2f;
  p = p * r + 1.66666672e-1f;
  p = p * r + 0.5f;
  float e = (p * (r * r) + r) + 1.0f;
  std::int32_t n = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(rounder), half = n >> 1;
  float scaled = e * std::bit_cast<float>((half + 127) << 23) * std::bit_cast<float>((n - half + 127) << 23);
  return x != x ? x : scaled;
}

inline double exponential(double x) {
  constexpr double rounder = 6755399441055744.0;
  double clamped = x < -746.0 ? -746.0 : x > 710.0 ? 710.0 : x;
  double shifted = clamped * 1.44269504088896340736 + rounder;
  double k = shifted - rounder;
  double r = (clamped - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
  double p = 2.091042960578309e-09;
  p = p * r + 2.5105137868939783e-08;
  p = p * r + 2.7557286477098277e-07;
  p = p * r + 2.755725560812776e-06;
  p = p * r + 2.480158731194471e-05;
  p = p * r + 1.98412698746369e-04;
  p = p * r + 1.388888888888952e-03;
  p = p * r + 8.333333333326198e-03;
  p = p * r + 4.1666666666666664e-02;
  p = p * r + 1.666666666666667e-01;
  p = p * r + 0.5;
  double e = (p * (r * r) + r) + 1.0;
  std::int64_t n = std::bit_cast<std::int64_t>(shifted) - std::bit_cast<std::int64_t>(rounder);
  std::int64_t half = std::int64_t(std::int32_t(n) >> 1);
  double scaled = e * std::bit_cast<double>((half + 1023) << 52) * std::bit_cast<double>((n - half + 1023) << 52);
  return x != x ? x : scaled;
}

}  // namespace
}  // namespace rushlight::RUSHLIGHT_ISA
