// fill_normal: Box-Muller over blocks of 16 numbers.
#include <array>
#include <cmath>
#include <numbers>
#include <type_traits>

#include "kernels/multiply_add.h"
#include "kernels/random.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rushlight {

namespace {

constexpr int half_block = 8, whole_block = 16;

#if defined(__x86_64__)

using Floats = __m256;
using Integers = __m256i;

RUSHLIGHT_FUSED_TARGET inline Floats all(float value) { return _mm256_set1_ps(value); }
RUSHLIGHT_FUSED_TARGET inline Integers all(int value) { return _mm256_set1_epi32(value); }

// x * y + z
RUSHLIGHT_FUSED_TARGET inline Floats fused(Floats x, Floats y, Floats z) { return _mm256_fmadd_ps(x, y, z); }

// Where the sign bit of `flag` is set, `x`, else `y`.
RUSHLIGHT_FUSED_TARGET inline Floats choose(Floats flag, Floats x, Floats y) { return _mm256_blendv_ps(y, x, flag); }

// log(x) as Cephes' logf computes it, every product that feeds a sum fused with it. x is at least 2^-24 here, so
// neither zero nor a subnormal has to be considered.
RUSHLIGHT_FUSED_TARGET inline Floats fused_log(Floats x) {
  constexpr std::array<float, 9> coefficients = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                                                 -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                                                 2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  constexpr float log2_low = -2.12194440e-4f, log2_high = 0.693359375f;
  const Integers bits = _mm256_castps_si256(x);
  Floats exponent = _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_srli_epi32(bits, 23), all(126)));
  const Integers fraction = _mm256_and_si256(bits, all(0x007fffff));
  Floats mantissa = _mm256_castsi256_ps(_mm256_or_si256(fraction, all(0x3f000000)));  // in [1/2, 1)
  // Below sqrt(1/2), the mantissa is doubled.
  const Floats low = _mm256_cmp_ps(mantissa, all(0.707106781186547524f), _CMP_LT_OS);
  exponent = _mm256_sub_ps(exponent, _mm256_and_ps(low, all(1.0f)));
  mantissa = _mm256_add_ps(_mm256_sub_ps(mantissa, all(1.0f)), _mm256_and_ps(low, mantissa));
  const Floats square = _mm256_mul_ps(mantissa, mantissa);
  Floats y = all(coefficients[0]);
  for (std::size_t i = 1; i < coefficients.size(); ++i) y = fused(y, mantissa, all(coefficients[i]));
  y = fused(_mm256_mul_ps(y, mantissa), square, _mm256_mul_ps(exponent, all(log2_low)));
  y = fused(square, all(-0.5f), y);
  return fused(exponent, all(log2_high), _mm256_add_ps(mantissa, y));
}

// sin(x) and cos(x) for 0 <= x <= 2 pi as Cephes' sinf and cosf compute them, fused likewise.
RUSHLIGHT_FUSED_TARGET inline void fused_sincos(Floats x, Floats& sine, Floats& cosine) {
  constexpr float four_over_pi = 1.27323954473516f;
  // pi / 4 in three parts, so that the reduction is exact enough.
  constexpr float part1 = -0.78515625f, part2 = -2.4187564849853515625e-4f, part3 = -3.77489497744594108e-8f;
  const Integers whole = _mm256_cvttps_epi32(_mm256_mul_ps(x, all(four_over_pi)));
  const Integers octant = _mm256_and_si256(_mm256_add_epi32(whole, all(1)), all(~1));
  const Floats y = _mm256_cvtepi32_ps(octant);
  x = fused(y, all(part3), fused(y, all(part2), fused(y, all(part1), x)));
  const Floats square = _mm256_mul_ps(x, x);

  Floats c = fused(all(2.443315711809948e-5f), square, all(-1.388731625493765e-3f));
  c = fused(c, square, all(4.166664568298827e-2f));
  c = _mm256_fmsub_ps(square, _mm256_mul_ps(square, c), _mm256_mul_ps(square, all(0.5f)));
  c = _mm256_add_ps(c, all(1.0f));
  Floats s = fused(all(-1.9515295891e-4f), square, all(8.3321608736e-3f));
  s = fused(s, square, all(-1.6666654611e-1f));
  s = fused(x, _mm256_mul_ps(square, s), x);

  // Bit 1 of the octant exchanges the two; bit 2 is the sine's sign, and bit 2 of octant + 2 the cosine's.
  const Floats swapped = _mm256_castsi256_ps(_mm256_slli_epi32(octant, 30));
  const Integers sine_sign = _mm256_slli_epi32(_mm256_and_si256(octant, all(4)), 29);
  const Integers cosine_sign = _mm256_slli_epi32(_mm256_and_si256(_mm256_add_epi32(octant, all(2)), all(4)), 29);
  sine = _mm256_xor_ps(choose(swapped, c, s), _mm256_castsi256_ps(sine_sign));
  cosine = _mm256_xor_ps(choose(swapped, s, c), _mm256_castsi256_ps(cosine_sign));
}

// Each 16 uniform numbers at u become 16 normal ones, by the fused kernel's own logarithm and sines.
RUSHLIGHT_FUSED_TARGET void normal_blocks_fused(float* u, std::int64_t blocks, float mean, float std) {
  constexpr auto two_pi = float(2.0 * std::numbers::pi);
  for (std::int64_t i = 0; i < blocks; ++i, u += whole_block) {
    const Floats log = fused_log(_mm256_sub_ps(all(1.0f), _mm256_loadu_ps(u)));
    const Floats radius = _mm256_sqrt_ps(_mm256_mul_ps(all(-2.0f), log));
    Floats sine, cosine;
    fused_sincos(_mm256_mul_ps(all(two_pi), _mm256_loadu_ps(u + half_block)), sine, cosine);
    _mm256_storeu_ps(u, fused(_mm256_mul_ps(radius, cosine), all(std), all(mean)));
    _mm256_storeu_ps(u + half_block, fused(_mm256_mul_ps(radius, sine), all(std), all(mean)));
  }
}

#endif

// The same for one block by the C library. The last step is fused whatever the machine: PyTorch asks for it by name.
template <class Real>
void normal_block(Real* u, Real mean, Real std) {
  for (int j = 0; j < half_block; ++j) {
    const Real radius = std::sqrt(Real(-2) * std::log(Real(1) - u[j]));
    const Real angle = Real(2.0 * std::numbers::pi * double(u[j + half_block]));
    u[j] = std::fma(radius * std::cos(angle), std, mean);
    u[j + half_block] = std::fma(radius * std::sin(angle), std, mean);
  }
}

template <class Real>
void normal_blocks(Real* u, std::int64_t blocks, Real mean, Real std) {
#if defined(__x86_64__)
  if constexpr (std::is_same_v<Real, float>) {
    if (uses_fused_kernels()) return normal_blocks_fused(u, blocks, mean, std);
  }
#endif
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
