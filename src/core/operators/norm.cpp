// Products of all elements, and norms.
#include <cmath>
#include <limits>

#include "operators/extremum.h"
#include "operators/operators.h"
#include "operators/reduce.h"
#include "operators/registry.h"
#include "operators/scan.h"

namespace rushlight {
namespace {

TensorRef apply(const char* name, std::initializer_list<Operand> in) { return pointwise(pointwise_op(name), in); }

DType product_type(const Tensor& t, const std::optional<DType>& dtype) {
  return dtype ? *dtype : category(t.dtype) < 2 ? DType::Int64 : t.dtype;
}

/// The product along one dimension; each element's derivative is the product of all others, without a division.
TensorRef product(const Tensor& x, int dim, bool keepdim) {
  Reduced r(x, Dims{dim});
  TensorRef out = folded(FoldKind::Prod, x, r, keepdim, "prod");
  if (out->dtype != x.dtype) out = cast(*out, x.dtype);
  return record("ProdBackward1", std::move(out), {&x}, {save_in(x, 0)}, [dim, kept = r.kept_sizes](Vjp& v) {
    TensorRef t = v.saved(0), g = restored(*v.grad(), kept);
    if (t->numel == 0) return v.set(0, zeros_like(*t));
    if (t->ndim == 0) return v.set(0, g);
    TensorRef others =
        apply("mul", {Operand(exclusive_products(*t, dim, false)), Operand(exclusive_products(*t, dim, true))});
    v.set(0, apply("mul", {Operand(expand(*g, t->sizes())), Operand(others)}));
  });
}

}  // namespace

TensorRef prod(const Tensor& t, std::int64_t dim, bool keepdim, std::optional<DType> dtype) {
  return product(*cast(t, product_type(t, dtype)), wrap_dim(dim, t.ndim), keepdim);
}

TensorRef prod(const Tensor& t, std::optional<DType> dtype) {
  TensorRef x = cast(t, product_type(t, dtype));
  return product(x->ndim == 1 ? *x : *reshape(*x, Dims{-1}), 0, false);
}

namespace {

TensorRef prod_all(const Tensor& t, std::optional<DType> dtype) { return prod(t, dtype); }
TensorRef prod_dim(const Tensor& t, std::int64_t dim, bool keepdim, std::optional<DType> dtype) {
  return prod(t, dim, keepdim, dtype);
}

TensorRef sign_of(const Operand& x) { return apply("sign", {x}); }
TensorRef times(const Operand& a, const Operand& b) { return apply("mul", {a, b}); }
TensorRef is_zero(const Operand& x) { return apply("eq", {x, Operand(0.0)}); }

/// The gradient of the p-norm y of x, 0 where y is 0: a subgradient, as PyTorch has it.
TensorRef norm_vjp(const TensorRef& g, const TensorRef& x, const TensorRef& y, double p) {
  if (p == 1) return times(sign_of(x), g);
  if (p == 2) return times(g, where(is_zero(y), Scalar(0.0), div(x, y)));
  TensorRef magnitude = apply("abs", {Operand(x)});
  if (std::isinf(p)) {
    TensorRef at = apply(
        "logical_or", {Operand(apply("eq", {Operand(magnitude), Operand(y)})), Operand(apply("isnan", {Operand(x)}))});
    Dims spread;  // the dimensions that the norm took away
    for (int i = 0; i < x->ndim; ++i)
      if (y->size(i) == 1) spread.push_back(i);
    TensorRef share =
        div(g, x->ndim ? sum(*at, spread.empty() ? Dims{0} : spread, true) : scalar_tensor(1, DType::Int64));
    if (spread.empty()) share = g;
    return times(times(sign_of(x), share), cast(*at, x->dtype));
  }
  TensorRef power_of_x = power(magnitude, Scalar(p - 1));
  if (p < 1) power_of_x = where(is_zero(x), Scalar(0.0), power_of_x);
  TensorRef scale = where(is_zero(y), Scalar(0.0), div(g, power(y, Scalar(p - 1))));
  return times(times(sign_of(x), power_of_x), scale);
}

TensorRef norm_of(const Tensor& x, double p, const Reduced& r, bool keepdim) {
  GradScope off(false);
  DType type = x.dtype;
  auto fold_as = [&](FoldKind kind) { return folded(kind, x, r, keepdim, "linalg.vector_norm"); };
  TensorRef y;
  if (p == 0)
    y = fold_as(FoldKind::Count);
  else if (p == 1)
    y = fold_as(FoldKind::AbsSum);
  else if (p == 2)
    y = apply("sqrt", {Operand(fold_as(FoldKind::SquareSum))});
  else if (std::isinf(p))
    y = fold_as(p > 0 ? FoldKind::AbsMax : FoldKind::AbsMin);
  else
    y = power(sum(*power(apply("abs", {Operand(x)}), Scalar(p)), r.dims.empty() ? IntSpan() : IntSpan(r.dims), keepdim),
              Scalar(1 / p));
  return cast(*y, type);
}

TensorRef vector_norm(const Tensor& t, const Scalar& ord, const std::optional<Dims>& dim, bool keepdim,
                      std::optional<DType> dtype) {
  check(is_differentiable(t.dtype), "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ",
        info(t.dtype).scalar_name);
  check(!is_complex(t.dtype), "rushlight has no norms of complex tensors yet");
  TensorRef x = cast(t, dtype.value_or(t.dtype));
  double p = ord.to_double();
  Reduced r(*x, dims_of(dim));
  if (x->numel == 0 && (p < 0 || std::isinf(p))) {
    check(dim && !dim->empty(), "linalg.vector_norm cannot compute the ", p,
          " norm on an empty tensor because the operation does not have an identity");
    for (auto d : r.dims)
      check(x->size(int(d)) != 0, "linalg.vector_norm cannot compute the ", p, " norm on the dimension ", d,
            " because this dimension is empty and the operation does not have an identity");
  }
  TensorRef y = norm_of(*x, p, r, keepdim);
  if (p == 0)
    return record("LinalgVectorNormBackward0", y, {x.get()}, {},
                  [from = Dims(x->sizes())](Vjp& v) { v.set(0, zeros(from, v.grad()->dtype)); });
  return record("LinalgVectorNormBackward0", y, {x.get()}, {save_in(*x, 0), save_out(y)},
                [p, kept = r.kept_sizes](Vjp& v) {
                  v.set(0, norm_vjp(restored(*v.grad(), kept), v.saved(0), restored(*v.saved(1), kept), p));
                });
}

TensorRef dist(const Tensor& a, const Tensor& b, const Scalar& p) {
  return vector_norm(*apply("sub", {Operand(a), Operand(b)}), p, std::nullopt, false, std::nullopt);
}

const Define norms[] = {
    {"prod(Tensor self, *, dtype? dtype=None)", &prod_all, Both, "The product of all elements, or along a dimension."},
    {"prod(Tensor self, int dim, bool keepdim=False, *, dtype? dtype=None)", &prod_dim, Both | Out},
    {"linalg_vector_norm(Tensor self, Scalar ord=2, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None)",
     &vector_norm, Function | Out,
     "(sum |x|^ord)^(1/ord) over all elements or over dimensions; the largest |x| for inf, the smallest for -inf, the "
     "number of non-zeros for 0."},
    {"dist(Tensor self, Tensor other, Scalar p=2)", &dist, Both, "The p-norm of the difference."},
};

}  // namespace
}  // namespace rushlight
