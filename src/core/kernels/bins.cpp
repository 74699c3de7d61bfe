#include "kernels/bins.h"

#include <algorithm>
#include <limits>

namespace rushlight {

namespace {

// The first i < n with stops(i), else n. Where NaNs or disorder make stops() come and go, this is the one that
// PyTorch's same bisection finds.
template <class F>
std::int64_t bisect(std::int64_t n, F stops) {
  std::int64_t first = 0, last = n;
  while (first < last) {
    const std::int64_t middle = first + (last - first) / 2;
    if (stops(middle))
      last = middle;
    else
      first = middle + 1;
  }
  return first;
}

// The same where stops() comes once and stays, for n >= 1: the steps depend on n alone and nothing branches on what is
// found, so that the processor works on several searches at a time.
template <class F>
std::int64_t bisect_in_order(std::int64_t n, F stops) {
  std::int64_t first = 0;
  for (std::int64_t left = n; left > 1;) {
    const std::int64_t half = left / 2;
    first += half & -std::int64_t(!stops(first + half - 1));
    left -= half;
  }
  return first + !stops(first);
}

template <bool right, class T, class Index, class Boundary>
void search(Boundary boundary, std::int64_t n, const T* values, std::int64_t m, Index* out) {
  bool in_order = n > 0 && m >= n / 64;  // else it does not pay to look
  for (std::int64_t i = 1; in_order && i < n; ++i) in_order = boundary(i - 1) <= boundary(i);
  for (std::int64_t i = 0; i < m; ++i) {
    const T x = values[i];
    auto stops = [=](std::int64_t j) { return right ? boundary(j) > x : boundary(j) >= x; };
    out[i] = Index(in_order ? bisect_in_order(n, stops) : bisect(n, stops));
  }
}

template <bool right, class T, class Index>
void search(const T* boundaries, std::int64_t n, const std::int64_t* sorter, const T* values, std::int64_t m,
            Index* out) {
  if (sorter)
    search<right>([=](std::int64_t i) { return boundaries[sorter[i]]; }, n, values, m, out);
  else
    search<right>([=](std::int64_t i) { return boundaries[i]; }, n, values, m, out);
}

}  // namespace

template <class T, class Index>
void search_sorted(const T* boundaries, std::int64_t n, const std::int64_t* sorter, const T* values, std::int64_t m,
                   bool right, Index* out) {
  if (right)
    search<true>(boundaries, n, sorter, values, m, out);
  else
    search<false>(boundaries, n, sorter, values, m, out);
}

template <class T>
void count_in_parts(const T* in, std::int64_t n, std::int64_t bins, T low, T high, std::int64_t* counts) {
  const auto count = static_cast<T>(bins), width = T(high - low);
  for (std::int64_t i = 0; i < n; ++i) {
    if (!(in[i] >= low && in[i] <= high)) continue;
    const T distance = T(in[i] - low), scaled = T(distance * count), part = T(scaled / width);
    ++counts[std::min(std::int64_t(part), bins - 1)];
  }
}

template <class T>
void count_by_index(const T* in, std::int64_t n, std::int64_t bins, std::int64_t* counts) {
  constexpr std::int64_t most = 1 << 10, tables = 4;  // the next count of a bin would wait for the last one
  std::int64_t i = 0;
  if (bins <= most && n >= 16 * bins) {
    std::uint32_t parts[tables][most] = {};
    const std::int64_t whole = std::min(n, std::int64_t(std::numeric_limits<std::uint32_t>::max())) / tables * tables;
    for (; i < whole; i += tables)
      for (std::int64_t k = 0; k < tables; ++k) ++parts[k][in[i + k]];
    for (std::int64_t bin = 0; bin < bins; ++bin)
      for (std::int64_t k = 0; k < tables; ++k) counts[bin] += parts[k][bin];
  }
  for (; i < n; ++i) ++counts[in[i]];
}

template <class T, class Total>
void add_by_index(const T* in, std::int64_t n, const Total* weights, Total* totals) {
  for (std::int64_t i = 0; i < n; ++i) totals[in[i]] += weights[i];
}

// clang-format off
#define FOR_INTEGRAL(M) M(std::uint8_t) M(std::int8_t) M(std::int16_t) M(std::int32_t) M(std::int64_t)
#define FOR_FLOATING(M) M(Half) M(BFloat16) M(float) M(double)
#define INSTANTIATE_SEARCH(T) \
  template void search_sorted(const T*, std::int64_t, const std::int64_t*, const T*, std::int64_t, bool, \
      std::int32_t*); \
  template void search_sorted(const T*, std::int64_t, const std::int64_t*, const T*, std::int64_t, bool, std::int64_t*);
#define INSTANTIATE_INTEGRAL(T) \
  template void count_by_index(const T*, std::int64_t, std::int64_t, std::int64_t*); \
  template void add_by_index(const T*, std::int64_t, const float*, float*); \
  template void add_by_index(const T*, std::int64_t, const double*, double*);
#define INSTANTIATE_FLOATING(T) \
  template void count_in_parts(const T*, std::int64_t, std::int64_t, T, T, std::int64_t*);
FOR_INTEGRAL(INSTANTIATE_SEARCH)
FOR_FLOATING(INSTANTIATE_SEARCH)
FOR_INTEGRAL(INSTANTIATE_INTEGRAL)
FOR_FLOATING(INSTANTIATE_FLOATING)
// clang-format on

}  // namespace rushlight
