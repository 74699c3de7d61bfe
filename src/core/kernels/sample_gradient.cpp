#include "kernels/sample_gradient.h"

#include <cmath>
#include <limits>

#include "kernels/special.h"

namespace rushlight {
namespace {

// Adds terms[k] * factor[k] until they are small: `next(k, term, factor)` makes each from the one before. Terms are
// positive; they grow first where the number is in the upper tail, and the series is over when they have shrunk again.
template <class Next>
double sum_series(double factor, Next next) {
  constexpr double small = 1e-17;
  double term = 1, sum = factor, size = std::fabs(factor);
  for (double k = 0;; k += 1) {
    const double before = term;
    next(k, term, factor);
    sum += term * factor;
    size += std::fabs(term * factor);
    if (term < before && term * (1 + std::fabs(factor)) <= small * size) return sum;
    if (!std::isfinite(sum)) return sum;
  }
}

// For large shapes, from Cornish and Fisher's expansion of x in the normal number u of the same quantile.
double large_gamma_gradient(double a, double x) {
  const double root = std::sqrt(a);
  double u = (x - a) / root;
  for (int i = 0; i < 6; ++i)
    u = (x - a - (u * u - 1) / 3 - (u * u * u - 7 * u) / (36 * root) +
         (3 * u * u * u * u + 7 * u * u - 16) / (810 * a)) /
        root;
  return 1 + u / (2 * root) - (u * u * u - 7 * u) / (72 * a * root) +
         (3 * u * u * u * u + 7 * u * u - 16) / (810 * a * a);
}

// For large shapes the number is nearly normal, and keeps its distance from the mean in standard deviations.
double large_dirichlet_gradient(double x, double a, double total) {
  const double b = total - a, mean = a / total, deviation = std::sqrt(mean * (b / total) / (total + 1));
  const double u = (x - mean) / deviation;
  // the logarithmic derivative of the deviation, and the derivative of the mean, b being constant
  const double relative = 0.5 * (1 / a - 2 / total - 1 / (total + 1));
  return (b / total / total + u * deviation * relative) / (1 - x);
}

}  // namespace

double gamma_gradient(double a, double x) {
  if (x <= 0) return 0;
  if (!(a > 0 && std::isfinite(x))) return std::numeric_limits<double>::quiet_NaN();
  if (a > 1e4) return large_gamma_gradient(a, x);
  // F = x^a e^-x sum_k x^k / Gamma(a + k + 1), differentiated term by term
  const double factor = digamma(a + 1) - std::log(x);
  return x / a * sum_series(factor, [=](double k, double& term, double& f) {
           term *= x / (a + 1 + k);
           f += 1 / (a + 1 + k);
         });
}

double dirichlet_gradient(double x, double a, double total) {
  const double b = total - a;
  if (x <= 0 || b == 0) return 0;
  if (!(a > 0 && b > 0 && x <= 1 && std::isfinite(total))) return std::numeric_limits<double>::quiet_NaN();
  if (a > 1e7 && b > 1e7) return large_dirichlet_gradient(x, a, total);
  // Of two series choose the one whose terms soon shrink; below the mean, while that is not too slow, the first one,
  // whose terms do not cancel there.
  if (x <= 0.5 || (x <= 0.98 && x <= (a + 1) / (total + 2))) {
    // F = x^a (1 - x)^b / (a B(a, b)) sum_k x^k (a + b)_k / (a + 1)_k, differentiated term by term
    const double factor = digamma(a + 1) - digamma(total) - std::log(x);
    return x / a * sum_series(factor, [=](double k, double& term, double& f) {
             term *= x * (total + k) / (a + 1 + k);
             f += 1 / (a + 1 + k) - 1 / (total + k);
           });
  }
  // the same series of 1 - F, in which x and 1 - x, a and b have changed places
  const double y = 1 - x, factor = std::log(x) + digamma(total) - digamma(a);
  return x / b * sum_series(factor, [=](double k, double& term, double& f) {
           term *= y * (total + k) / (b + 1 + k);
           f += 1 / (total + k);
         });
}

}  // namespace rushlight
