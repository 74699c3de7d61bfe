#include "operators/matmul.h"

#include "kernels/gemm.h"
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

MatrixView matrix(const Tensor& t, const std::byte* base) {
  return {const_cast<std::byte*>(base), t.size(t.ndim - 2), t.size(t.ndim - 1), t.stride(t.ndim - 2), t.stride(t.ndim - 1)};
}

void same_types(const Tensor& a, const Tensor& b) {
  check(a.dtype == b.dtype, "expected m1 and m2 to have the same dtype, but got: ", name(a.dtype), " != ", name(b.dtype));
}

TensorRef mm(const Tensor& a, const Tensor& b) {
  check(a.ndim == 2, "self must be a matrix");
  check(b.ndim == 2, "mat2 must be a matrix");
  check(a.size(1) == b.size(0), "mat1 and mat2 shapes cannot be multiplied (", a.size(0), "x", a.size(1), " and ", b.size(0), "x", b.size(1), ")");
  same_types(a, b);
  TensorRef out = empty(Dims{a.size(0), b.size(1)}, a.dtype);
  gemm(a.dtype, matrix(a, a.read()), matrix(b, b.read()), matrix(*out, out->write()), 1, 0);
  return record("MmBackward0", out, {&a, &b}, {save_in(a, 0), save_in(b, 1)}, [](Vjp& v) {
    if (v.needs(0)) v.set(0, mm(*v.grad(), *transpose(*v.saved(1), 0, 1)));
    if (v.needs(1)) v.set(1, mm(*transpose(*v.saved(0), 0, 1), *v.grad()));
  });
}

TensorRef bmm(const Tensor& a, const Tensor& b) {
  check(a.ndim == 3 && b.ndim == 3, "batch1 must be a 3D tensor");
  check(a.size(0) == b.size(0) && a.size(2) == b.size(1), "Expected size for first two dimensions of batch2 tensor to be: [", a.size(0), ", ", a.size(2), "] but got: [", b.size(0),
        ", ", b.size(1), "].");
  same_types(a, b);
  TensorRef out = empty(Dims{a.size(0), a.size(1), b.size(2)}, a.dtype);
  const std::byte *pa = a.read(), *pb = b.read();
  std::byte* pc = out->write();
  for (std::int64_t i = 0; i < a.size(0); ++i)
    gemm(a.dtype, matrix(a, pa + i * a.stride(0) * a.item_size()), matrix(b, pb + i * b.stride(0) * b.item_size()), matrix(*out, pc + i * out->stride(0) * out->item_size()), 1, 0);
  return record("BmmBackward0", out, {&a, &b}, {save_in(a, 0), save_in(b, 1)}, [](Vjp& v) {
    if (v.needs(0)) v.set(0, bmm(*v.grad(), *transpose(*v.saved(1), 1, 2)));
    if (v.needs(1)) v.set(1, bmm(*transpose(*v.saved(0), 1, 2), *v.grad()));
  });
}

}  // namespace

TensorRef matmul(const Tensor& a, const Tensor& b) {
  check(a.ndim > 0 && b.ndim > 0, "both arguments to matmul need to be at least 1D, but they are ", int(a.ndim), "D and ", int(b.ndim), "D");
  same_types(a, b);
  if (a.ndim == 2 && b.ndim == 2) return mm(a, b);
  if (a.ndim == 1 && b.ndim == 1) {
    check(a.size(0) == b.size(0), "inconsistent tensor size, expected tensor [", a.size(0), "] and src [", b.size(0), "] to have the same number of elements, but got ", a.size(0), " and ",
          b.size(0), " elements respectively");
    return view(*mm(*unsqueeze(a, 0), *unsqueeze(b, 1)), Dims{});
  }
  if (a.ndim == 1) return squeeze(*matmul(*unsqueeze(a, 0), b), -2);
  if (b.ndim == 1) return squeeze(*matmul(a, *unsqueeze(b, 1)), -1);
  if (b.ndim == 2) {  // the batch dimensions of a are rows
    Dims sizes(a.sizes());
    sizes.back() = b.size(1);
    return reshape(*mm(*reshape(a, Dims{-1, a.size(a.ndim - 1)}), b), sizes);
  }
  Dims batch = broadcast_sizes(a.sizes().first(std::size_t(a.ndim - 2)), b.sizes().first(std::size_t(b.ndim - 2)));
  auto folded = [&](const Tensor& t) {
    Dims sizes = batch;
    sizes.push_back(t.size(t.ndim - 2));
    sizes.push_back(t.size(t.ndim - 1));
    return reshape(*expand(t, sizes), Dims{count_elements(batch), t.size(t.ndim - 2), t.size(t.ndim - 1)});
  };
  Dims sizes = batch;
  sizes.push_back(a.size(a.ndim - 2));
  sizes.push_back(b.size(b.ndim - 1));
  return reshape(*bmm(*folded(a), *folded(b)), sizes);
}

// ---- the operators

namespace {

const Define products[] = {
    {"mm(Tensor self, Tensor mat2)", &mm, Both | Out, "The product of two matrices."},
    {"bmm(Tensor self, Tensor mat2)", &bmm, Both | Out, "The products of two batches of matrices."},
    {"matmul(Tensor self, Tensor other)", &matmul, Both | Out, "The product of vectors, matrices and batches of matrices."},
};

}  // namespace

}  // namespace rushlight
