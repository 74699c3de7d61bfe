// Norms of vectors: (sum |x|^p)^(1/p), the largest or smallest |x| for an infinite p, the number of non-zeros for 0.
#include <cmath>

#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

/// The p-norm in the fold's type, without history.
TensorRef norm_numbers(const Tensor& x, double p, const Reduced& r, bool keepdim) {
  GradScope off(false);
  auto fold_as = [&](FoldKind kind) { return folded(kind, x, r, keepdim, "linalg.vector_norm"); };
  if (p == 0) return fold_as(FoldKind::Count);
  if (p == 1) return fold_as(FoldKind::AbsSum);
  if (p == 2) return square_root(fold_as(FoldKind::SquareSum));
  if (std::isinf(p)) return fold_as(p > 0 ? FoldKind::AbsMax : FoldKind::AbsMin);
  TensorRef wide = is_half(x.dtype) ? cast(x, DType::Float32) : TensorRef(const_cast<Tensor*>(&x));
  return power(folded(FoldKind::Sum, *power(absolute(wide), Scalar(p)), r, keepdim, "linalg.vector_norm"),
               Scalar(1 / p));
}

/// `value` where t is not zero, else 0.
TensorRef unless_zero(const TensorRef& t, const TensorRef& value) {
  return where(eq(t, Scalar(0.0)), Scalar(0.0), value);
}

/// The gradient of the p-norm y of x; 0 where y is 0 (a subgradient), so that what is multiplied never is infinite
/// there.
TensorRef norm_vjp(const TensorRef& g, const TensorRef& x, const TensorRef& y, double p, const Reduced& r) {
  if (p == 1) return mul(sign(x), g);
  if (p == 2) return mul(g, unless_zero(y, div(x, y)));
  if (std::isinf(p)) {
    TensorRef chosen, count;
    {
      GradScope off(false);
      chosen = logical_or(eq(absolute(x), y), logical_and(isnan_of(x), isnan_of(y)));
      count = sum(*chosen, r.dims, true);
    }
    return mul(mul(sign(x), chosen), div(g, count));
  }
  if (p < 1)
    return mul(unless_zero(x, mul(sign(x), power(absolute(x), Scalar(p - 1)))), mul(g, power(y, Scalar(1 - p))));
  TensorRef scale = unless_zero(y, div(g, power(y, Scalar(p - 1))));
  return p < 2 ? mul(mul(sign(x), power(absolute(x), Scalar(p - 1))), scale)
               : mul(mul(x, power(absolute(x), Scalar(p - 2))), scale);
}

void refuse_without_identity(const Tensor& x, double p, const Reduced& r, bool all) {
  if (x.numel || (p >= 0 && !std::isinf(p))) return;
  check(!all, "linalg.vector_norm cannot compute the ", p,
        " norm on an empty tensor because the operation does not have an identity");
  for (auto d : r.dims)
    check(x.size(int(d)) != 0, "linalg.vector_norm cannot compute the ", p, " norm on the dimension ", d,
          " because this dimension is empty and the operation does not have an identity");
}

TensorRef vector_norm_op(const Tensor& t, const Scalar& ord, const std::optional<Dims>& dim, bool keepdim,
                         std::optional<DType> dtype) {
  return vector_norm(t, ord.to_double(), dims_of(dim), keepdim, dtype);
}

TensorRef dist(const Tensor& t, const Tensor& other, const Scalar& p) {
  TensorRef difference = sub(t, other);
  check(is_differentiable(difference->dtype), "norm(): input dtype should be either floating point or complex. Got ",
        info(difference->dtype).scalar_name, " instead.");
  return vector_norm(*difference, p.to_double(), {});
}

}  // namespace

TensorRef vector_norm(const Tensor& t, double p, IntSpan dims, bool keepdim, std::optional<DType> dtype) {
  check(is_differentiable(t.dtype), "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ",
        info(t.dtype).scalar_name);
  if (dtype) {
    check(is_differentiable(*dtype), "linalg.vector_norm: dtype should be floating point or complex, but got ",
          info(*dtype).scalar_name);
    check(is_complex(*dtype) == is_complex(t.dtype), "linalg.vector_norm: dtype should be ",
          is_complex(t.dtype) ? "complex" : "real", " for ", is_complex(t.dtype) ? "complex" : "real",
          " inputs, but got ", info(*dtype).scalar_name);
    check(promote(t.dtype, *dtype) == *dtype, "linalg.vector_norm: the dtype of the input (", info(t.dtype).scalar_name,
          ") should be convertible without narrowing to the specified dtype (", info(*dtype).scalar_name, ")");
  }
  TensorRef x = cast(t, dtype.value_or(t.dtype));
  Reduced r(*x, dims);
  refuse_without_identity(*x, p, r, dims.empty());
  TensorRef y;
  {
    GradScope off(false);
    y = cast(*norm_numbers(is_complex(x->dtype) ? *absolute(x) : *x, p, r, keepdim), real_of(x->dtype));
  }
  auto derivative = by_rows([p, r](Vjp& v) {
    TensorRef x = v.saved(0), y = restored(*v.saved(1), r.kept_sizes);
    if (p == 0) return v.set(0, zeros(v.shape(x->sizes()), x->dtype));
    v.set(0, norm_vjp(restored(*v.grad(), v.shape(r.kept_sizes)), x, y, p, r));
  });
  return record("LinalgVectorNormBackward0", y, {x.get()}, {save_in(*x, 0), save_out(y)}, derivative);
}

namespace {

const Define norms[] = {
    {"linalg_vector_norm(Tensor self, Scalar ord=2, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None)",
     &vector_norm_op, Function | Out,
     "(sum |x|^ord)^(1/ord) over all elements or over dimensions; the largest |x| for inf, the smallest for -inf, the "
     "number of non-zeros for 0."},
    {"dist(Tensor self, Tensor other, Scalar p=2)", &dist, Both, "The p-norm of the difference."},
};

}  // namespace
}  // namespace rushlight
