// The error function, its complement and their inverses without branches, for loops that the compiler makes vectors of;
// included by sources compiled once per instruction set. erf is within 2 ulp, the others within 4.
#pragma once

#include <cmath>

#include "kernels/exponential.h"
#include "kernels/logarithm.h"
#include "kernels/power.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

// Both polynomials interpolate at Chebyshev's nodes: erf x = x + x p(x^2) up to 0.9, and 1 - e^-q(|x|) up to 4, from
// where on the result is 1.

inline float error_function(float x) {
  float z = x * x, p = 8.52940132284e-5f;
  p = p * z - 0.000817963218089f;
  p = p * z + 0.00520422669375f;
  p = p * z - 0.0268606647911f;
  p = p * z + 0.112837180496f;
  p = p * z - 0.37612635194f;
  p = p * z + 0.128379166789f;
  float small = p * x + x;
  float magnitude = x < 0 ? -x : x, a = magnitude > 4.0f ? 4.0f : magnitude, q = -1.64306365569e-6f;
  q = q * a + 4.61638586252e-5f;
  q = q * a - 0.00059758577023f;
  q = q * a + 0.00476262583251f;
  q = q * a - 0.0264276371535f;
  q = q * a + 0.110087166496f;
  q = q * a + 0.631823918106f;
  q = q * a + 1.13023105522f;
  q = q * a - 0.000318539662412f;
  float large = 1.0f - exponential(-q);
  return x != x ? x : magnitude < 0.9f ? small : x < 0 ? -large : large;
}

// In double: e^(x^2) erfc x for x >= 0 is p(t) / (1 + 2 x) with t = (x - 15/4) / (x + 15/4), a smooth function on [-1,
// 1] (Shepherd and Laframboise, Math. Comp. 36, 1981). The polynomials interpolate at Chebyshev's nodes.

/// x in [0, inf].
inline double scaled_complement(double x) {
  double bounded = x > 1e30 ? 1e30 : x, t = (bounded - 3.75) / (bounded + 3.75);
  return horner(t, 3.2052623379289157e-10, -2.6185201565031449e-09, -3.7981897977362073e-09, 3.1953986120578182e-08,
                2.3398534313040898e-08, -2.4851108650210706e-07, -5.7410760730139158e-08, 1.7419011945194367e-06,
                -9.733875167494142e-07, -1.1437980374495534e-05, 2.2384138525656757e-05, 5.164649341002877e-05,
                -0.00029015404203352704, 0.00029371439057885597, 0.0017556258434318641, -0.0097465796859621708,
                0.028362277420377335, -0.058693398576310611, 0.09230432116025894, -0.10880393014246645,
                0.08227673849014977, 0.0035854154854795752, -0.14024059858554702, 1.2375126308378275) /
         (1.0 + 2.0 * x);
}

/// e^(factor x^2) for x >= 0 and a power of two. The square in two parts, the first of which is exact: its rounding
/// would be magnified.
inline double exponential_of_square(double x, double factor) {
  double a = x > 40.0 ? 40.0 : x;  // beyond, the result has vanished or overflowed
  double head = std::bit_cast<double>(std::bit_cast<std::uint64_t>(a) & 0xfffffffff8000000);
  double r = factor * ((a - head) * (a + head));
  return exponential(factor * (head * head)) * (1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0))));
}

/// The same within float's precision: relative error below 1e-8.
inline double coarse_scaled_complement(double x) {
  double bounded = x > 1e30 ? 1e30 : x, t = (bounded - 3.75) / (bounded + 3.75);
  return horner(t, 2.3634820068462686e-05, -0.00022405204951954954, 0.00032538846455351872, 0.0016757342508064283,
                -0.0097646904977876318, 0.028409430391479109, -0.058688252049401611, 0.092290691672078762,
                -0.10880456454860984, 0.08227843390475284, 0.003585438016476337, -0.14024065901788993,
                1.2375126308378275) /
         (1.0 + 2.0 * x);
}

/// erf x for |x| <= 3/4.
inline double small_error_function(double x) {
  double z = x * x;
  return x + x * horner(z > 1.0 ? 1.0 : z, 1.1472499701094691e-08, -1.5940066854661717e-07, 1.6430684179741549e-06,
                        -1.4924196305569617e-05, 0.00012055289567541706, -0.00085483261887597524, 0.0052239776154205386,
                        -0.026866170644428485, 0.11283791670952596, -0.37612638903183715, 0.12837916709551259);
}

inline double complementary_error_function(double x) {
  double a = std::fabs(x), tail = exponential_of_square(a, -1.0) * scaled_complement(a);
  double value = x < 0.0 ? 2.0 - tail : tail;
  return a < 0.5 ? 1.0 - small_error_function(x) : value;
}

inline float complementary_error_function(float x) {
  double a = std::fabs(double(x)), tail = coarse_exponential(-a * a) * coarse_scaled_complement(a);
  return float(x < 0.0f ? 2.0 - tail : tail);
}

inline double error_function(double x) {
  double a = std::fabs(x), large = 1.0 - exponential_of_square(a, -1.0) * scaled_complement(a);
  return x != x ? x : a < 0.75 ? small_error_function(x) : std::copysign(large, x);
}

inline double scaled_complementary_error_function(double x) {
  double a = std::fabs(x), tail = scaled_complement(a);
  return x < 0.0 ? 2.0 * exponential_of_square(a, 1.0) - tail : tail;
}

