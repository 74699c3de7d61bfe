#include "operators/matmul.h"

#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {

TensorRef conjugate(const Tensor& t) {
  if (!is_complex(t.dtype)) return TensorRef(const_cast<Tensor*>(&t));
  static PointwiseOp& op = pointwise_op("conj_physical");
  return pointwise(op, {t});
}

TensorRef adjoint(const Tensor& t) {
  TensorRef turned = transpose(t, -2, -1);
  return is_complex(t.dtype) ? conjugate(*turned) : turned;
}

MatrixView matrix(const Tensor& t, const std::byte* base) {
  return {const_cast<std::byte*>(base), t.size(t.ndim - 2), t.size(t.ndim - 1), t.stride(t.ndim - 2),
          t.stride(t.ndim - 1)};
}

const char* type_text(DType d) {
  static constexpr const char* texts[dtype_count] = {
      "bool",  "unsigned char", "signed char",         "short int",
      "int",   "long int",      "c10::Half",           "c10::BFloat16",
      "float", "double",        "c10::complex<float>", "c10::complex<double>"};
  return texts[int(d)];
}

void check_matrices_fit(std::int64_t rows, std::int64_t inner, std::int64_t inner2, std::int64_t cols) {
  check(inner == inner2, "mat1 and mat2 shapes cannot be multiplied (", rows, "x", inner, " and ", inner2, "x", cols,
        ")");
}

void check_multipliable(DType d, const char* operation) {
  if (d == DType::Bool) fail(ErrorKind::NotImplemented, '"', operation, "\" not implemented for 'Bool'");
}

TensorRef mm(const Tensor& a, const Tensor& b) {
  check(a.ndim == 2, "self must be a matrix");
  check(b.ndim == 2, "mat2 must be a matrix");
  check(a.dtype == b.dtype, "expected m1 and m2 to have the same dtype, but got: ", type_text(a.dtype),
        " != ", type_text(b.dtype));
  check_matrices_fit(a.size(0), a.size(1), b.size(0), b.size(1));
  check_multipliable(a.dtype, "addmm_impl_cpu_");
  TensorRef out = empty(Dims{a.size(0), b.size(1)}, a.dtype);
  gemm(a.dtype, matrix(a, a.read()), matrix(b, b.read()), matrix(*out, out->write()));
  return record("MmBackward0", std::move(out), {&a, &b}, {save_in(a, 0), save_in(b, 1)}, by_rows([](Vjp& v) {
                  if (v.needs(0)) v.set(0, matmul(*v.grad(), *adjoint(*v.saved(1))));
                  if (v.needs(1)) v.set(1, matmul(*adjoint(*v.saved(0)), *v.grad()));
                }));
}

TensorRef bmm(const Tensor& a, const Tensor& b) {
  check(a.ndim == 3, "batch1 must be a 3D tensor");
  check(b.ndim == 3, "batch2 must be a 3D tensor");
  check(a.size(0) == b.size(0) && a.size(2) == b.size(1),
        "Expected size for first two dimensions of batch2 tensor to be: [", a.size(0), ", ", a.size(2), "] but got: [",
        b.size(0), ", ", b.size(1), "].");
  check(a.dtype == b.dtype, "expected scalar type ", info(a.dtype).scalar_name, " but found ",
        info(b.dtype).scalar_name);
  check_multipliable(a.dtype, "bmm");
  TensorRef out = empty(Dims{a.size(0), a.size(1), b.size(2)}, a.dtype);
  gemm_batch(a.dtype, a.size(0), matrix(a, a.read()), matrix(b, b.read()), matrix(*out, out->write()),
             {a.stride(0), b.stride(0), out->stride(0)});
  return record("BmmBackward0", std::move(out), {&a, &b}, {save_in(a, 0), save_in(b, 1)}, by_rows([](Vjp& v) {
                  if (v.needs(0)) v.set(0, matmul(*v.grad(), *adjoint(*v.saved(1))));
                  if (v.needs(1)) v.set(1, matmul(*adjoint(*v.saved(0)), *v.grad()));
                }));
}

