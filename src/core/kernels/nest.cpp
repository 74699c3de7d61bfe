#include "kernels/nest.h"

#include <algorithm>
#include <cstdlib>

namespace rushlight {

Nest::Nest(IntSpan shape, const std::int64_t* const* strides, const std::int64_t* item, int n) : n_operands(n) {
  int dims[64], count = 0;
  for (int d = int(shape.size()) - 1; d >= 0; --d) {
    numel *= shape[std::size_t(d)];
    if (shape[std::size_t(d)] != 1) dims[count++] = d;
  }
  // insertion sort, innermost first: the output's stride decides, then the inputs'
  auto inner = [&](int a, int b) {
    for (int k = n - 1; k >= 0; --k) {
      std::int64_t x = std::llabs(strides[k][a]), y = std::llabs(strides[k][b]);
      if (x && y && x != y) return x < y;
    }
    return a > b;
  };
  for (int i = 1; i < count; ++i)
    for (int j = i; j > 0 && inner(dims[j], dims[j - 1]); --j) std::swap(dims[j], dims[j - 1]);
  for (int i = 0; i < count; ++i) {
    int d = dims[i];
    bool merge = ndim > 0;
    for (int k = 0; k < n && merge; ++k) merge = strides[k][d] * item[k] == steps[ndim - 1][k] * sizes[ndim - 1];
    if (merge) {
      sizes[ndim - 1] *= shape[std::size_t(d)];
      continue;
    }
    sizes[ndim] = shape[std::size_t(d)];
    for (int k = 0; k < n; ++k) steps[ndim][k] = strides[k][d] * item[k];
    ++ndim;
  }
  if (ndim == 0) {
    sizes[0] = 1;
    for (int k = 0; k < n; ++k) steps[0][k] = 0;
  }
}

Nest& Nest::operator=(const Nest& other) {
  if (this == &other) return *this;
  n_operands = other.n_operands;
  ndim = other.ndim;
  numel = other.numel;
  for (int d = 0; d < std::max(ndim, 1); ++d) {
    sizes[d] = other.sizes[d];
    std::copy_n(other.steps[d], n_operands, steps[d]);
  }
  return *this;
}

}  // namespace rushlight