/// The logarithm of the normal distribution function: of e^(x^2 / 2) erfc(-x / sqrt 2) / 2 in the lower tail, of 1
/// minus the upper tail above zero.
inline double log_normal_distribution(double x) {
  double a = std::fabs(x), scaled = scaled_complement(a * 0.70710678118654752440);
  double half = 0.5 * exponential_of_square(a, -0.5) * scaled, one = 1.0 - half, rest = ((1.0 - one) - half) / one;
  double log = logarithm(x < -1.0 ? 0.5 * scaled : x < 0.0 ? half : one);
  return x < -1.0 ? log - 0.5 * x * x : x < 0.0 ? log : log + rest;
}

// erf y = x: y = x p(w) with w = -log(1 - x^2), and with its root from 25/4 on (after Giles, "Approximating the erfinv
// function", GPU Computing Gems, 2011; the polynomials interpolate at Chebyshev's nodes).

inline double erfinv_factor(double w) {
  double s = std::sqrt(w);
  double u = (w > 6.25 ? 6.25 : w) - 3.125,
         v = (s < 2.5   ? 2.5
              : s > 4.0 ? 4.0
                        : s) -
             3.25,
         far = (s < 4.0 ? 4.0 : s) - 5.0625;
  double central =
      horner(u, -2.3623696985661072e-22, -1.6787330615256773e-19, 1.1027771591500033e-18, 1.1125794759379464e-17,
             -1.290702354613073e-16, 2.1669946262835741e-17, 6.5819553059292389e-15, -4.0554139746886002e-14,
             -8.1065944564384956e-14, 2.6335724924608484e-12, -1.2977505202014966e-11, -5.4154417754696635e-11,
             1.0512202440121784e-09, -4.1126331042976142e-09, -2.9070386660191431e-08, 4.2347877672780653e-07,
             -1.3654691796592068e-06, -1.3882523361276876e-05, 0.00018673420802124271, -0.00074070253416694016,
             -0.0060336708714270109, 0.2401581824255897, 1.6536545626831027);
  double tail = horner(v, -3.8310399460724111e-10, 9.0719505710299223e-08, -2.6860975725571463e-07,
                       1.8323999881328579e-08, 1.4958263152984917e-06, -4.0139463981902916e-06, 2.9273722115986924e-06,
                       1.2475343474376931e-05, -4.7319529183371892e-05, 6.8284840522929237e-05, 2.4031363245440546e-05,
                       -0.00035503751863069763, 0.00095328935211181774, -0.0016882755561681802, 0.0024914420976198813,
                       -0.0037512085075638536, 0.0053709145535581985, 1.0052589676941592, 3.0838856104922208);
  double end = horner(far, 2.4693196084563386e-11, 5.2539723352069946e-12, -3.6695811798665887e-10,
                      1.1413797834714118e-09, -2.4618581103572143e-09, 5.2066794094545969e-09, -1.035912973071095e-08,
                      2.0462406614365618e-08, -5.2303616601660486e-08, 1.9554125428267044e-07, -8.8722613623808529e-07,
                      4.1153673471007366e-06, -1.8062951963498791e-05, 7.0101673452544191e-05, -0.00019677853804059186,
                      -0.00017730336124786207, 1.0102806778035605, 4.9130495872337852);
  return w < 6.25 ? central : s < 4.0 ? tail : end;
}
/// The same within float's precision and range: w up to 17.
inline double coarse_erfinv_factor(double w) {
  double s = std::sqrt(w), u = (w > 6.25 ? 6.25 : w) - 3.125, v = (s < 2.5 ? 2.5 : s) - 3.375;
  double central =
      horner(u, 2.357528333465035e-12, 6.6767760814803372e-10, -4.6628274722408052e-09, -2.4902560095825105e-08,
             4.2610125519443354e-07, -1.3863968794003408e-06, -1.3888332951186868e-05, 0.00018678185316355981,
             -0.00074069774858969816, -0.0060337106419588206, 0.24015818177853077, 1.6536545680743835);
  double tail = horner(v, 4.0981856435058484e-05, 1.5183144306226802e-05, -0.00031535785155857251,
                       0.00070001573291432429, -0.0010820630752175905, 0.0016257176941521056, -0.0027353316061914869,
                       0.0041690660981852246, 1.0064434319548243, 3.2096201204829771);
  return w < 6.25 ? central : tail;
}

inline double inverse_error_function(double x) {
  double y = x * erfinv_factor(-logarithm((1.0 - x) * (1.0 + x)));
  return std::fabs(x) == 1.0 ? x * std::numeric_limits<double>::infinity() : y;
}
inline float inverse_error_function(float x) {
  double left = (1.0 - double(x)) * (1.0 + double(x)), y = x * coarse_erfinv_factor(-coarse_logarithm(left));
  float edge = left == 0.0 ? x * std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  return left > 0.0 ? float(y) : edge;
}

/// The quantile of the normal distribution, for p from `least_quantile` to below 1.
constexpr double least_quantile = 2e-17;
inline double normal_quantile_of(double p) {
  return 1.41421356237309504880 * ((2.0 * p - 1.0) * erfinv_factor(-logarithm(4.0 * p * (1.0 - p))));
}

}  // namespace
}  // namespace rushlight::RUSHLIGHT_ISA
