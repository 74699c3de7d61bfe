// Operators that work along one dimension: the lines of a tensor, handed to kernels/line.h in parallel.
#pragma once

#include "kernels/line.h"
#include "kernels/nest.h"
#include "kernels/parallel.h"
#include "operators/operators.h"

namespace rushlight {

/// The length and element stride of `t` along `dim`; a 0-d tensor is a line of one.
struct Along {
  std::int64_t n, stride;
};
inline Along along(const Tensor& t, int dim) { return t.ndim ? Along{t.size(dim), t.stride(dim)} : Along{1, 1}; }

/// Calls f(pointer to the first element of the line in each of the tensors) for every line along `dim`. The tensors
/// have the same sizes but along `dim`; the first is read, the others are written.
template <class F>
void for_each_line(int dim, const Tensor& in, std::initializer_list<const Tensor*> outs, F&& f) {
  constexpr int most = 4;
  Dims sizes(in.sizes());
  if (in.ndim) sizes[dim] = 1;
  const std::int64_t* strides[most];
  std::int64_t items[most];
  char* base[most];
  int k = 0;
  strides[k] = in.strides().data();
  items[k] = in.item_size();
  base[k++] = const_cast<char*>(reinterpret_cast<const char*>(in.read()));
  for (const Tensor* out : outs) {
    strides[k] = out->strides().data();
    items[k] = out->item_size();
    base[k++] = reinterpret_cast<char*>(out->write());
  }
  Nest nest(sizes, strides, items, k);
  std::int64_t n = std::max<std::int64_t>(along(in, dim).n, 1);
  parallel_for(nest.numel, std::max<std::int64_t>(1, (1 << 13) / n), [&](std::int64_t begin, std::int64_t end) {
    nest.run(base, begin, end, [&](char** p, std::int64_t count, const std::int64_t* steps) {
      for (std::int64_t i = 0; i < count; ++i) {
        char* at[most];
        for (int j = 0; j < k; ++j) at[j] = p[j] + i * steps[j];
        f(at);
      }
    });
  });
}

}  // namespace rushlight
