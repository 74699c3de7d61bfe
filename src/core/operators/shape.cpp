// Views made of other views, and changes of a tensor's own shape.
#include <limits>

#include "autograd/tangent.h"
#include "operators/operators.h"
#include "operators/registry.h"
#include "operators/view_form.h"
#include "tensor/format.h"

namespace rushlight {
namespace {

TensorRef ravel(const Tensor& t) { return view(*contiguous(t), Dims{-1}); }

TensorRef unflatten(const Tensor& t, std::int64_t dim_, const Dims& sizes) {
  int dim = wrap_dim(dim_, t.ndim);
  check(!sizes.empty(), "unflatten: sizes must be non-empty");
  check(t.ndim > 0, "unflatten got an unexpected error:\nthe tensor has no dimensions");
  std::int64_t open = 0, product = 1;
  for (auto s : sizes) {
    open += s == -1;
    check(s >= -1 && open <= 1, "unflatten got an unexpected error:\n",
          s < -1 ? concat("invalid shape dimension ", s) : "only one dimension can be inferred");
    if (s >= 0) product *= s;
  }
  bool fits = open ? (product != 0 && t.size(dim) % product == 0) : product == t.size(dim);
  check(fits, "unflatten: Provided sizes ", sizes, " don't multiply up to the size of dim ", dim, " (", t.size(dim),
        ") in the input tensor");
  Dims all;
  for (int i = 0; i < t.ndim; ++i) {
    if (i != dim) {
      all.push_back(t.size(i));
      continue;
    }
    for (auto s : sizes) all.push_back(s == -1 ? t.size(dim) / product : s);
  }
  return view(t, all);
}

TensorRef adjoint(const Tensor& t) {
  check(t.ndim != 1, "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.");
  if (t.ndim == 0) return TensorRef(const_cast<Tensor*>(&t));
  TensorRef out = transpose(t, -2, -1);
  return is_complex(t.dtype) ? pointwise(pointwise_op("conj_physical"), {Operand(out)}) : out;
}

TensorRef atleast_1d(const Tensor& t) { return t.ndim ? TensorRef(const_cast<Tensor*>(&t)) : reshape(t, Dims{1}); }
TensorRef atleast_2d(const Tensor& t) {
  return t.ndim > 1 ? TensorRef(const_cast<Tensor*>(&t)) : t.ndim ? unsqueeze(t, 0) : reshape(t, Dims{1, 1});
}
TensorRef atleast_3d(const Tensor& t) {
  if (t.ndim > 2) return TensorRef(const_cast<Tensor*>(&t));
  if (t.ndim == 0) return reshape(t, Dims{1, 1, 1});
  return t.ndim == 2 ? unsqueeze(t, -1) : unsqueeze(*unsqueeze(t, 0), -1);
}
template <TensorRef (*one)(const Tensor&)>
TensorList each_of(const Tensors& tensors) {
  TensorList out;
  for (const Tensor* t : tensors) out.push_back(one(*t));
  return out;
}

// ---- changes of the tensor's own shape

/// Gives `t` another window of its storage, recorded as an operation that `derivative` belongs to.
template <class F>
TensorRef rearrange(const char* name, const char* operation, Tensor& t, const Dims& sizes, const Dims& strides,
                    std::int64_t offset, F&& derivative) {
  bool records = is_differentiable(t.dtype) && needs_record(t);
  check_inplace(t, wants_gradients(t));
  if (diagnosis.record_locations || diagnosis.anomaly) [[unlikely]]
    trace_change(&t, operation);
  Ref<Node> node;
  if (records) {
    const Tensor* inputs[] = {&t};
    node = make_lambda_node(name, inputs, {}, 1, std::forward<F>(derivative));
  }
  set_geometry(&t, sizes, strides);
  t.offset = offset;
  t.bump_version();
  if (node) {
    note_output(node.get(), t);
    TensorRef self(&t);
    if (modes.dual)
      give_dual_history(node.get(), {&self, 1});
    else
      set_history(t, node.get());
  }
  if (is_view(t)) t.meta->view_version = t.version();  // a view shows its base as before: the history is right
  return TensorRef(&t);
}

/// The same where the derivative gives the gradient its old shape back.
TensorRef reshape_own(const char* name, const char* operation, Tensor& t, const Dims& sizes, const Dims& strides) {
  return rearrange(name, operation, t, sizes, strides, t.offset,
                   [from = Dims(t.sizes())](Vjp& v) { v.set(0, reshape(*v.grad(), from)); });
}

TensorRef exchange_own(const char* name, const char* operation, Tensor& t, int a, int b) {
  Dims sizes(t.sizes()), strides(t.strides());
  if (t.ndim) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  return rearrange(name, operation, t, sizes, strides, t.offset,
                   [a, b](Vjp& v) { v.set(0, transpose(*v.grad(), a, b)); });
}
TensorRef transpose_(Tensor& t, std::int64_t a, std::int64_t b) {
  return exchange_own("TransposeBackward1", "transpose_", t, wrap_dim(a, t.ndim), wrap_dim(b, t.ndim));
}
TensorRef t_(Tensor& t) {
  check(t.ndim <= 2, "t_() expects a tensor with <= 2 dimensions, but self is ", int(t.ndim), "D");
  return exchange_own("TBackward1", "t_", t, 0, t.ndim == 2 ? 1 : 0);
}

TensorRef squeeze_own(const char* name, Tensor& t, std::uint64_t mask) {
  Dims sizes, strides;
  for (int i = 0; i < t.ndim; ++i)
    if (t.size(i) != 1 || !((mask >> i) & 1)) {
      sizes.push_back(t.size(i));
      strides.push_back(t.stride(i));
    }
  return reshape_own(name, "squeeze_", t, sizes, strides);
}
TensorRef squeeze_all_(Tensor& t) { return squeeze_own("SqueezeBackward3", t, ~std::uint64_t(0)); }
TensorRef squeeze_(Tensor& t, std::int64_t dim) {
  return squeeze_own("SqueezeBackward4", t, std::uint64_t(1) << wrap_dim(dim, t.ndim));
}
TensorRef squeeze_dims_(Tensor& t, const Dims& dims) {
  return squeeze_own("SqueezeBackward5", t, dim_mask(dims, t.ndim));
}

TensorRef unsqueeze_(Tensor& t, std::int64_t dim_) {
  int dim = wrap_dim(dim_, t.ndim + 1);
  Dims sizes(t.sizes()), strides(t.strides());
  strides.insert(dim, dim < t.ndim ? t.size(dim) * t.stride(dim) : 1);
  sizes.insert(dim, 1);
  return reshape_own("UnsqueezeBackward1", "unsqueeze_", t, sizes, strides);
}

TensorRef as_strided_(Tensor& t, const Dims& size, const Dims& stride, std::optional<std::int64_t> offset) {
  std::int64_t at = offset.value_or(t.offset);
  {
    GradScope off(false);
    as_strided(t, size, stride, at);  // the checks
  }
  Dims sizes(t.sizes()), strides(t.strides());
  return rearrange("AsStridedBackward1", "as_strided_", t, size, stride, at, [=, from = t.offset](Vjp& v) {
    v.set(0, as_strided_backward(*v.grad(), sizes, strides, from, size, stride, at));
  });
}

TensorRef resize_(Tensor& t, const Dims& size, MemoryFormat format) {
  check(!t.requires_grad(), "cannot resize variables that require grad");
  check(format != MemoryFormat::Preserve, "Unsupported memory format Preserve");
  bool same = equal(t.sizes(), size);
  if (same && format == MemoryFormat::Absent) return TensorRef(&t);
  std::int64_t numel = count_elements(size), bytes;
  check(!__builtin_mul_overflow(t.offset + numel, t.item_size(), &bytes),
        "Storage size calculation overflowed with sizes=", to_string(size));
  if (numel && bytes > std::int64_t(t.storage->size)) resize_storage(t.storage, std::size_t(bytes));
  set_geometry(&t, size, format_strides(size, format));
  t.bump_version();
  return TensorRef(&t);
}
TensorRef resize_as_(Tensor& t, const Tensor& like, MemoryFormat format) {
  return resize_(t, Dims(like.sizes()), format == MemoryFormat::Preserve ? suggested_format(like) : format);
}

const Define shapes[] = {
    {"ravel(Tensor self)", &ravel, Both, "All elements as a vector, without a copy where they lie in row-major order."},
    {"unflatten(Tensor self, int dim, int[] sizes)", &unflatten, Both, "A view with one dimension as several."},
    {"adjoint(Tensor self)", &adjoint, Both, "Matrices transposed and conjugated."},
    {"atleast_1d(Tensor self)", &atleast_1d, Function, "A view with at least one dimension."},
    {"atleast_1d(Tensor[] tensors)", &each_of<&atleast_1d>, Function},
    {"atleast_2d(Tensor self)", &atleast_2d, Function, "A view with at least two dimensions."},
    {"atleast_2d(Tensor[] tensors)", &each_of<&atleast_2d>, Function},
    {"atleast_3d(Tensor self)", &atleast_3d, Function, "A view with at least three dimensions."},
    {"atleast_3d(Tensor[] tensors)", &each_of<&atleast_3d>, Function},
    {"transpose_(Tensor self, int dim0, int dim1)", &transpose_, Method, "transpose of the tensor itself."},
    {"swapaxes_(Tensor self, int axis0, int axis1)", &transpose_, Method, "transpose_"},
    {"swapdims_(Tensor self, int dim0, int dim1)", &transpose_, Method, "transpose_"},
    {"t_(Tensor self)", &t_, Method, "t of the tensor itself."},
    {"squeeze_(Tensor self)", &squeeze_all_, Method, "squeeze of the tensor itself."},
    {"squeeze_(Tensor self, int dim)", &squeeze_, Method},
    {"squeeze_(Tensor self, int[] dim)", &squeeze_dims_, Method},
    {"unsqueeze_(Tensor self, int dim)", &unsqueeze_, Method, "unsqueeze of the tensor itself."},
    {"as_strided_(Tensor self, int[] size, int[] stride, int? storage_offset=None)", &as_strided_, Both,
     "as_strided of the tensor itself."},
    {"resize_(Tensor self, int[] size, *, memory_format memory_format=None)", &resize_, Method,
     "Another shape over the same storage, which grows where it is too small."},
    {"resize_as_(Tensor self, Tensor the_template, *, memory_format memory_format=None)", &resize_as_, Both,
     "resize_ to the shape of another tensor."},
};

}  // namespace

}  // namespace rushlight
