#include "kernels/bins.h"

#include <algorithm>

namespace rushlight {

namespace {

// The first i < n with stops(i), else n. NaNs in the sequence are handled as PyTorch's same bisection handles them.
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

template <bool right, class T, class Index, class Boundary>
void search(Boundary boundary, std::int64_t n, const T* values, std::int64_t m, Index* out) {
  for (std::int64_t i = 0; i < m; ++i) {
    const T x = values[i];
    out[i] = Index(bisect(n, [=](std::int64_t j) { return right ? boundary(j) > x : boundary(j) >= x; }));
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
void bounds_of_integers(const T* in, std::int64_t n, std::int64_t& least, std::int64_t& largest) {
  const auto [low, high] = std::minmax_element(in, in + n);
  least = *low;
  largest = *high;
}

template <class T, class Total>
void add_by_index(const T* in, std::int64_t n, const Total* weights, Total* totals) {
  for (std::int64_t i = 0; i < n; ++i) totals[in[i]] += weights ? weights[i] : Total(1);
}

// clang-format off
#define FOR_INTEGRAL(M) M(std::uint8_t) M(std::int8_t) M(std::int16_t) M(std::int32_t) M(std::int64_t)
#define FOR_FLOATING(M) M(Half) M(BFloat16) M(float) M(double)
#define INSTANTIATE_SEARCH(T) \
  template void search_sorted(const T*, std::int64_t, const std::int64_t*, const T*, std::int64_t, bool, \
      std::int32_t*); \
  template void search_sorted(const T*, std::int64_t, const std::int64_t*, const T*, std::int64_t, bool, std::int64_t*);
#define INSTANTIATE_INTEGRAL(T) \
  template void bounds_of_integers(const T*, std::int64_t, std::int64_t&, std::int64_t&); \
  template void add_by_index(const T*, std::int64_t, const std::int64_t*, std::int64_t*); \
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
