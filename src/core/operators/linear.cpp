#include "operators/linear.h"

#include <algorithm>
#include <cstring>

#include "kernels/parallel.h"
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

/// All dimensions but the last as rows.
TensorRef rows_of(const Tensor& t) {
  if (t.ndim == 2) return TensorRef(const_cast<Tensor*>(&t));
  std::int64_t width = t.size(t.ndim - 1);
  return reshape(t, Dims{count_elements(t.sizes().first(std::size_t(t.ndim - 1))), width});
}

/// Copies of a vector as the rows of `out`.
void repeat_row(Tensor& out, const Tensor& vector) {
  TensorRef row = packed(vector);
  const std::byte* from = row->read();
  std::byte* to = out.write();
  std::int64_t bytes = out.size(1) * out.item_size();
  parallel_for(out.size(0), std::max<std::int64_t>(1, (1 << 17) / std::max<std::int64_t>(bytes, 1)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) std::memcpy(to + i * bytes, from, std::size_t(bytes));
               });
}

/// The product lands on copies of the bias, which BLAS adds to while the tile is in registers.
TensorRef affine(const Tensor& x, const Tensor& weight, const Tensor* bias) {
  std::int64_t n = x.size(0), outs = weight.size(0);
  TensorRef out = empty(Dims{n, outs}, x.dtype);
  if (bias) repeat_row(*out, *bias);
  MatrixView turned{const_cast<std::byte*>(weight.read()), weight.size(1), outs, weight.stride(1), weight.stride(0)};
  gemm(x.dtype, matrix(x, x.read()), turned, matrix(*out, out->write()), 1.0, bias ? 1.0 : 0.0);
  return out;
}

/// The gradient, all dimensions but the last as rows: a matrix, or one for each of several cotangents.
TensorRef gradient_rows(const Vjp& v) {
  const Tensor& g = *v.grad();
  if (!v.has_rows()) return rows_of(g);
  std::int64_t width = g.size(g.ndim - 1);
  return reshape(g, Dims{v.rows(), count_elements(g.sizes().subspan(1, std::size_t(g.ndim - 2))), width});
}

TensorRef weight_gradient(const Vjp& v) {
  return matmul(*transpose(*gradient_rows(v), -2, -1), *conjugate(*rows_of(*v.saved(0))));
}

void check_linear(const Tensor& input, const Tensor& weight, const Tensor* bias) {
  check(input.dtype == weight.dtype, "expected m1 and m2 to have the same dtype, but got: ", type_text(input.dtype),
        " != ", type_text(weight.dtype));
  check(!bias || bias->dtype == weight.dtype, "self and mat2 must have the same dtype, but got ",
        bias ? info(bias->dtype).scalar_name : "", " and ", info(weight.dtype).scalar_name);
  std::int64_t width = input.size(input.ndim - 1);
  check_matrices_fit(width ? input.numel / width : 0, width, weight.size(1), weight.size(0));
  check_multipliable(input.dtype, "addmm_impl_cpu_");
}

}  // namespace

TensorRef linear(const Tensor& input, const Tensor& weight, const Tensor* bias) {
  check(input.ndim > 0 && weight.ndim > 0, "both arguments to linear need to be at least 1D, but they are ",
        int(input.ndim), "D and ", int(weight.ndim), "D");
  check(weight.ndim <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", int(weight.ndim), "D");
  if (weight.ndim == 1) {
    check(!bias, "mat2 must be a matrix, got 1-D tensor");
    return matmul(input, weight);
  }
  check_linear(input, weight, bias);
  Dims sizes(input.sizes());
  sizes.back() = weight.size(0);
  if (bias && (bias->ndim != 1 || bias->size(0) != weight.size(0))) {
    if (bias->ndim <= 1) expand(*bias, sizes);  // refuses by PyTorch's words what does not fit
    return add(*linear(input, weight, nullptr), *bias);
  }
  TensorRef out;
  if (input.ndim == 2) {
    out = affine(input, weight, bias);
  } else {
    GradScope off(false);
    out = view(*affine(*rows_of(input), weight, bias), sizes);
  }
  const char* name = bias ? "AddmmBackward0" : "MmBackward0";
  if (!bias)
    return record(name, std::move(out), {&input, &weight}, {save_in(input, 0), save_in(weight, 1)}, by_rows([](Vjp& v) {
                    if (v.needs(0)) v.set(0, linear(*v.grad(), *adjoint(*v.saved(1)), nullptr));
                    if (v.needs(1)) v.set(1, weight_gradient(v));
                  }));
  return record(name, std::move(out), {bias, &input, &weight}, {save_in(input, 1), save_in(weight, 2)},
                by_rows([](Vjp& v) {
                  if (v.needs(0)) v.set(0, sum(*gradient_rows(v), Dims{v.dim(0)}));
                  if (v.needs(1)) v.set(1, linear(*v.grad(), *adjoint(*v.saved(1)), nullptr));
                  if (v.needs(2)) v.set(2, weight_gradient(v));
                }));
}

namespace {

const Define linear_layer[] = {
    {"linear(Tensor input, Tensor weight, Tensor? bias=None)", &linear, NnFunction,
     "input weight^T + bias for input (*, in), weight (out, in) and bias (out): (*, out). Shapes that do not fit and "
     "differing dtypes raise RuntimeError."},
};

}  // namespace
}  // namespace rushlight
