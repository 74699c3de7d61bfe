#include "operators/softmax.h"

#include <cmath>

#include "kernels/softmax.h"
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {

Block block_of(const Tensor& t, int dim) {
  Block b{1, 1, 1};
  for (int i = 0; i < t.ndim; ++i) (i < dim ? b.outer : i == dim ? b.n : b.inner) *= t.size(i);
  return b;
}

TensorRef softmax_operand(const Tensor& t) {
  GradScope off(false);
  return packed(*cast(t, is_half(t.dtype) ? DType::Float32 : t.dtype));
}

namespace {

TensorRef finished(const TensorRef& t, DType dtype) {
  GradScope off(false);
  return cast(*t, dtype);
}

/// The derivative in differentiable operators, or in one pass where nothing is to be recorded.
TensorRef vjp(SoftmaxKind kind, const Tensor& g, const Tensor& y, int dim) {
  if (!differentiates() && g.ndim == y.ndim) {
    TensorRef result = softmax_operand(y), gradient = softmax_operand(g), out = empty(y.sizes(), result->dtype);
    if (out->numel) softmax_vjp(kind, out->dtype, block_of(*out, dim), result->read(), gradient->read(), out->write());
    return finished(out, g.dtype);
  }
  if (y.ndim == 0 && g.ndim) return sub(g, g);  // many cotangents of the constant 1 or 0
  std::int64_t dims[] = {dim};
  if (kind == SoftmaxKind::Softmax) {
    TensorRef weighted = mul(g, y);
    return sub(weighted, mul(y, sum(*weighted, dims, true)));
  }
  return sub(g, mul(exponential(y), sum(g, dims, true)));
}

TensorRef along(SoftmaxKind kind, const char* node, const Tensor& t, std::int64_t dim_,
                const std::optional<DType>& dtype) {
  int dim = wrap_dim(dim_, t.ndim);
  TensorRef x = dtype ? cast(t, *dtype) : TensorRef(const_cast<Tensor*>(&t));
  if (!is_floating(x->dtype))
    fail(ErrorKind::NotImplemented, '"', kind == SoftmaxKind::Softmax ? "softmax" : "log_softmax",
         "\" not implemented for '", info(x->dtype).scalar_name, "'");
  TensorRef in = softmax_operand(*x), out = empty(x->sizes(), in->dtype);
  if (out->numel) softmax(kind, in->dtype, block_of(*in, dim), in->read(), out->write());
  out = finished(out, x->dtype);
  return record(node, out, {x.get()}, {save_out(out)},
                by_rows([kind, dim](Vjp& v) { v.set(0, vjp(kind, *v.grad(), *v.saved(0), v.dim(dim))); }));
}

/// The contiguous tensor with the reduced dimensions last.
TensorRef lines_last(const Tensor& t, const Reduced& r) {
  GradScope off(false);
  Dims order;
  for (int i = 0; i < t.ndim; ++i)
    if (!((r.mask >> i) & 1)) order.push_back(i);
  for (auto d : r.dims) order.push_back(d);
  return packed(*permute(t, order));
}

}  // namespace

TensorRef softmax(const Tensor& t, std::int64_t dim, std::optional<DType> dtype) {
  return along(SoftmaxKind::Softmax, "SoftmaxBackward0", t, dim, dtype);
}
TensorRef log_softmax(const Tensor& t, std::int64_t dim, std::optional<DType> dtype) {
  return along(SoftmaxKind::LogSoftmax, "LogSoftmaxBackward0", t, dim, dtype);
}

namespace {
/// Scaled by the largest real part; without history.
TensorRef complex_logsumexp(const Tensor& x, const Reduced& r, bool keepdim) {
  GradScope off(false);
  if (!x.numel) return full(r.shape(keepdim), Scalar(-HUGE_VAL), x.dtype);
  TensorRef largest = folded(FoldKind::Max, *real_part(x), r, true, "logsumexp");
  largest = where(eq(absolute(largest), Scalar(HUGE_VAL)), Scalar(0.0), largest);
  TensorRef out = add(*logarithm(sum(*exponential(sub(x, largest)), r.dims, true)), *largest);
  return keepdim ? out : view(*out, r.sizes);
}
TensorRef real_logsumexp(const Tensor& x, const Reduced& r, bool keepdim) {
  TensorRef in = softmax_operand(x), out = empty(r.shape(keepdim), in->dtype);
  Block b = r.dims.size() == 1 ? block_of(*in, int(r.dims[0])) : Block{out->numel, r.count, 1};
  if (r.dims.size() > 1) in = lines_last(*in, r);
  if (out->numel) {
    TensorRef largest = empty(out->sizes(), in->dtype);
    softmax_normalisers(in->dtype, b, in->read(), largest->write(), out->write(), true);
    add_numbers(*out, *largest);
  }
  return finished(out, x.dtype);
}
}  // namespace

TensorRef logsumexp(const Tensor& t, IntSpan dims, bool keepdim) {
  TensorRef x = category(t.dtype) < 2 ? cast(t, default_dtype) : TensorRef(const_cast<Tensor*>(&t));
  Reduced r(*x, dims);
  TensorRef out = is_complex(x->dtype) ? complex_logsumexp(*x, r, keepdim) : real_logsumexp(*x, r, keepdim);
  auto derivative = by_rows([kept = r.kept_sizes](Vjp& v) {
    TensorRef weight = exponential(sub(v.saved(0), restored(*v.saved(1), kept)));
    v.set(0, mul(restored(*v.grad(), v.shape(kept)), conjugate(*weight)));
  });
  return record("LogsumexpBackward0", out, {x.get()}, {save_in(*x, 0), save_out(out)}, derivative);
}

// ---- the operators

namespace {

TensorRef logsumexp_op(const Tensor& t, const Dims& dim, bool keepdim) { return logsumexp(t, dim, keepdim); }

const Define softmaxes[] = {
    {"softmax(Tensor self, int dim, dtype? dtype=None)",
     static_cast<TensorRef (*)(const Tensor&, std::int64_t, std::optional<DType>)>(&softmax), Both | Out,
     "exp(x) / sum(exp(x)) along a dimension."},
    {"log_softmax(Tensor self, int dim, dtype? dtype=None)", &log_softmax, Both | Out,
     "x - log(sum(exp(x))) along a dimension."},
    {"logsumexp(Tensor self, int[] dim, bool keepdim=False)", &logsumexp_op, Both | Out,
     "log(sum(exp(x))) over dimensions."},
};

}  // namespace
}  // namespace rushlight
