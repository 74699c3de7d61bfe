// Bounds of indices, compiled once per instruction set: the sign of a union of differences says whether one of them is
// negative, without a comparison or a branch per index.
#include <algorithm>

#include "kernels/bounds.h"

namespace rushlight::RUSHLIGHT_ISA {

bool within(const std::int64_t* index, std::int64_t n, std::int64_t low, std::int64_t size) {
  std::uint64_t below = 0, above = 0, first = std::uint64_t(low), last = std::uint64_t(size - 1);
  for (std::int64_t k = 0; k < n; ++k) {
    auto at = std::uint64_t(index[k]);
    below |= at - first;
    above |= last - at;
  }
  return std::int64_t(below | above) >= 0;
}

Extent extent(DType type, const void* integers, std::int64_t n) {
  return visit_only<[]<class T>() { return std::is_integral_v<T>; }>(type, "extent", [&]<class T>() {
    const T* p = static_cast<const T*>(integers);
    T least = p[0], largest = p[0];
    for (std::int64_t i = 1; i < n; ++i) {
      least = std::min(least, p[i]);
      largest = std::max(largest, p[i]);
    }
    return Extent{std::int64_t(least), std::int64_t(largest)};
  });
}

}  // namespace rushlight::RUSHLIGHT_ISA
