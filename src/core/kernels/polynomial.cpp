// Orthogonal polynomials by their recurrences of three terms (NIST's Digital Library of Mathematical Functions, 18.9).
#include "kernels/polynomial.h"

#include <cmath>
#include <cstdint>

namespace rushlight {
namespace {

/// p0 = 1, p1 = first, then p(k + 1) = next(k, p(k), p(k - 1)), until degree n or until it is no number any more.
template <class Next>
double climb(double n, double first, Next&& next) {
  if (std::isnan(n) || n <= -1) return 0;
  if (n < 1) return 1;
  auto degree = std::int64_t(std::fmin(n, 9e18));
  double before = 1, here = first;
  for (std::int64_t k = 1; k < degree && !std::isnan(here); ++k) {
    double after = next(double(k), here, before);
    before = here;
    here = after;
  }
  return here;
}

/// All four kinds have the recurrence p(k + 1) = 2 x p(k) - p(k - 1).
double chebyshev(double x, double n, double first) {
  return climb(n, first, [x](double, double here, double before) { return 2 * x * here - before; });
}

/// Inside of (-1, 1) and at high degrees a quotient of two waves is as good, and quick: x is the cosine of the angle.
bool is_wave(double x, double n) { return n > 64 && std::fabs(x) < 1; }

}  // namespace

double chebyshev_t(double x, double n) {
  if (is_wave(x, n)) return std::cos(std::trunc(n) * std::acos(x));
  return chebyshev(x, n, x);
}

double chebyshev_u(double x, double n) {
  if (is_wave(x, n)) return std::sin((std::trunc(n) + 1) * std::acos(x)) / std::sin(std::acos(x));
  return chebyshev(x, n, 2 * x);
}

double chebyshev_v(double x, double n) {
  if (is_wave(x, n)) return std::cos((std::trunc(n) + 0.5) * std::acos(x)) / std::cos(0.5 * std::acos(x));
  return chebyshev(x, n, 2 * x - 1);
}

double chebyshev_w(double x, double n) {
  if (is_wave(x, n)) return std::sin((std::trunc(n) + 0.5) * std::acos(x)) / std::sin(0.5 * std::acos(x));
  return chebyshev(x, n, 2 * x + 1);
}

double shifted_chebyshev_t(double x, double n) { return chebyshev_t(2 * x - 1, n); }
double shifted_chebyshev_u(double x, double n) { return chebyshev_u(2 * x - 1, n); }
double shifted_chebyshev_v(double x, double n) { return chebyshev_v(2 * x - 1, n); }
double shifted_chebyshev_w(double x, double n) { return chebyshev_w(2 * x - 1, n); }

double hermite_h(double x, double n) {
  return climb(n, 2 * x, [x](double k, double here, double before) { return 2 * x * here - 2 * k * before; });
}

double hermite_he(double x, double n) {
  return climb(n, x, [x](double k, double here, double before) { return x * here - k * before; });
}

double laguerre_l(double x, double n) {
  return climb(n, 1 - x,
               [x](double k, double here, double before) { return ((2 * k + 1 - x) * here - k * before) / (k + 1); });
}

double legendre_p(double x, double n) {
  return climb(n, x,
               [x](double k, double here, double before) { return ((2 * k + 1) * x * here - k * before) / (k + 1); });
}

}  // namespace rushlight
