// Covariances and correlations, cross products, and rows of a bounded norm.
#include <cmath>

#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

/// Weights of observations: a vector of the right length and type, none negative.
void check_weights(const Tensor& w, std::int64_t observations, const char* name, bool floating) {
  check(w.ndim <= 1, "cov(): expected ", name, " to have one or fewer dimensions but got ", name, " with ", int(w.ndim),
        " dimensions");
  check(floating ? is_floating(w.dtype) : is_integral(w.dtype), "cov(): expected ", name, " to have ",
        floating ? "floating point" : "integral", " dtype but got ", name, " with ", info(w.dtype).scalar_name,
        " dtype");
  check(w.numel == observations, "cov(): expected ", name,
        " to have the same numel as there are observations in the input but got ", w.numel, " != ", observations);
  check(w.numel == 0 || !any_true(*lt(w, Scalar(std::int64_t(0)))), "cov(): ", name, " cannot be negative");
}

/// X X' / (sum w - correction) of the centred rows X; with weights a the last sum w a^2 / sum w in place of 1.
TensorRef cov(const Tensor& t, std::int64_t correction, const Tensor* fweights, const Tensor* aweights) {
  check(t.ndim <= 2, "cov(): expected input to have two or fewer dimensions but got an input with ", int(t.ndim),
        " dimensions");
  check(t.dtype != DType::Bool, "cov(): bool dtype is not supported for input");
  TensorRef x = t.ndim < 2 ? reshape(t, Dims{1, -1}) : alias_view(t);
  if (is_integral(x->dtype)) x = cast(*x, default_dtype);
  std::int64_t n = x->size(1);
  TensorRef weights, squared;
  if (fweights) {
    check_weights(*fweights, n, "fweights", false);
    weights = reshape(*fweights, Dims{-1});
  }
  if (aweights) {
    check_weights(*aweights, n, "aweights", true);
    TensorRef a = reshape(*aweights, Dims{-1});
    weights = weights ? mul(weights, a) : a;
    squared = mul(weights, a);
  }
  double total = double(n);
  if (weights) {
    total = item(*sum(*detach(*weights), {})).to_double();
    check(n == 0 || total != 0, "cov(): weights sum to zero, can't be normalized");
  }
  Operand norm = total - double(correction);
  TensorRef kept;
  if (aweights) {
    TensorRef all = sum(*weights, {});
    norm = kept = correction == 0 ? all : sub(all, mul(div(sum(*squared, {}), all), double(correction)));
    total = item(*detach(*kept)).to_double();
  } else {
    total -= double(correction);
    norm = total;
  }
  if (total <= 0) {
    warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.");
    norm = 0.0;
  }
  TensorRef centre = weights ? div(sum(*mul(x, weights), Dims{1}, true), sum(*weights, {})) : mean(*x, Dims{1}, true);
  TensorRef centred = sub(x, centre), weighted = weights ? mul(centred, weights) : centred;
  TensorRef product = div(mm(*centred, *adjoint(*cast(*weighted, centred->dtype))), norm);
  return x->size(0) == 1 ? reshape(*product, {}) : product;
}

TensorRef corrcoef(const Tensor& t) {
  check(t.ndim <= 2, "corrcoef(): expected input to have two or fewer dimensions but got an input with ", int(t.ndim),
        " dimensions");
  TensorRef c = cov(t, 1, nullptr, nullptr);
  if (c->ndim == 0) return div(c, c);
  TensorRef deviation = square_root(real_part(*diagonal(*c, 0, 0, 1)));
  TensorRef r = div(div(c, unsqueeze(*deviation, 1)), unsqueeze(*deviation, 0));
  auto within_one = [](const TensorRef& x) {
    return maximum(Operand(minimum(x, full({}, Scalar(1.0), x->dtype))), full({}, Scalar(-1.0), x->dtype));
  };
  if (!is_complex(r->dtype)) return within_one(r);
  return complex_of_parts(*within_one(real_part(*r)), *within_one(imaginary_part(*r)));
}

/// The elements of a dimension of size 3, moved back by n places.
TensorRef turned(const Tensor& t, int dim, std::int64_t n) {
  TensorRef index = empty(Dims{3}, DType::Int64);
  for (std::int64_t i = 0; i < 3; ++i) index->write_as<std::int64_t>()[i] = (i + n) % 3;
  return index_select(t, dim, *index);
}

TensorRef linalg_cross(const Tensor& a, const Tensor& b, std::int64_t dim_) {
  check(a.ndim == b.ndim, "linalg.cross: inputs must have the same number of dimensions.");
  int dim = wrap_dim(dim_, a.ndim);
  check(a.ndim && a.size(dim) == 3 && b.size(dim) == 3, "linalg.cross: inputs dimension ", dim_,
        " must have length 3. Got ", a.ndim ? a.size(dim) : 1, " and ", a.ndim ? b.size(dim) : 1);
  check(a.dtype == b.dtype, "expected scalar type ", info(a.dtype).scalar_name, " but found ",
        info(b.dtype).scalar_name);
  if (a.dtype == DType::Bool) fail(ErrorKind::NotImplemented, "\"cross\" not implemented for 'Bool'");
  return sub(mul(turned(a, dim, 1), turned(b, dim, 2)), mul(turned(a, dim, 2), turned(b, dim, 1)));
}

TensorRef cross(const Tensor& a, const Tensor& b, std::optional<std::int64_t> dim) {
  if (dim) return linalg_cross(a, b, *dim);
  for (int d = 0; d < a.ndim; ++d)
    if (a.size(d) == 3) return linalg_cross(a, b, d);
  fail("no dimension of size 3 in input");
}

TensorRef renorm(const Tensor& t, const Scalar& p, std::int64_t dim_, const Scalar& limit) {
  double order = p.to_double(), most = limit.to_double();
  check(order > 0, "renorm: non-positive-norm not supported");
  check(most >= 0, "renorm: expected maxnorm to be >= 0 but got ", most);
  check(t.ndim > 1, "renorm: input needs at least 2 dimensions, got ", int(t.ndim), " dimensions");
  int dim = wrap_dim(dim_, t.ndim);
  Dims others;
  for (int d = 0; d < t.ndim; ++d)
    if (d != dim) others.push_back(d);
  TensorRef norm = vector_norm(t, order, others, true);
  static PointwiseOp& plus = pointwise_op("add");
  TensorRef factor = where(gt(norm, most), div(Operand(limit), pointwise(plus, {Operand(norm), Operand(1e-7)})),
                           full({}, Scalar(1.0), norm->dtype));
  return mul(t, factor);
}

const Define correlations[] = {
    {"cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None)", &cov, Both,
     "The covariances of the rows, whose columns are observations, perhaps weighted by counts and importance."},
    {"corrcoef(Tensor self)", &corrcoef, Both, "The correlations of the rows: covariances over deviations."},
    {"cross(Tensor self, Tensor other, int? dim=None)", &cross, Both | Out,
     "The cross product along a dimension of size 3, by default the first such."},
    {"linalg_cross(Tensor self, Tensor other, *, int dim=-1)", &linalg_cross, Function | Out,
     "The cross product along a dimension of size 3."},
    {"renorm(Tensor self, Scalar p, int dim, Scalar maxnorm)", &renorm, Both | Out | Inplace,
     "Slices along a dimension whose p-norm is above maxnorm scaled down to it."},
};

}  // namespace
}  // namespace rushlight
