// A loop nest over several strided operands of one shape: dimensions ordered by the stride of the last operand (the
// output), neighbours that run on merged, so that the innermost loop is as long and as regular as the layouts allow.
#pragma once

#include <cstdint>

#include "tensor/dims.h"

namespace rushlight {

constexpr int max_operands = 24;

struct Nest {
  int n_operands = 0;
  int ndim = 0;  ///< dimension 0 is the innermost
  std::int64_t numel = 1;
  std::int64_t sizes[64];
  std::int64_t steps[64][max_operands];  ///< in bytes

  Nest() = default;
  Nest(const Nest& other) { *this = other; }
  /// Copies what is in use: the arrays are 13 kB, as they have room for any shape.
  Nest& operator=(const Nest& other);
  /// strides[k]: the element strides of operand k (one per size), item[k]: its element's bytes.
  Nest(IntSpan shape, const std::int64_t* const* strides, const std::int64_t* item, int n);

  /// Calls f(pointers, n, steps) for inner runs that cover elements [begin, end) in the nest's order.
  template <class F>
  void run(char* const* base, std::int64_t begin, std::int64_t end, F&& f) const {
    if (begin >= end) return;
    std::int64_t at[64];
    char* p[max_operands];
    for (int k = 0; k < n_operands; ++k) p[k] = base[k];
    std::int64_t rest = begin;
    for (int d = 0; d < ndim; ++d) {
      at[d] = rest % sizes[d];
      rest /= sizes[d];
      for (int k = 0; k < n_operands; ++k) p[k] += at[d] * steps[d][k];
    }
    std::int64_t left = end - begin;
    while (true) {
      std::int64_t n = ndim ? sizes[0] - at[0] : 1;
      if (n > left) n = left;
      f(p, n, steps[0]);
      left -= n;
      if (left == 0) return;
      for (int k = 0; k < n_operands; ++k) p[k] -= at[0] * steps[0][k];
      at[0] = 0;
      for (int d = 1; d < ndim; ++d) {
        for (int k = 0; k < n_operands; ++k) p[k] += steps[d][k];
        if (++at[d] < sizes[d]) break;
        for (int k = 0; k < n_operands; ++k) p[k] -= sizes[d] * steps[d][k];
        at[d] = 0;
      }
    }
  }
};

}  // namespace rushlight
