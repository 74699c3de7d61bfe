#include "operators/extremum.h"

#include "operators/along.h"
#include "operators/finite.h"
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {

TensorRef evenly_shared(Vjp& v, const Tensor& g, const Tensor& x, const Tensor& result, const Reduced& r, bool nans) {
  TensorRef mask, count, kept = restored(result, r.kept_sizes);
  {
    GradScope off(false);
    mask = eq(x, kept);
    if (nans && has_nan(*kept)) mask = logical_or(mask, logical_and(isnan_of(x), isnan_of(kept)));
    count = sum(*mask, r.dims, true);
  }
  return mul(div(restored(g, v.shape(r.kept_sizes)), count), mask);
}

namespace {

/// The extremes in the input's type, without history.
TensorRef extreme(FoldKind kind, const Tensor& t, const Reduced& r, bool keepdim, const char* operation) {
  TensorRef out = folded(kind, t, r, keepdim, operation);
  return out->dtype == t.dtype ? out : cast(*out, t.dtype);
}

/// amax, amin, and max and min over all.
TensorRef shared_extreme(FoldKind kind, const char* node, const Tensor& t, IntSpan dims, bool keepdim,
                         const char* operation, bool nans) {
  Reduced r(t, dims);
  r.refuse_empty(t, dims, operation);
  TensorRef out = extreme(kind, t, r, keepdim, operation);
  return record(node, out, {&t}, {save_in(t, 0), save_out(out)}, by_rows([r, nans](Vjp& v) {
                  v.set(0, evenly_shared(v, *v.grad(), *v.saved(0), *v.saved(1), r, nans));
                }));
}

/// The places of the extremes along one dimension; `values` have the shape of the result.
TensorRef places(const Tensor& t, int dim, const Tensor& values) {
  TensorRef out = empty(values.sizes(), DType::Int64);
  find_first(t, dim, values.read(), out->write_as<std::int64_t>());
  return out;
}

using Pair = std::array<TensorRef, 2>;

/// max and min over a dimension: the values and where they stand first.
Pair chosen(FoldKind kind, const char* node, const Tensor& t, std::int64_t dim_, bool keepdim, const char* operation) {
  int dim = wrap_dim(dim_, t.ndim);
  std::int64_t dims[] = {dim};
  Reduced r(t, dims);
  check(!is_complex(t.dtype), operation, "(): does not support complex input");
  r.refuse_empty(t, dims, operation);
  TensorRef values = extreme(kind, t, r, keepdim, operation);
  Pair out{values, places(t, dim, *values)};
  const Tensor* inputs[] = {&t};
  Save saves[] = {save_other(out[1])};
  record_many(node, out, inputs, saves, by_rows([from = Dims(t.sizes()), dim, keepdim](Vjp& v) {
                v.set(0, choice_vjp(v, *v.grad(0), from, dim, *v.saved(0), keepdim));
              }));
  return out;
}

TensorRef place(FoldKind kind, const Tensor& t, std::optional<std::int64_t> dim_, bool keepdim, const char* operation) {
  check(t.dtype != DType::Bool, operation, "(): does not support bool input");
  check(!is_complex(t.dtype), operation, "(): does not support complex input");
  check_index(t.numel || dim_, operation, "(): Expected reduction dim to be specified for input.numel() == 0.");
  TensorRef flat(const_cast<Tensor*>(&t));
  if (!dim_) {
    GradScope off(false);
    flat = reshape(t, Dims{t.numel});
  }
  int dim = dim_ ? wrap_dim(*dim_, t.ndim) : 0;
  std::int64_t dims[] = {dim};
  Reduced r(*flat, dims);
  r.refuse_empty(*flat, dims, operation);
  TensorRef out = places(*flat, dim, *extreme(kind, *flat, r, keepdim, operation));
  return !dim_ && keepdim ? view(*out, Dims(t.ndim, 1)) : out;
}

Pair aminmax(const Tensor& t, std::optional<std::int64_t> dim, bool keepdim) {
  check(t.numel || dim, "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.");
  Dims dims;
  if (dim) {
    dims.push_back(wrap_dim(*dim, t.ndim));
    check_index(!t.ndim || t.size(int(dims[0])), "aminmax: Expected reduction dim ", dims[0],
                " to have non-zero size.");
  }
  Reduced r(t, dims);
  Pair out{extreme(FoldKind::Min, t, r, keepdim, "aminmax"), extreme(FoldKind::Max, t, r, keepdim, "aminmax")};
  const Tensor* inputs[] = {&t};
  Save saves[] = {save_in(t, 0), save_out(out[0], 0), save_out(out[1], 1)};
  record_many("AminmaxBackward0", out, inputs, saves, by_rows([r](Vjp& v) {
                TensorRef g;
                for (int i = 0; i < 2; ++i)
                  if (v.grad(i)) {
                    TensorRef part = evenly_shared(v, *v.grad(i), *v.saved(0), *v.saved(1 + i), r, false);
                    g = g ? add(*g, *part) : part;
                  }
                v.set(0, g);
              }));
  return out;
}

}  // namespace

TensorRef amax(const Tensor& t, IntSpan dims, bool keepdim) {
  return shared_extreme(FoldKind::Max, "AmaxBackward0", t, dims, keepdim, "amax", false);
}
TensorRef amin(const Tensor& t, IntSpan dims, bool keepdim) {
  return shared_extreme(FoldKind::Min, "AminBackward0", t, dims, keepdim, "amin", false);
}

// ---- the operators

namespace {

TensorRef max_all(const Tensor& t) { return shared_extreme(FoldKind::Max, "MaxBackward1", t, {}, false, "max", true); }
TensorRef min_all(const Tensor& t) { return shared_extreme(FoldKind::Min, "MinBackward1", t, {}, false, "min", true); }
Pair max_dim(const Tensor& t, std::int64_t dim, bool keepdim) {
  return chosen(FoldKind::Max, "MaxBackward0", t, dim, keepdim, "max");
}
Pair min_dim(const Tensor& t, std::int64_t dim, bool keepdim) {
  return chosen(FoldKind::Min, "MinBackward0", t, dim, keepdim, "min");
}
TensorRef max_other(const Tensor& t, const Tensor& other) { return maximum(t, other); }
TensorRef min_other(const Tensor& t, const Tensor& other) { return minimum(t, other); }
TensorRef amax_op(const Tensor& t, const std::optional<Dims>& dim, bool keepdim) {
  return amax(t, dims_of(dim), keepdim);
}
TensorRef amin_op(const Tensor& t, const std::optional<Dims>& dim, bool keepdim) {
  return amin(t, dims_of(dim), keepdim);
}
TensorRef argmax(const Tensor& t, std::optional<std::int64_t> dim, bool keepdim) {
  return place(FoldKind::Max, t, dim, keepdim, "argmax");
}
TensorRef argmin(const Tensor& t, std::optional<std::int64_t> dim, bool keepdim) {
  return place(FoldKind::Min, t, dim, keepdim, "argmin");
}

const std::vector<std::string> values_indices{"values", "indices"};

const Define extremes[] = {
    {"max(Tensor self)", &max_all, Both | Out,
     "The largest element; over a dimension, the largest and where it stands first; of two tensors, the larger element "
     "by element."},
    {"max(Tensor self, Tensor other)", &max_other, Both | Out},
    {"max(Tensor self, int dim, bool keepdim=False)", &max_dim, Both | Out, "", values_indices},
    {"min(Tensor self)", &min_all, Both | Out,
     "The smallest element; over a dimension, the smallest and where it stands first; of two tensors, the smaller "
     "element by element."},
    {"min(Tensor self, Tensor other)", &min_other, Both | Out},
    {"min(Tensor self, int dim, bool keepdim=False)", &min_dim, Both | Out, "", values_indices},
    {"amax(Tensor self, int[]? dim=[], bool keepdim=False)", &amax_op, Both | Out,
     "The largest over dimensions; equals share the gradient evenly."},
    {"amin(Tensor self, int[]? dim=[], bool keepdim=False)", &amin_op, Both | Out,
     "The smallest over dimensions; equals share the gradient evenly."},
    {"aminmax(Tensor self, *, int? dim=None, bool keepdim=False)",
     &aminmax,
     Both | Out,
     "The smallest and the largest, over all or over a dimension.",
     {"min", "max"}},
    {"argmax(Tensor self, int? dim=None, bool keepdim=False)", &argmax, Both | Out | NoGradient,
     "Where the largest element stands first, in the flattened tensor or along a dimension."},
    {"argmin(Tensor self, int? dim=None, bool keepdim=False)", &argmin, Both | Out | NoGradient,
     "Where the smallest element stands first, in the flattened tensor or along a dimension."},
};

}  // namespace
}  // namespace rushlight
