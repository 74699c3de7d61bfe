// fill_normal: Box-Muller over blocks of 16 numbers.
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/multiply_add.h"
#include "kernels/random.h"

namespace rushlight {

namespace {

constexpr int half_block = 8, whole_block = 16;

// log(x) for x > 0 as Cephes' logf computes it, every product that feeds a sum fused with it. x is at least 2^-24 here,
// so neither zero nor a subnormal has to be considered.
[[gnu::always_inline]] inline float fused_log(float x) {
  constexpr std::array<float, 9> coefficients = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                                                 -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                                                 2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  constexpr float log2_low = -2.12194440e-4f, log2_high = 0.693359375f;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  float exponent = float(std::int32_t(bits >> 23) - 126);
  float mantissa = std::bit_cast<float>((bits & 0x007fffffu) | 0x3f000000u);  // in [1/2, 1)
  const bool low = mantissa < 0.707106781186547524f;
  exponent -= low ? 1.0f : 0.0f;
  mantissa = (mantissa - 1.0f) + (low ? mantissa : 0.0f);
  const float square = mantissa * mantissa;
  float y = coefficients[0];
  for (std::size_t i = 1; i < coefficients.size(); ++i) y = __builtin_fmaf(y, mantissa, coefficients[i]);
  y = __builtin_fmaf(y * mantissa, square, exponent * log2_low);
  y = __builtin_fmaf(-square, 0.5f, y);
  return __builtin_fmaf(exponent, log2_high, mantissa + y);
}

// sin(x) and cos(x) for 0 <= x <= 2 pi as Cephes' sinf and cosf compute them, fused likewise.
[[gnu::always_inline]] inline void fused_sincos(float x, float& sine, float& cosine) {
  constexpr float four_over_pi = 1.27323954473516f;
  // pi / 4 in three parts, so that the reduction is exact enough.
  constexpr float part1 = -0.78515625f, part2 = -2.4187564849853515625e-4f, part3 = -3.77489497744594108e-8f;
  const std::int32_t octant = (std::int32_t(x * four_over_pi) + 1) & ~1;
  const auto y = float(octant);
  x = __builtin_fmaf(y, part1, x);
  x = __builtin_fmaf(y, part2, x);
  x = __builtin_fmaf(y, part3, x);
  const float square = x * x;
  float c = __builtin_fmaf(2.443315711809948e-5f, square, -1.388731625493765e-3f);
  c = __builtin_fmaf(c, square, 4.166664568298827e-2f);
  c = __builtin_fmaf(square, square * c, -(square * 0.5f)) + 1.0f;
  float s = __builtin_fmaf(-1.9515295891e-4f, square, 8.3321608736e-3f);
  s = __builtin_fmaf(s, square, -1.6666654611e-1f);
  s = __builtin_fmaf(x, square * s, x);
  const bool swapped = (octant & 2) != 0;
  const auto sine_sign = std::uint32_t(octant & 4) << 29;
  const auto cosine_sign = std::uint32_t(~(octant - 2) & 4) << 29;
  sine = std::bit_cast<float>(std::bit_cast<std::uint32_t>(swapped ? c : s) ^ sine_sign);
  cosine = std::bit_cast<float>(std::bit_cast<std::uint32_t>(swapped ? s : c) ^ cosine_sign);
}

// The 16 uniform numbers at u become 16 normal ones, by the fused kernel's own logarithm and sines.
[[gnu::always_inline]] inline void normal_block_fused(float* u, float mean, float std) {
  for (int j = 0; j < half_block; ++j) {
    const float radius = std::sqrt(-2.0f * fused_log(1.0f - u[j]));
    float sine, cosine;
    fused_sincos(float(2.0 * std::numbers::pi) * u[j + half_block], sine, cosine);
    u[j] = __builtin_fmaf(radius * cosine, std, mean);
    u[j + half_block] = __builtin_fmaf(radius * sine, std, mean);
  }
}

// The same by the C library. The last step is fused whatever the machine: PyTorch asks for it by name.
template <class Real>
void normal_block(Real* u, Real mean, Real std) {
  for (int j = 0; j < half_block; ++j) {
    const Real radius = std::sqrt(Real(-2) * std::log(Real(1) - u[j]));
    const Real angle = Real(2.0 * std::numbers::pi * double(u[j + half_block]));
    u[j] = std::fma(radius * std::cos(angle), std, mean);
    u[j + half_block] = std::fma(radius * std::sin(angle), std, mean);
  }
}

RUSHLIGHT_FUSED_TARGET void normal_blocks_fused(float* u, std::int64_t blocks, float mean, float std) {
  for (std::int64_t i = 0; i < blocks; ++i) normal_block_fused(u + i * whole_block, mean, std);
}

template <class Real>
void normal_blocks(Real* u, std::int64_t blocks, Real mean, Real std) {
  if constexpr (std::is_same_v<Real, float>) {
    if (uses_fused_kernels()) return normal_blocks_fused(u, blocks, mean, std);
  }
  for (std::int64_t i = 0; i < blocks; ++i) normal_block(u + i * whole_block, mean, std);
}

// Draws a block of uniform floats, makes it normal, stores it as halves.
template <class T>
void store_normal_block(MersenneTwister& generator, T* out, float mean, float std) {
  std::array<float, whole_block> buffer;
  fill_uniform(generator, buffer.data(), whole_block, 0.0, 1.0);
  normal_blocks(buffer.data(), 1, mean, std);
  for (int j = 0; j < whole_block; ++j) out[j] = T(buffer[std::size_t(j)]);
}

}  // namespace

template <class T>
void fill_normal(MersenneTwister& generator, T* out, std::int64_t n, double mean, double std) {
  if (n < whole_block) return fill_normal_serial(generator, out, n, mean, std);
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    fill_uniform(generator, out, n, 0.0, 1.0);
    normal_blocks(out, n / whole_block, T(mean), T(std));
    if (n % whole_block != 0) {
      fill_uniform(generator, out + n - whole_block, whole_block, 0.0, 1.0);
      normal_blocks(out + n - whole_block, 1, T(mean), T(std));
    }
  } else {
    for (std::int64_t i = 0; i + whole_block <= n; i += whole_block)
      store_normal_block(generator, out + i, float(mean), float(std));
    if (n % whole_block != 0) store_normal_block(generator, out + n - whole_block, float(mean), float(std));
  }
}

template void fill_normal(MersenneTwister&, float*, std::int64_t, double, double);
template void fill_normal(MersenneTwister&, double*, std::int64_t, double, double);
template void fill_normal(MersenneTwister&, Half*, std::int64_t, double, double);
template void fill_normal(MersenneTwister&, BFloat16*, std::int64_t, double, double);

}  // namespace rushlight
