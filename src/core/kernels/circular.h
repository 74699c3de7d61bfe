// sin x and cos x in double without branches, for loops that the compiler makes vectors of; included by sources
// compiled once per instruction set. Within 1.5 ulp while |x| is at most `largest_angle`.
#pragma once

#include <bit>
#include <cstdint>

namespace rushlight::RUSHLIGHT_ISA {
namespace {

// x = n pi / 2 + r with |r| <= pi / 4. n pi / 2 is subtracted in three parts; the first two have 33 bits, so that their
// products with n are exact. Sine and cosine of r are Taylor's polynomials, up to r^17 and r^16, with errors below
// 2^-60; what r has lost to rounding is added by their derivatives.

constexpr double largest_angle = 1e6;

/// sin(x + quarters pi / 2)
inline double sine_of(double x, std::int64_t quarters) {
  constexpr double rounder = 6755399441055744.0;  // leaves the nearest integer in the lowest bits
  double shifted = x * 0.63661977236758134308 + rounder, n = shifted - rounder;
  double near = x - n * 1.57079632673412561417e+00, second = n * 6.07710050630396597660e-11;
  double third = n * 2.02226624879595063154e-21, coarse = near - second, r = coarse - third;
  double rest = ((coarse - r) - third) + ((near - coarse) - second);  // what r has lost to rounding
  std::int64_t quarter = std::bit_cast<std::int64_t>(shifted) + quarters;
  double z = r * r;
  double s = 1.0 / 355687428096000.0;
  s = s * z - 1.0 / 1307674368000.0;
  s = s * z + 1.0 / 6227020800.0;
  s = s * z - 1.0 / 39916800.0;
  s = s * z + 1.0 / 362880.0;
  s = s * z - 1.0 / 5040.0;
  s = s * z + 1.0 / 120.0;
  s = s * z - 1.0 / 6.0;
  double c = 1.0 / 20922789888000.0;
  c = c * z - 1.0 / 87178291200.0;
  c = c * z + 1.0 / 479001600.0;
  c = c * z - 1.0 / 3628800.0;
  c = c * z + 1.0 / 40320.0;
  c = c * z - 1.0 / 720.0;
  c = c * z + 1.0 / 24.0;
  double sine = (s * (z * r) + rest * (1.0 - 0.5 * z)) + r, cosine = (c * (z * z) - rest * r) + (1.0 - 0.5 * z);
  double value = quarter & 1 ? cosine : sine;
  return quarter & 2 ? -value : value;
}

}  // namespace
}  // namespace rushlight::RUSHLIGHT_ISA
