// Products added to something: beta * self + alpha * (a product).
#include "operators/matmul.h"
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

void check_factors(const Tensor& self, const Scalar& beta, const Scalar& alpha) {
  if (category(self.dtype) > 1) return;
  check(alpha.is_integral(), "For integral input tensors, argument alpha must not be a floating point number.");
  check(beta.is_integral(), "For integral input tensors, argument beta must not be a floating point number.");
}

/// Where the result goes: self's numbers broadcast, which the product is added to; uninitialised where beta is 0.
TensorRef start(const Tensor& self, IntSpan sizes, const Scalar& beta) {
  GradScope off(false);
  TensorRef wide = expand(self, sizes);
  TensorRef out = empty(sizes, self.dtype);
  if (!beta.is(0)) copy_numbers(*out, *wide);
  return out;
}

TensorRef scaled(TensorRef t, const Scalar& factor) { return factor.is(1) ? t : mul(t, factor); }
Scalar conjugate(Scalar s) {
  s.imag = -s.imag;
  return s;
}

void check_same(const Tensor& self, const Tensor& a, const Tensor& b) {
  check(a.dtype == b.dtype, "expected m1 and m2 to have the same dtype, but got: ", type_text(a.dtype),
        " != ", type_text(b.dtype));
  check(self.dtype == b.dtype, "self and mat2 must have the same dtype, but got ", info(self.dtype).scalar_name,
        " and ", info(b.dtype).scalar_name);
}

}  // namespace

TensorRef addmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  check(a.ndim == 2, "mat1 must be a matrix, got ", int(a.ndim), "-D tensor");
  check(b.ndim == 2, "mat2 must be a matrix, got ", int(b.ndim), "-D tensor");
  check_same(self, a, b);
  check_matrices_fit(a.size(0), a.size(1), b.size(0), b.size(1));
  check_factors(self, beta, alpha);
  check_multipliable(self.dtype, "addmm_impl_cpu_");
  TensorRef out = start(self, Dims{a.size(0), b.size(1)}, beta);
  gemm(a.dtype, matrix(a, a.read()), matrix(b, b.read()), matrix(*out, out->write()), alpha, beta);
  return record("AddmmBackward0", std::move(out), {&self, &a, &b}, {save_in(a, 1), save_in(b, 2)},
                by_rows([sizes = Dims(self.sizes()), beta, alpha](Vjp& v) {
                  if (v.needs(0)) v.set(0, sum_to_size(*scaled(v.grad(), conjugate(beta)), sizes, v.has_rows()));
                  if (v.needs(1)) v.set(1, scaled(matmul(*v.grad(), *adjoint(*v.saved(1))), conjugate(alpha)));
                  if (v.needs(2)) v.set(2, scaled(matmul(*adjoint(*v.saved(0)), *v.grad()), conjugate(alpha)));
                }));
}

