// The comparison of pooling with channels last.
#include <algorithm>
#include <cstdint>

#include "kernels/cpu.h"

namespace rushlight::RUSHLIGHT_ISA {

/// Where x is greater, or not a number, it and its place take over.
void max_into(const float* x, std::int64_t n, std::int32_t here, bool first, float* __restrict best,
              std::int32_t* __restrict places) {
  if (first) {
    std::copy_n(x, n, best);
    std::fill_n(places, n, here);
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    bool better = x[i] > best[i] || x[i] != x[i];
    best[i] = better ? x[i] : best[i];
    places[i] = better ? here : places[i];
  }
}

}  // namespace rushlight::RUSHLIGHT_ISA
