// e^x, tanh x and 1 / (1 + e^-x) without branches, for loops that the compiler makes vectors of; included by sources
// compiled once per instruction set. e^x is within 1 ulp of the exact value, the others within 2; infinities, NaN,
// overflow and subnormal results as they should be.
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

struct FloatParts {
  float mantissa;
  std::int32_t exponent;
};
inline FloatParts exponential_parts(float x) {
  constexpr float rounder = 12582912.0f;
  float shifted = x * 1.44269504088896341f + rounder;
  float k = shifted - rounder;
  float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
  float p = 1.98910304e-4f;
  p = p * r + 1.39336858e-3f;
  p = p * r + 8.33331048e-3f;
  p = p * r + 4.16664630e-2f;
  p = p * r + 1.66666672e-1f;
  p = p * r + 0.5f;
  float e = (p * (r * r) + r) + 1.0f;
  return {e, std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(rounder)};
}

inline float exponential(float x) {
  auto [e, n] = exponential_parts(x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x);
  std::int32_t half = n >> 1;
  float scaled = e * std::bit_cast<float>((half + 127) << 23) * std::bit_cast<float>((n - half + 127) << 23);
  return x != x ? x : scaled;
}
/// The same for x from -87 to 88, where the result is normal.
inline float normal_exponential(float x) {
  auto [e, n] = exponential_parts(x);
  return e * std::bit_cast<float>((n + 127) << 23);
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

// tanh x = x (1 + x^2 p(x^2)) up to 5/8, with p interpolating at Chebyshev's nodes, and 1 - 2 / (e^2|x| + 1) beyond.

template <class T>
T beyond_tanh(T x, T small) {
  T magnitude = x < T(0) ? -x : x;
  T large = T(1) - T(2) / (exponential(T(2) * magnitude) + T(1));
  return magnitude < T(0.625) ? small : x < T(0) ? -large : large;
}

inline float hyperbolic_tangent(float x) {
  float z = x * x, p = -0.00609671416590819757f;
  p = p * z + 0.0209971789990747506f;
  p = p * z - 0.0538509095785135808f;
  p = p * z + 0.133327697369763279f;
  p = p * z - 0.333333289441342546f;
  return beyond_tanh(x, p * z * x + x);
}

inline double hyperbolic_tangent(double x) {
  double z = x * x, p = -0.0000172448744948443302;
  p = p * z + 0.00007959955735264808;
  p = p * z - 0.000230776162695198579;
  p = p * z + 0.00058743728600943819;
  p = p * z - 0.00145530929753464202;
  p = p * z + 0.00359205897747345532;
  p = p * z - 0.00886322983092570875;
  p = p * z + 0.0218694882605591146;
  p = p * z - 0.0539682539613955708;
  p = p * z + 0.133333333333266577;
  p = p * z - 0.333333333333333226;
  return beyond_tanh(x, p * z * x + x);
}

template <class T>
T logistic(T x) {
  return T(1) / (T(1) + exponential(-x));
}

}  // namespace
}  // namespace rushlight::RUSHLIGHT_ISA
