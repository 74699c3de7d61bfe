#include "operators/along.h"

#include "operators/operators.h"

namespace rushlight {
TensorRef gather_along(const Tensor& t, int dim, const Tensor& index) { return gather(t, dim, index); }

TensorRef scatter_along(const Tensor& g, IntSpan sizes, int dim, const Tensor& index) {
  return scatter_add(*zeros(sizes, g.dtype), dim, index, g);
}

TensorRef choice_vjp(const Tensor& g, IntSpan sizes, int dim, const Tensor& index, bool keepdim) {
  if (keepdim || sizes.empty()) return scatter_along(g, sizes, dim, index);
  return scatter_along(*unsqueeze(g, dim), sizes, dim, *unsqueeze(index, dim));
}

}  // namespace rushlight
