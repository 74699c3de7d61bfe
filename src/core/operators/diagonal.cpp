// Diagonals: views of them, and matrices made of them.
#include "operators/operators.h"
#include "operators/registry.h"
#include "operators/view_form.h"

namespace rushlight {

TensorRef diagonal(const Tensor& t, std::int64_t offset, std::int64_t first, std::int64_t second) {
  int dim1 = wrap_dim(first, t.ndim), dim2 = wrap_dim(second, t.ndim);
  check(dim1 != dim2, "diagonal dimensions cannot be identical ", first, ", ", second);
  std::int64_t rows = t.size(dim1), columns = t.size(dim2);
  std::int64_t n = offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns);
  if (n < 0) n = 0;
  Dims sizes, strides;
  for (int i = 0; i < t.ndim; ++i)
    if (i != dim1 && i != dim2) {
      sizes.push_back(t.size(i));
      strides.push_back(t.stride(i));
    }
  sizes.push_back(n);
  strides.push_back(t.stride(dim1) + t.stride(dim2));
  std::int64_t start = n == 0 ? 0 : offset >= 0 ? offset * t.stride(dim2) : -offset * t.stride(dim1);
  return recorded_view("DiagonalBackward0", t, window(t, sizes, strides, t.offset + start),
                       by_rows([from = Dims(t.sizes()), offset, dim1, dim2](Vjp& v) {
                         v.set(0, diagonal_backward(*v.grad(), v.shape(from), offset, v.dim(dim1), v.dim(dim2)));
                       }));
}

TensorRef diagonal_backward(const Tensor& g, IntSpan sizes, std::int64_t offset, int dim1, int dim2) {
  return padded("DiagonalBackwardBackward0", g, sizes,
                [=](const Tensor& t) { return diagonal(t, offset, dim1, dim2); });
}

TensorRef diag_embed(const Tensor& t, std::int64_t offset, std::int64_t first, std::int64_t second) {
  int n = t.ndim + 1, dim1 = wrap_dim(first, n), dim2 = wrap_dim(second, n);
  check(dim1 != dim2, "diagonal dimensions cannot be identical ", first, ", ", second);
  std::int64_t length = std::abs(offset) + t.size(t.ndim - 1);
  Dims sizes(t.sizes());
  sizes.pop_back();
  sizes.insert(std::min(dim1, dim2), length);
  sizes.insert(std::max(dim1, dim2), length);
  return padded("DiagEmbedBackward0", t, sizes, [=](const Tensor& x) { return diagonal(x, offset, dim1, dim2); });
}

// ---- the operators

namespace {

TensorRef diag(const Tensor& t, std::int64_t offset) {
  check(t.ndim == 1 || t.ndim == 2, "diag(): Supports 1D or 2D tensors. Got ", int(t.ndim), "D");
  if (t.ndim == 1) return diag_embed(t, offset, 0, 1);
  TensorRef out;
  {
    GradScope off(false);
    out = own_copy(*diagonal(t, offset, 0, 1));
  }
  if (!is_differentiable(t.dtype)) return out;
  return record("DiagonalBackward0_copy", out, {&t}, {}, [from = Dims(t.sizes()), offset](Vjp& v) {
    v.set(0, diagonal_backward(*v.grad(), from, offset, 0, 1));
  });
}

TensorRef diagflat(const Tensor& t, std::int64_t offset) { return diag_embed(*reshape(t, Dims{-1}), offset, 0, 1); }

TensorRef trace(const Tensor& t) {
  check(t.ndim == 2, "trace: expected a matrix, but got tensor with dim ", int(t.ndim));
  if (t.dtype == DType::Bool) fail(ErrorKind::NotImplemented, "\"trace\" not implemented for 'Bool'");
  TensorRef out;
  {
    GradScope off(false);
    out = sum(*diagonal(t, 0, 0, 1), {});
  }
  if (!is_differentiable(t.dtype)) return out;
  return record("TraceBackward0", out, {&t}, {}, [from = Dims(t.sizes())](Vjp& v) {
    TensorRef each = expand(*v.grad(), Dims{std::min(from[0], from[1])});
    v.set(0, diagonal_backward(*each, from, 0, 0, 1));
  });
}

const Define diagonals[] = {
    {"diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1)", &diagonal, Both,
     "A view of a diagonal of two dimensions, as the last dimension."},
    {"diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1)", copied<&diagonal>, Function | Out,
     "A copy of diagonal."},
    {"diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1)", &diag_embed, Both,
     "Matrices with the last dimension on a diagonal, zeros elsewhere."},
    {"diag(Tensor self, int diagonal=0)", &diag, Both | Out,
     "Of a vector the matrix with it on a diagonal; of a matrix a copy of the diagonal."},
    {"diagflat(Tensor self, int offset=0)", &diagflat, Both, "The matrix with all elements on a diagonal."},
    {"trace(Tensor self)", &trace, Both, "The sum of a matrix' diagonal."},
};

}  // namespace

}  // namespace rushlight