namespace {

TensorRef addmv(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  check(a.ndim == 2 && b.ndim == 1 && self.ndim <= 1, "vector + matrix @ vector expected, got ", int(self.ndim), ", ",
        int(a.ndim), ", ", int(b.ndim));
  check(a.size(1) == b.size(0) && (self.numel == a.size(0) || self.numel == 1), "size mismatch, got input (",
        self.numel, "), mat (", a.size(0), "x", a.size(1), "), vec (", b.size(0), ")");
  check(a.dtype == b.dtype && a.dtype == self.dtype, "addmv input tensors must have the same dtype, but got ",
        info(self.dtype).scalar_name, ", ", info(a.dtype).scalar_name, ", and ", info(b.dtype).scalar_name);
  check_factors(self, beta, alpha);
  check_multipliable(self.dtype, "addmv_impl_cpu");
  TensorRef out = start(self, Dims{a.size(0)}, beta);
  MatrixView column{const_cast<std::byte*>(b.read()), b.size(0), 1, b.stride(0), 1};
  gemm(a.dtype, matrix(a, a.read()), column, {out->write(), out->size(0), 1, 1, 1}, alpha, beta);
  return record("AddmvBackward0", std::move(out), {&self, &a, &b}, {save_in(a, 1), save_in(b, 2)},
                by_rows([sizes = Dims(self.sizes()), beta, alpha](Vjp& v) {
                  const Tensor& g = *v.grad();
                  if (v.needs(0)) v.set(0, sum_to_size(*scaled(v.grad(), conjugate(beta)), sizes, v.has_rows()));
                  if (v.needs(1))
                    v.set(1, scaled(mul(unsqueeze(g, v.dim(1)), conjugate(*v.saved(1))), conjugate(alpha)));
                  if (v.needs(2))
                    v.set(2, scaled(v.has_rows() ? mm(g, *conjugate(*v.saved(0))) : mv(*adjoint(*v.saved(0)), g),
                                    conjugate(alpha)));
                }));
}

TensorRef addr(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  check(a.ndim == 1, "addr: Expected 1-D argument vec1, but got ", int(a.ndim), "-D");
  check(b.ndim == 1, "addr: Expected 1-D argument vec2, but got ", int(b.ndim), "-D");
  TensorRef out, wide;
  {
    GradScope off(false);
    wide = expand(self, Dims{a.size(0), b.size(0)});
    Operand operands[] = {self, a, b};
    DType dtype = result_type(operands, 3);
    check_factors(dtype == self.dtype ? self : *cast(self, dtype), beta, alpha);
    out = scaled(outer(a, b), alpha);
    if (!beta.is(0)) out = add(*out, *scaled(wide, beta));
    out = cast(*out, dtype);
  }
  return record("AddrBackward0", std::move(out), {&self, &a, &b}, {save_in(a, 1), save_in(b, 2)},
                [sizes = Dims(self.sizes()), beta, alpha](Vjp& v) {
                  if (v.needs(0)) v.set(0, sum_to_size(*scaled(v.grad(), conjugate(beta)), sizes));
                  const Tensor& g = *v.grad();  // of the type that the operands were promoted to
                  auto factor = [&](int i) { return conjugate(*cast(*v.saved(i), g.dtype)); };
                  if (v.needs(1)) v.set(1, scaled(mv(g, *factor(1)), conjugate(alpha)));
                  if (v.needs(2)) v.set(2, scaled(mv(*transpose(g, 0, 1), *factor(0)), conjugate(alpha)));
                });
}

void check_batches(const Tensor& self, const Tensor& a, const Tensor& b) {
  check(a.ndim == 3, "batch1 must be a 3D tensor");
  check(b.ndim == 3, "batch2 must be a 3D tensor");
  check(a.size(0) == b.size(0) && a.size(2) == b.size(1),
        "Expected size for first two dimensions of batch2 tensor to be: [", a.size(0), ", ", a.size(2), "] but got: [",
        b.size(0), ", ", b.size(1), "].");
  check(a.dtype == b.dtype, "expected scalar type ", info(a.dtype).scalar_name, " but found ",
        info(b.dtype).scalar_name);
  check(a.dtype == self.dtype, "Input dtypes must be the same, got: input ", type_text(self.dtype),
        ", batch1: ", type_text(a.dtype), ", batch2: ", type_text(b.dtype));
}

TensorRef baddbmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  check_batches(self, a, b);
  check_factors(self, beta, alpha);
  check_multipliable(self.dtype, "baddbmm");
  TensorRef out = start(self, Dims{a.size(0), a.size(1), b.size(2)}, beta);
  gemm_batch(a.dtype, a.size(0), matrix(a, a.read()), matrix(b, b.read()), matrix(*out, out->write()),
             {a.stride(0), b.stride(0), out->stride(0)}, alpha, beta);
  return record("BaddbmmBackward0", std::move(out), {&self, &a, &b}, {save_in(a, 1), save_in(b, 2)},
                [sizes = Dims(self.sizes()), beta, alpha](Vjp& v) {
                  if (v.needs(0)) v.set(0, sum_to_size(*scaled(v.grad(), conjugate(beta)), sizes));
                  if (v.needs(1)) v.set(1, scaled(bmm(*v.grad(), *adjoint(*v.saved(1))), conjugate(alpha)));
                  if (v.needs(2)) v.set(2, scaled(bmm(*adjoint(*v.saved(0)), *v.grad()), conjugate(alpha)));
                });
}

TensorRef addbmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  check_batches(self, a, b);
  check_factors(self, beta, alpha);
  check_multipliable(self.dtype, "addbmm");
  TensorRef out = start(self, Dims{a.size(1), b.size(2)}, beta);
  Scalar keep = a.size(0) ? beta : Scalar(0);
  for (std::int64_t i = 0; i < a.size(0); ++i, keep = Scalar(1))
    gemm(a.dtype, matrix(a, a.read() + i * a.stride(0) * a.item_size()),
         matrix(b, b.read() + i * b.stride(0) * b.item_size()), matrix(*out, out->write()), alpha, keep);
  if (a.size(0) == 0) {
    GradScope off(false);
    TensorRef zero = zeros(out->sizes(), out->dtype);
    copy_numbers(*out, beta.is(0) ? *zero : *mul(out, beta));
  }
  return record("AddbmmBackward0", std::move(out), {&self, &a, &b}, {save_in(a, 1), save_in(b, 2)},
                [sizes = Dims(self.sizes()), beta, alpha](Vjp& v) {
                  if (v.needs(0)) v.set(0, sum_to_size(*scaled(v.grad(), conjugate(beta)), sizes));
                  if (!v.needs(1) && !v.needs(2)) return;
                  TensorRef a = v.saved(0), b = v.saved(1);
                  TensorRef g = expand(*v.grad(), Dims{a->size(0), a->size(1), b->size(2)});
                  if (v.needs(1)) v.set(1, scaled(bmm(*g, *adjoint(*b)), conjugate(alpha)));
                  if (v.needs(2)) v.set(2, scaled(bmm(*adjoint(*a), *g), conjugate(alpha)));
                });
}

// ---- the operators

const Define added_products[] = {
    {"addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1)", &addmm, Both | Inplace | Out,
     "beta * self + alpha * mat1 mat2."},
    {"addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1)", &addmv, Both | Inplace | Out,
     "beta * self + alpha * mat vec."},
    {"addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1)", &addr, Both | Inplace | Out,
     "beta * self + alpha * the outer product."},
    {"baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)", &baddbmm,
     Both | Inplace | Out, "beta * self + alpha * the product of each pair of matrices."},
    {"addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)", &addbmm,
     Both | Inplace | Out, "beta * self + alpha * the sum of the products of pairs of matrices."},
};

}  // namespace
}  // namespace rushlight
