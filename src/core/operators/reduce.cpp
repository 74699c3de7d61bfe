#include "operators/reduce.h"

#include "kernels/normalization.h"
#include "operators/deferred.h"
#include "operators/layout.h"
#include "operators/operators.h"
#include "operators/registry.h"
#include "operators/scan.h"

namespace rushlight {

Reduced::Reduced(const Tensor& t, IntSpan named, bool all_if_empty) {
  mask = dim_mask(named, t.ndim);
  if (named.empty() && all_if_empty) mask = t.ndim ? ~std::uint64_t(0) >> (64 - t.ndim) : 0;
  for (int i = 0; i < t.ndim; ++i) {
    bool gone = (mask >> i) & 1;
    if (gone) {
      dims.push_back(i);
      count *= t.size(i);
    }
    kept_sizes.push_back(gone ? 1 : t.size(i));
    if (!gone) sizes.push_back(t.size(i));
  }
}

void Reduced::refuse_empty(const Tensor& t, IntSpan named, const char* operation) const {
  if (t.numel) return;
  check(!named.empty(), operation,
        "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
        "argument.");
  for (auto d : dims)
    check_index(t.size(int(d)) != 0, operation, "(): Expected reduction dim ", d, " to have non-zero size.");
}

TensorRef restored(const Tensor& t, IntSpan kept_sizes) {
  return equal(t.sizes(), kept_sizes) ? TensorRef(const_cast<Tensor*>(&t)) : view(t, kept_sizes);
}

namespace {

/// Sums over the space of each channel, or over all but the channels, of numbers that lie with channels last.
bool sum_laid(const Tensor& t, std::uint64_t mask, float* out) {
  if (layout_of(t).order != Arrangement::ChannelsLast || t.dtype != DType::Float32) return false;
  std::uint64_t space = (~std::uint64_t(0) >> (64 - t.ndim)) & ~std::uint64_t(3);
  if (mask != space && mask != (space | 1)) return false;
  std::int64_t channels = t.size(1), parts = mask == space ? t.size(0) : 1, rows = t.numel / channels / parts;
  for (std::int64_t i = 0; i < parts; ++i)
    sum_columns(read_laid_as<float>(t) + i * rows * channels, rows, channels, true, out + i * channels);
  return true;
}

}  // namespace

TensorRef folded(FoldKind kind, const Tensor& t, const Reduced& r, bool keepdim, const char* operation,
                 const Tensor* centres) {
  const Fold& f = fold(kind, t.dtype, operation);
  TensorRef out = empty(r.shape(keepdim), f.state);
  if (kind == FoldKind::Sum && t.storage->layout && f.state == t.dtype && sum_laid(t, r.mask, out->write_as<float>()))
    return out;
  if (centres || !reduce_pending(f, t, r.mask, out->write()))
    reduce(f, t, r.mask, out->write(), centres ? centres->read() : nullptr);
  return out;
}

namespace {

/// The input in a type. A pending one that has it gets no new holder, so that one can tell whether anybody else wants
/// it.
const Tensor& in_type(const Tensor& t, DType type, TensorRef& converted) {
  if (t.dtype == type) return t;
  converted = cast(t, type);
  return *converted;
}

/// What a sum or product of a type gives.
DType total_type(const Tensor& t, const std::optional<DType>& dtype) {
  return dtype ? *dtype : category(t.dtype) < 2 ? DType::Int64 : t.dtype;
}

/// A fold in its natural type brought to `type`: halves round once, small integers asked for by name wrap around.
TensorRef total(FoldKind kind, const Tensor& t, const Reduced& r, bool keepdim, DType type, const char* operation) {
  TensorRef out = folded(kind, t, r, keepdim, operation);
  return out->dtype == type ? out : cast(*out, type);
}

/// The gradient of a sum: each element's is its output's.
auto spread(const Tensor& x, const Reduced& r) {
  return by_rows([from = Dims(x.sizes()), kept = r.kept_sizes](Vjp& v) {
    TensorRef g = restored(*v.grad(), v.shape(kept));
    v.set(0, expand(*g, v.shape(from)));
  });
}

}  // namespace

TensorRef sum(const Tensor& t, IntSpan dims, bool keepdim, std::optional<DType> dtype) {
  DType type = total_type(t, dtype);
  bool convert = category(t.dtype) < category(type) && category(type) >= 2;
  TensorRef converted;
  const Tensor& x = in_type(t, convert || (dtype && is_differentiable(t.dtype)) ? type : t.dtype, converted);
  Reduced r(x, dims);
  TensorRef out = total(FoldKind::Sum, x, r, keepdim, type, "sum");
  return record(dims.empty() && !keepdim ? "SumBackward0" : "SumBackward1", std::move(out), {&x}, {}, spread(x, r));
}

TensorRef mean(const Tensor& t, IntSpan dims, bool keepdim, std::optional<DType> dtype) {
  DType type = dtype.value_or(t.dtype);
  check(is_differentiable(type), "mean(): could not infer output dtype. ", dtype ? "Optional" : "Input",
        " dtype must be either a floating point or complex dtype. Got: ", info(type).scalar_name);
  TensorRef converted;
  const Tensor& x = in_type(t, type, converted);
  Reduced r(x, dims);
  TensorRef out = folded(FoldKind::Sum, x, r, keepdim, "mean");
  {
    GradScope off(false);
    out = cast(*div(out, Scalar(double(r.count))), type);
  }
  return record(dims.empty() && !keepdim ? "MeanBackward0" : "MeanBackward1", std::move(out), {&x}, {},
                by_rows([from = Dims(x.sizes()), kept = r.kept_sizes, count = r.count](Vjp& v) {
                  TensorRef g = div(restored(*v.grad(), v.shape(kept)), Scalar(double(count)));
                  v.set(0, expand(*g, v.shape(from)));
                }));
}

namespace {

/// The product along one dimension. An element's derivative is the product of all others, made without dividing.
TensorRef product(const char* node, const Tensor& x, const Reduced& r, bool keepdim, IntSpan lines, int dim) {
  return record(node, total(FoldKind::Prod, x, r, keepdim, x.dtype, "prod"), {&x}, {save_in(x, 0)},
                [kept = r.kept_sizes, lines = Dims(lines), dim](Vjp& v) {
                  TensorRef t = v.saved(0), g = restored(*v.grad(), kept);
                  if (t->numel == 0) return v.set(0, mul(g, t));
                  if (t->ndim == 0) return v.set(0, g);
                  TensorRef x = reshape(*t, lines),
                            others = mul(exclusive_products(*x, dim, false), exclusive_products(*x, dim, true));
                  v.set(0, mul(g, conjugate(*reshape(*others, t->sizes()))));
                });
}

}  // namespace

TensorRef prod(const Tensor& t, std::int64_t dim_, bool keepdim, std::optional<DType> dtype) {
  TensorRef x = cast(t, total_type(t, dtype));
  int dim = wrap_dim(dim_, t.ndim);
  std::int64_t dims[] = {dim};
  return product("ProdBackward1", *x, Reduced(*x, dims), keepdim, x->sizes(), dim);
}

TensorRef prod(const Tensor& t, std::optional<DType> dtype) {
  TensorRef x = cast(t, total_type(t, dtype));
  std::int64_t flat[] = {x->numel};
  return product("ProdBackward0", *x, Reduced(*x, {}), false, flat, 0);
}

bool all_true(const Tensor& t) {
  Reduced r(t, {});
  return *folded(FoldKind::All, t, r, false, "all")->read_as<bool>();
}

bool any_true(const Tensor& t) {
  Reduced r(t, {});
  return *folded(FoldKind::Any, t, r, false, "any")->read_as<bool>();
}

// ---- the operators

namespace {

TensorRef sum_all(const Tensor& t, std::optional<DType> dtype) { return sum(t, {}, false, dtype); }
TensorRef sum_dims(const Tensor& t, const std::optional<Dims>& dim, bool keepdim, std::optional<DType> dtype) {
  return sum(t, dims_of(dim), keepdim, dtype);
}
TensorRef mean_all(const Tensor& t, std::optional<DType> dtype) { return mean(t, {}, false, dtype); }
TensorRef mean_dims(const Tensor& t, const std::optional<Dims>& dim, bool keepdim, std::optional<DType> dtype) {
  return mean(t, dims_of(dim), keepdim, dtype);
}

TensorRef prod_all(const Tensor& t, std::optional<DType> dtype) { return prod(t, dtype); }
TensorRef prod_dim(const Tensor& t, std::int64_t dim, bool keepdim, std::optional<DType> dtype) {
  return prod(t, dim, keepdim, dtype);
}

TensorRef nansum(const Tensor& t, const std::optional<Dims>& dim, bool keepdim, std::optional<DType> dtype) {
  check(!is_complex(t.dtype), "nansum on CPU does not support complex inputs");
  if (category(t.dtype) < 2) return sum(t, dims_of(dim), keepdim, dtype);
  TensorRef converted;
  const Tensor& x = in_type(t, dtype.value_or(t.dtype), converted);
  if (!is_floating(x.dtype)) return sum(x, dims_of(dim), keepdim, dtype);
  Reduced r(x, dims_of(dim));
  return record(
      "NansumBackward0", total(FoldKind::NanSum, x, r, keepdim, x.dtype, "nansum"), {&x}, {save_in(x, 0)},
      [kept = r.kept_sizes](Vjp& v) {
        v.set(0, where(isnan_of(v.saved(0)), Scalar(0.0), expand(*restored(*v.grad(), kept), v.saved(0)->sizes())));
      });
}

TensorRef nanmean(const Tensor& t, const std::optional<Dims>& dim, bool keepdim, std::optional<DType> dtype) {
  check(is_floating(t.dtype) || is_complex(t.dtype),
        "nanmean(): expected input to have floating point or complex dtype but got ", info(t.dtype).scalar_name);
  TensorRef count;
  {
    GradScope off(false);
    count = sum(*logical_not(isnan_of(t)), dims_of(dim), keepdim);
  }
  return div(nansum(t, dim, keepdim, dtype), count);
}

/// any and all: bool, but uint8 stays uint8.
TensorRef question(FoldKind kind, const Tensor& t, const Reduced& r, bool keepdim, const char* operation) {
  return total(kind, t, r, keepdim, t.dtype == DType::UInt8 ? DType::UInt8 : DType::Bool, operation);
}
TensorRef any_dims(const Tensor& t, const std::optional<Dims>& dim, bool keepdim) {
  return question(FoldKind::Any, t, Reduced(t, dims_of(dim), !dim), keepdim, "any");
}
TensorRef all_dims(const Tensor& t, const std::optional<Dims>& dim, bool keepdim) {
  return question(FoldKind::All, t, Reduced(t, dims_of(dim), !dim), keepdim, "all");
}

TensorRef count_nonzero(const Tensor& t, const std::optional<Dims>& dim) {
  return folded(FoldKind::Count, t, Reduced(t, dims_of(dim)), false, "count_nonzero");
}

const Define reductions[] = {
    {"sum(Tensor self, *, dtype? dtype=None)", &sum_all, Both | Out, "The sum of all elements, or over dimensions."},
    {"sum(Tensor self, int[]? dim, bool keepdim=False, *, dtype? dtype=None)", &sum_dims, Both | Out},
    {"mean(Tensor self, *, dtype? dtype=None)", &mean_all, Both | Out, "The mean of all elements, or over dimensions."},
    {"mean(Tensor self, int[]? dim, bool keepdim=False, *, dtype? dtype=None)", &mean_dims, Both | Out},
    {"prod(Tensor self, *, dtype? dtype=None)", &prod_all, Both, "The product of all elements, or along a dimension."},
    {"prod(Tensor self, int dim, bool keepdim=False, *, dtype? dtype=None)", &prod_dim, Both | Out},
    {"nansum(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None)", &nansum, Both | Out,
     "The sum over dimensions of what is not NaN."},
    {"nanmean(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None)", &nanmean, Both | Out,
     "The mean over dimensions of what is not NaN."},
    {"any(Tensor self, int[]? dim=None, bool keepdim=False)", &any_dims, Both | Out | NoGradient,
     "Is any element not zero? Over all elements or over dimensions."},
    {"all(Tensor self, int[]? dim=None, bool keepdim=False)", &all_dims, Both | Out | NoGradient,
     "Are all elements not zero? Over all elements or over dimensions."},
    {"count_nonzero(Tensor self, int[]? dim=None)", &count_nonzero, Both | NoGradient,
     "How many elements are not zero, over all or over dimensions."},
};

}  // namespace

}  // namespace rushlight
