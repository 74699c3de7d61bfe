#include "kernels/random_sample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/order.h"
#include "kernels/random.h"
#include "kernels/sort.h"
#include "tensor/error.h"

namespace rushlight {

namespace {

// PyTorch counts in 64-bit integers. What is no such number (an infinite rate gives NaN) becomes the least one, as on
// x86.
std::int64_t to_count(double value) {
  return std::fabs(value) < 0x1p63 ? std::int64_t(value) : std::numeric_limits<std::int64_t>::min();
}

std::int64_t poisson_by_rejection(MersenneTwister& generator, double rate) {
  const double root = std::sqrt(rate), log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = standard_uniform(generator) - 0.5, v = standard_uniform(generator);
    const double us = 0.5 - std::fabs(u);
    const std::int64_t k = to_count(std::floor((2 * a / us + b) * u + rate + 0.43));
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    const double log_v = std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b);
    if (log_v <= -rate + double(k) * log_rate - std::lgamma(double(k + 1))) return k;
  }
}

// log k! - (log sqrt(2 pi) + (k + 1/2) log(k + 1) - (k + 1)): the tail of Stirling's series about k + 1.
double stirling_tail(double k) {
  constexpr std::array<double, 10> table = {
      0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
      0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287,
  };
  if (k <= 9) return table[std::size_t(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

template <class Real>
double binomial_by_geometric(MersenneTwister& generator, Real count, Real p) {
  const double log_failure = std::log1p(-p);
  double trials = 0, successes = 0;
  while (true) {
    trials += std::ceil(std::log(standard_uniform(generator)) / log_failure);
    if (trials > count) return successes;
    successes += 1;
  }
}

// The result k and the expressions of k, `count` and p alone are in Real, the rest in double: that decides large
// floats.
template <class Real>
double binomial_by_rejection(MersenneTwister& generator, Real count, Real p) {
  const double deviation = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p, c = count * p + 0.5;
  const double v_r = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * deviation;
  const double odds = p / (1 - p), mode = std::floor((count + 1) * p);
  while (true) {
    const double u = standard_uniform(generator) - 0.5;
    double v = standard_uniform(generator);
    const double us = 0.5 - std::fabs(u);
    const auto k = Real(std::floor((2 * a / us + b) * u + c));
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || k > count) continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double bound = (mode + 0.5) * std::log((mode + 1) / (odds * (count - mode + 1))) +
                         (count + 1) * std::log((count - mode + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(odds * (count - k + 1) / (k + 1)) + stirling_tail(mode) +
                         stirling_tail(count - mode) - stirling_tail(k) - stirling_tail(count - k);
    if (v <= bound) return k;
  }
}

}  // namespace

std::int64_t sample_poisson(MersenneTwister& generator, double rate) {
  if (rate >= 10) return poisson_by_rejection(generator, rate);
  if (rate == 0) return 0;
  const double bound = std::exp(-rate);
  double product = 1;
  std::int64_t count = 0;
  while (true) {
    product *= standard_uniform(generator);
    if (product <= bound) return count;
    ++count;
  }
}

template <class Real>
Real sample_binomial(MersenneTwister& generator, Real count, Real p) {
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  if (std::isnan(p) || std::isnan(count)) return std::numeric_limits<Real>::quiet_NaN();
  if (std::isinf(count)) return count;
  auto sample = [&](Real rare) {
    return count * rare >= 10 ? binomial_by_rejection(generator, count, rare)
                              : binomial_by_geometric(generator, count, rare);
  };
  return Real(p <= 0.5 ? sample(p) : count - sample(1 - p));
}

template <class Real>
double sample_gamma(MersenneTwister& generator, Real alpha) {
  double scale = 1;
  if (alpha < 1) {
    if (alpha == 0) return 0;
    scale *= std::pow(1 - standard_uniform(generator), double(1 / alpha));
    alpha += 1;
  }
  const double d = alpha - Real(1.0f / 3.0f), c = 1 / std::sqrt(9 * d);
  while (true) {
    double x, y;
    do {
      x = standard_normal(generator);
      y = 1 + c * x;
    } while (y <= 0);
    const double v = y * y * y, u = 1 - standard_uniform(generator), xx = x * x;
    if (u < 1 - 0.0331 * xx * xx) return scale * d * v;
    if (std::log(u) < 0.5 * xx + d * (1 - v + std::log(v))) return scale * d * v;
  }
}

template <class T>
void fill_poisson(MersenneTwister& generator, T* out, const T* rate, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(sample_poisson(generator, double(rate[i])));
}

template <class T>
void fill_binomial(MersenneTwister& generator, T* out, const T* count, const T* p, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = sample_binomial(generator, count[i], p[i]);
}

template <class T>
void fill_gamma(MersenneTwister& generator, T* out, const T* alpha, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    out[i] = std::max(std::numeric_limits<T>::min(), T(sample_gamma(generator, alpha[i])));
}

namespace {

// A sum in the order of PyTorch's: four vectors of four lanes run along the row, whole vectors that are left over go to
// the first, the vectors are added, and then numbers that are left over, before the lanes.
double sum_row(const double* numbers, std::int64_t n) {
  constexpr std::int64_t lanes = 4, vectors = 4;
  std::array<std::array<double, lanes>, vectors> partial{};
  const std::int64_t whole = n / lanes, together = whole / vectors * vectors;
  for (std::int64_t v = 0; v < whole; ++v)
    for (std::int64_t k = 0; k < lanes; ++k)
      partial[std::size_t(v < together ? v % vectors : 0)][std::size_t(k)] += numbers[v * lanes + k];
  double sum = 0;
  for (std::int64_t i = whole * lanes; i < n; ++i) sum += numbers[i];
  for (std::size_t k = 0; k < lanes; ++k) sum += partial[0][k] + partial[1][k] + partial[2][k] + partial[3][k];
  return sum;
}

}  // namespace

template <class T>
void fill_dirichlet(MersenneTwister& generator, T* out, const T* alpha, std::int64_t rows, std::int64_t n) {
  std::vector<double> gamma(std::size_t(rows * n));
  fill_gamma(generator, gamma.data(), std::vector<double>(alpha, alpha + rows * n).data(), rows * n);
  const T largest = std::nextafter(T(1), T(0));
  for (std::int64_t row = 0; row < rows; ++row, out += n) {
    const double* numbers = gamma.data() + row * n;
    const double sum = sum_row(numbers, n);
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = std::min(largest, std::max(std::numeric_limits<T>::min(), T(numbers[i] / sum)));
  }
}

template <class T>
void sample_with_replacement(MersenneTwister& generator, std::int64_t* out, const T* weights, std::int64_t rows,
                             std::int64_t n, std::int64_t samples) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  std::vector<Real> sums(static_cast<std::size_t>(n));
  for (std::int64_t row = 0; row < rows; ++row, weights += n) {
    Real sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto weight = Real(weights[i]);
      check(weight >= 0, "invalid multinomial distribution (encountering probability entry < 0)");
      check(std::isfinite(weight),
            "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
      sum += weight;
      sums[std::size_t(i)] = sum;
    }
    check(sum > 0, "invalid multinomial distribution (sum of probabilities <= 0)");
    for (Real& partial : sums) partial /= sum;
    sums.back() = 1;
    for (std::int64_t i = 0; i < samples; ++i) {
      const double u = standard_uniform(generator);
      *out++ =
          std::lower_bound(sums.begin(), sums.end(), u, [](Real partial, double value) { return partial < value; }) -
          sums.begin();
    }
  }
}

template <class T>
void sample_without_replacement(MersenneTwister& generator, std::int64_t* out, const T* weights, std::int64_t rows,
                                std::int64_t n, std::int64_t samples) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  std::vector<T> races(static_cast<std::size_t>(rows * n)), finalists(static_cast<std::size_t>(samples));
  fill_exponential(generator, races.data(), rows * n, 1.0);
  for (std::size_t i = 0; i < races.size(); ++i) races[i] = T(Real(weights[i]) / Real(races[i]));
  for (std::int64_t row = 0; row < rows; ++row, out += samples) {
    const Line<const T> race{races.data() + row * n};
    if (samples == 1)
      *out = std::max_element(race.data, race.data + n, ascends<T>) - race.data;
    else
      topk_line(race, n, samples, true, true, Line<T>{finalists.data()}, Line<std::int64_t>{out});
  }
}

// clang-format off
#define FOR_FLOATING(M) M(float) M(double) M(Half) M(BFloat16)
#define INSTANTIATE_HALF(T) \
  template void fill_poisson(MersenneTwister&, T*, const T*, std::int64_t); \
  template void sample_with_replacement(MersenneTwister&, std::int64_t*, const T*, std::int64_t, std::int64_t, \
      std::int64_t); \
  template void sample_without_replacement(MersenneTwister&, std::int64_t*, const T*, std::int64_t, std::int64_t, \
      std::int64_t);
#define INSTANTIATE(T) \
  template T sample_binomial(MersenneTwister&, T, T); \
  template double sample_gamma(MersenneTwister&, T); \
  template void fill_binomial(MersenneTwister&, T*, const T*, const T*, std::int64_t); \
  template void fill_gamma(MersenneTwister&, T*, const T*, std::int64_t); \
  template void fill_dirichlet(MersenneTwister&, T*, const T*, std::int64_t, std::int64_t);
FOR_FLOATING(INSTANTIATE_HALF)
INSTANTIATE(float)
INSTANTIATE(double)
// clang-format on

}  // namespace rushlight
