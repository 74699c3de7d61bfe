#include "operators/reduce.h"

#include "kernels/reduction.h"
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

struct Reduced {
  Dims dims;        ///< wrapped, ascending; all where none were named
  Dims kept_sizes;  ///< 1 at reduced dimensions
  Dims sizes;       ///< without them
  std::uint64_t mask = 0;
};

Reduced reduced(const Tensor& t, IntSpan dims) {
  Reduced r;
  for (auto d : dims) {
    int w = wrap_dim(d, t.ndim);
    check(!((r.mask >> w) & 1), "dim ", w, " appears multiple times in the list of dims");
    r.mask |= std::uint64_t(1) << w;
  }
  if (dims.empty()) r.mask = t.ndim ? ~std::uint64_t(0) >> (64 - t.ndim) : 0;
  for (int i = 0; i < t.ndim; ++i) {
    bool gone = (r.mask >> i) & 1;
    if (gone) r.dims.push_back(i);
    r.kept_sizes.push_back(gone ? 1 : t.size(i));
    if (!gone) r.sizes.push_back(t.size(i));
  }
  return r;
}

}  // namespace

TensorRef sum(const Tensor& t, IntSpan dims, bool keepdim, std::optional<DType> dtype) {
  DType type = dtype ? *dtype : category(t.dtype) < 2 ? DType::Int64 : t.dtype;
  TensorRef x = t.dtype == type ? TensorRef(const_cast<Tensor*>(&t)) : cast(t, type);
  Reduced r = reduced(*x, dims);
  TensorRef out = empty(keepdim ? r.kept_sizes : r.sizes, type);
  reduce_sum(*x, r.mask, *out);
  return record(dims.empty() && !keepdim ? "SumBackward0" : "SumBackward1", out, {x.get()}, {}, [from = Dims(x->sizes()), kept = r.kept_sizes](Vjp& v) {
    const Tensor& g = *v.grad();
    v.set(0, expand(equal(g.sizes(), kept) ? g : *view(g, kept), from));
  });
}

// ---- the operators

namespace {

TensorRef sum_all(const Tensor& t, std::optional<DType> dtype) { return sum(t, {}, false, dtype); }
TensorRef sum_dims(const Tensor& t, const std::optional<Dims>& dim, bool keepdim, std::optional<DType> dtype) {
  return sum(t, dim ? IntSpan(*dim) : IntSpan(), keepdim, dtype);
}

const Define reductions[] = {
    {"sum(Tensor self, *, dtype? dtype=None)", &sum_all, Both | Out, "The sum of all elements, or over dimensions."},
    {"sum(Tensor self, int[]? dim, bool keepdim=False, *, dtype? dtype=None)", &sum_dims, Both | Out},
};

}  // namespace

}  // namespace rushlight