namespace {

/// A vector as a matrix of one column.
MatrixView column(const Tensor& t, const std::byte* base) {
  return {const_cast<std::byte*>(base), t.size(0), 1, t.stride(0), 1};
}
MatrixView row(const Tensor& t, const std::byte* base) {
  return {const_cast<std::byte*>(base), 1, t.size(0), 1, t.stride(0)};
}

void check_vectors(const Tensor& a, const Tensor& b) {
  check(a.ndim == 1 && b.ndim == 1, "1D tensors expected, but got ", int(a.ndim), "D and ", int(b.ndim), "D tensors");
  check(a.dtype == b.dtype, "dot : expected both vectors to have same dtype, but found ", info(a.dtype).scalar_name,
        " and ", info(b.dtype).scalar_name);
  check(a.size(0) == b.size(0), "inconsistent tensor size, expected tensor [", a.size(0), "] and src [", b.size(0),
        "] to have the same number of elements, but got ", a.size(0), " and ", b.size(0), " elements respectively");
  check_multipliable(a.dtype, "dot");
}

TensorRef sum_of_products(const Tensor& a, const Tensor& b) {
  TensorRef out = empty({}, a.dtype);
  gemm(a.dtype, row(a, a.read()), column(b, b.read()), {out->write(), 1, 1, 1, 1});
  return out;
}

TensorRef vdot(const Tensor& a, const Tensor& b) {
  check_vectors(a, b);
  TensorRef out;
  {
    GradScope off(false);
    out = sum_of_products(*conjugate(a), b);
  }
  return record("VdotBackward0", std::move(out), {&a, &b}, {save_in(a, 0), save_in(b, 1)}, [](Vjp& v) {
    if (v.needs(0)) v.set(0, mul(conjugate(*v.grad()), v.saved(1)));
    if (v.needs(1)) v.set(1, mul(v.grad(), v.saved(0)));
  });
}

TensorRef inner(const Tensor& a, const Tensor& b) {
  if (a.ndim == 0 || b.ndim == 0) return mul(a, b);
  check(a.size(a.ndim - 1) == b.size(b.ndim - 1),
        "inner() the last dimension must match on both input tensors but got shapes ", to_string(a.sizes()), " and ",
        to_string(b.sizes()));
  if (a.ndim == 1 && b.ndim == 1) return dot(a, b);
  Dims sizes(a.sizes());
  sizes.pop_back();
  for (int i = 0; i + 1 < b.ndim; ++i) sizes.push_back(b.size(i));
  auto rows = [](const Tensor& t) {
    std::int64_t width = t.size(t.ndim - 1);
    return reshape(t, Dims{count_elements(t.sizes().first(std::size_t(t.ndim - 1))), width});
  };
  return view(*mm(*rows(a), *transpose(*rows(b), 0, 1)), sizes);
}

}  // namespace

TensorRef dot(const Tensor& a, const Tensor& b) {
  check_vectors(a, b);
  return record("DotBackward0", sum_of_products(a, b), {&a, &b}, {save_in(a, 0), save_in(b, 1)}, by_rows([](Vjp& v) {
                  TensorRef g = v.has_rows() ? unsqueeze(*v.grad(), 1) : v.grad();
                  if (v.needs(0)) v.set(0, mul(g, conjugate(*v.saved(1))));
                  if (v.needs(1)) v.set(1, mul(g, conjugate(*v.saved(0))));
                }));
}

TensorRef mv(const Tensor& a, const Tensor& b) {
  check(a.ndim == 2 && b.ndim == 1, "vector + matrix @ vector expected, got 1, ", int(a.ndim), ", ", int(b.ndim));
  check(a.size(1) == b.size(0), "size mismatch, got input (", a.size(0), "), mat (", a.size(0), "x", a.size(1),
        "), vec (", b.size(0), ")");
  check(a.dtype == b.dtype, "addmv input tensors must have the same dtype, but got ", info(b.dtype).scalar_name, ", ",
        info(a.dtype).scalar_name, ", and ", info(b.dtype).scalar_name);
  check_multipliable(a.dtype, "addmv_impl_cpu");
  TensorRef out = empty(Dims{a.size(0)}, a.dtype);
  gemm(a.dtype, matrix(a, a.read()), column(b, b.read()), column(*out, out->write()));
  return record("MvBackward0", std::move(out), {&a, &b}, {save_in(a, 0), save_in(b, 1)}, by_rows([](Vjp& v) {
                  if (v.needs(0)) v.set(0, mul(unsqueeze(*v.grad(), v.dim(1)), conjugate(*v.saved(1))));
                  if (v.needs(1))
                    v.set(1,
                          v.has_rows() ? mm(*v.grad(), *conjugate(*v.saved(0))) : mv(*adjoint(*v.saved(0)), *v.grad()));
                }));
}

