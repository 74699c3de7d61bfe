#include "kernels/special.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <numbers>

namespace rushlight {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double root_pi = 1.772453850905516027298167483341145;

/// sum over k >= 0 of (q + k)^-s for q > 0, s > 1: the first terms, then Euler's and Maclaurin's formula.
double zeta_above_zero(double s, double q) {
  // B_2j / (2j)!
  static constexpr double weights[] = {
      8.333333333333333e-02, -1.388888888888889e-03, 3.306878306878307e-05, -8.267195767195767e-07,
      2.087675698786810e-08, -5.284190138687493e-10, 1.338253653068468e-11, -3.389680296322583e-13,
      8.586062056277844e-15, -2.174868698558062e-16, 5.508999001560160e-18, -1.395431346250000e-19,
  };
  double sum = 0;
  for (int k = 0; k < 10 || q < 10; ++k, q += 1) {
    double term = std::pow(q, -s);
    sum += term;
    if (term < 1e-17 * sum || !std::isfinite(sum)) return sum;
  }
  double power = std::pow(q, -s);
  sum += power * q / (s - 1) + power / 2;
  double factor = s * power / q;
  for (int j = 0; j < int(std::size(weights)); ++j) {
    double term = weights[j] * factor;
    sum += term;
    if (std::fabs(term) < 1e-17 * std::fabs(sum)) break;
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2) / (q * q);
  }
  return sum;
}

/// exp(x^2) erfc(x) for x >= 0
double scaled_erfc(double x) {
  if (x < 8) {  // the square in two parts: its rounding would be magnified
    double square = x * x, rest = std::fma(x, x, -square);
    return std::exp(square) * std::erfc(x) * (1 + rest);
  }
  double s = 0.5 / (x * x), term = 1, sum = 1;
  for (int k = 1; k < 40; ++k) {
    term *= -(2 * k - 1) * s;
    sum += term;
    if (std::fabs(term) < 1e-18) break;
  }
  return sum / (x * root_pi);
}

/// erfc(y) = z for 0 < z <= 1/2: Newton's method on logarithms, from the first terms of the tail's expansion.
double inverse_erfc(double z) {
  double target = std::log(z);
  double size = -std::log(z * root_pi);
  double y = size > 1 ? std::sqrt(size - 0.5 * std::log(size)) : 0.6;
  for (int i = 0; i < 30; ++i) {
    double scaled = scaled_erfc(y);
    double step = (std::log(scaled) - y * y - target) * scaled * root_pi / 2;
    y += step;
    if (std::fabs(step) <= 1e-16 * std::fabs(y)) break;
  }
  return y;
}

}  // namespace

double digamma(double x) {
  if (x == 0) return std::copysign(infinity, -x);
  if (x < 0) {
    if (x == std::floor(x)) return nan;
    double part = x - std::trunc(x);
    return digamma(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * part);
  }
  // by recurrence to x >= 10, then the asymptotic series
  double shift = 0;
  for (; x < 10; x += 1) shift -= 1 / x;
  const double s = 1 / (x * x);
  const double tail =
      s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s * (691.0 / 32760))))));
  return shift + std::log(x) - 0.5 / x - tail;
}

double zeta(double s, double q) {
  if (std::isnan(s) || std::isnan(q) || s < 1) return nan;
  if (s == 1) return infinity;
  if (q == infinity) return 0;
  if (q > 0) return zeta_above_zero(s, q);
  if (q == std::floor(q)) return infinity;
  if (s != std::floor(s)) return nan;
  // the terms below zero are a difference of two sums above it
  double below = std::ceil(-q), first = -q - (below - 1);
  double sign = std::fmod(s, 2) == 0 ? 1 : -1;
  return sign * (zeta_above_zero(s, first) - zeta_above_zero(s, 1 - q)) + zeta_above_zero(s, q + below);
}

double polygamma(double x, double n) {
  if (n == 0) return digamma(x);
  double sign = std::fmod(n, 2) == 0 ? -1 : 1;
  return sign * std::exp(std::lgamma(n + 1)) * zeta(n + 1, x);
}

double normal_quantile(double p) {
  if (!(p >= 0 && p <= 1)) return nan;
  if (p == 0 || p == 1) return p == 0 ? -infinity : infinity;
  return -std::numbers::sqrt2 * inverse_erfc(2 * p);
}

}  // namespace rushlight
