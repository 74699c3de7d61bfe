#include "operators/along.h"

#include "operators/operators.h"

namespace rushlight {
TensorRef gather_along(const Tensor& t, int dim, const Tensor& index) { return gather(t, dim, index); }

TensorRef scatter_along(const Tensor& g, IntSpan sizes, int dim, const Tensor& index) {
  return scatter_add(*zeros(sizes, g.dtype), dim, index, g);
}

TensorRef scatter_along(Vjp& v, const Tensor& g, IntSpan sizes, int dim, const Tensor& index) {
  if (!v.has_rows()) return scatter_along(g, sizes, dim, index);
  if (sizes.empty()) return reshape(g, Dims{v.rows()});  // the one element
  TensorRef places = expand(index, v.shape(index.sizes()));
  return scatter_along(g, v.shape(sizes), v.dim(dim), *places);
}

TensorRef choice_vjp(Vjp& v, const Tensor& g, IntSpan sizes, int dim, const Tensor& index, bool keepdim) {
  if (keepdim || sizes.empty()) return scatter_along(v, g, sizes, dim, index);
  return scatter_along(v, *unsqueeze(g, v.dim(dim)), sizes, dim, *unsqueeze(index, dim));
}

}  // namespace rushlight