TensorRef outer(const Tensor& a, const Tensor& b) {
  check(a.ndim == 1, "outer: Expected 1-D argument self, but got ", int(a.ndim), "-D");
  check(b.ndim == 1, "outer: Expected 1-D argument vec2, but got ", int(b.ndim), "-D");
  return mul(unsqueeze(a, 1), b);
}

TensorRef matmul(const Tensor& a, const Tensor& b) {
  check(a.ndim > 0 && b.ndim > 0, "both arguments to matmul need to be at least 1D, but they are ", int(a.ndim),
        "D and ", int(b.ndim), "D");
  if (a.ndim == 2 && b.ndim == 2) return mm(a, b);
  if (b.ndim == 1) {
    if (a.ndim == 1) return dot(a, b);
    if (a.ndim == 2) return mv(a, b);
  }
  if (a.ndim == 1) return squeeze(*matmul(*unsqueeze(a, 0), b), -2);
  if (b.ndim <= 2) {  // the batch dimensions of a are rows
    Dims sizes(a.sizes());
    std::int64_t width = sizes.back();
    sizes.pop_back();
    TensorRef rows = reshape(a, Dims{count_elements(sizes), width});
    if (b.ndim == 2) sizes.push_back(b.size(1));
    return view(b.ndim == 2 ? *mm(*rows, b) : *mv(*rows, b), sizes);
  }
  Dims batch = broadcast_sizes(a.sizes().first(std::size_t(a.ndim - 2)), b.sizes().first(std::size_t(b.ndim - 2)));
  auto folded = [&](const Tensor& t) {
    Dims sizes = batch;
    sizes.push_back(t.size(t.ndim - 2));
    sizes.push_back(t.size(t.ndim - 1));
    TensorRef wide = equal(sizes, t.sizes()) ? TensorRef(const_cast<Tensor*>(&t)) : expand(t, sizes);
    return batch.size() == 1 ? wide
                             : reshape(*wide, Dims{count_elements(batch), t.size(t.ndim - 2), t.size(t.ndim - 1)});
  };
  TensorRef out = bmm(*folded(a), *folded(b));
  if (batch.size() == 1) return out;
  Dims sizes = batch;
  sizes.push_back(a.size(a.ndim - 2));
  sizes.push_back(b.size(b.ndim - 1));
  return view(*out, sizes);
}

// ---- the operators

namespace {

const Define products[] = {
    {"mm(Tensor self, Tensor mat2)", &mm, Both | Out, "The product of two matrices."},
    {"bmm(Tensor self, Tensor mat2)", &bmm, Both | Out, "The products of two batches of matrices."},
    {"matmul(Tensor self, Tensor other)", &matmul, Both | Out,
     "The product of vectors, matrices and batches of matrices."},
    {"mv(Tensor self, Tensor vec)", &mv, Both | Out, "The product of a matrix and a vector."},
    {"dot(Tensor self, Tensor tensor)", &dot, Both | Out, "The sum of the products of two vectors' elements."},
    {"vdot(Tensor self, Tensor other)", &vdot, Both | Out,
     "The sum of the products of two vectors' elements, those of the first conjugated."},
    {"inner(Tensor self, Tensor other)", &inner, Both | Out, "Sums of products over the last dimensions of both."},
    {"outer(Tensor self, Tensor vec2)", &outer, Both | Out,
     "The matrix of the products of each element of one vector with each of another."},
    {"ger(Tensor self, Tensor vec2)", &outer, Both | Out, "The same as outer."},
};

}  // namespace

}  // namespace rushlight
