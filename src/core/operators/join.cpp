#include "operators/join.h"

#include <memory>

#include "kernels/join.h"
#include "kernels/line.h"
#include "operators/operators.h"
#include "tensor/format.h"

namespace rushlight {

Tensors pointers(const TensorList& list) {
  Tensors out;
  out.reserve(list.size());
  for (auto& t : list) out.push_back(t.get());
  return out;
}

namespace {

/// The promoted type of all tensors.
DType joined_type(const Tensors& tensors) {
  DType first = tensors[0]->dtype;
  bool same = true;
  for (const Tensor* t : tensors) same = same && t->dtype == first;
  if (same) return first;
  std::vector<Operand> operands;
  for (const Tensor* t : tensors) operands.emplace_back(*t);
  return result_type(operands.data(), int(operands.size()));
}

/// The common memory format, contiguous where they differ.
MemoryFormat joined_format(const Tensors& tensors) {
  if (tensors[0]->is_contiguous()) return MemoryFormat::Contiguous;
  MemoryFormat format = suggested_format(*tensors[0]);
  for (const Tensor* t : tensors)
    if (suggested_format(*t) != format) return MemoryFormat::Contiguous;
  return format;
}

/// A tensor that cat passes over: PyTorch's early versions had no other empty one.
bool is_skipped(const Tensor& t) { return t.ndim == 1 && t.size(0) == 0; }

/// Copies the parts side by side along `dim` of `out`; those that are skipped have no extent.
void join_into(Tensor& out, const Tensors& parts, int dim) {
  auto n = std::int64_t(parts.size());
  bool plain = out.is_contiguous();
  for (const Tensor* t : parts) plain = plain && (is_skipped(*t) || (t->is_contiguous() && t->dtype == out.dtype));
  if (plain) {
    std::int64_t rows = 1, inner = out.item_size();
    for (int i = 0; i < dim; ++i) rows *= out.size(i);
    for (int i = dim + 1; i < out.ndim; ++i) inner *= out.size(i);
    WorkArray<JoinBlock, 32> blocks(n);
    for (std::int64_t i = 0; i < n; ++i) {
      const Tensor& t = *parts[std::size_t(i)];
      blocks[i] = {t.read(), is_skipped(t) ? 0 : t.size(dim) * inner};
    }
    join_rows(out.write(), rows, blocks.data(), n);
    return;
  }
  std::int64_t at = 0;
  for (const Tensor* t : parts) {
    if (is_skipped(*t)) continue;
    TensorRef place =
        make_tensor(Ref<Storage>(out.storage), out.dtype, t->sizes(), out.strides(), out.offset + at * out.stride(dim));
    copy_numbers(*place, *t);
    at += t->size(dim);
  }
}

/// The shape of the result; refuses what does not fit together.
Dims joined_sizes(const Tensors& tensors, int dim, const Tensor& shape) {
  Dims sizes(shape.sizes());
  if (is_skipped(shape)) return sizes;
  std::int64_t total = 0, number = 0;
  for (const Tensor* t : tensors) {
    if (!is_skipped(*t)) {
      check(t->ndim == shape.ndim, "Tensors must have same number of dimensions: got ", int(shape.ndim), " and ",
            int(t->ndim));
      for (int i = 0; i < shape.ndim; ++i)
        check(i == dim || t->size(i) == shape.size(i), "Sizes of tensors must match except in dimension ", dim,
              ". Expected size ", shape.size(i), " but got size ", t->size(i), " for tensor number ", number,
              " in the list.");
      total += t->size(dim);
    }
    ++number;
  }
  sizes[dim] = total;
  return sizes;
}

/// How far each input of cat reaches along the dimension, with its type.
struct Extents {
  std::vector<std::int64_t> size;  ///< -1: passed over
  std::vector<DType> dtype;
};

void record_cat(const TensorRef& out, const Tensors& tensors, int dim) {
  if (!any_needs_record(tensors) || !is_differentiable(out->dtype)) return;
  Extents extents;
  for (const Tensor* t : tensors) {
    extents.size.push_back(is_skipped(*t) ? -1 : t->size(dim));
    extents.dtype.push_back(t->dtype);
  }
  record_many("CatBackward0", {&out, 1}, tensors, {}, [extents = std::move(extents), dim](Vjp& v) {
    const Tensor& g = *v.grad();
    std::int64_t at = 0;
    for (std::size_t i = 0; i < extents.size.size(); ++i) {
      std::int64_t n = extents.size[i];
      if (v.needs(int(i)))
        v.set(int(i), cast(n < 0 ? *zeros(Dims{0}, g.dtype) : *narrow(g, dim, at, n), extents.dtype[i]));
      if (n > 0) at += n;
    }
  });
}

}  // namespace

TensorRef cat(const Tensors& tensors, std::int64_t dim_) {
  check_value(!tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
  const Tensor* shape = nullptr;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    check(tensors[i]->ndim > 0, "zero-dimensional tensor (at position ", i, ") cannot be concatenated");
    if (!shape && !is_skipped(*tensors[i])) shape = tensors[i];
  }
  if (!shape) {
    shape = tensors[0];
    dim_ = 0;
  }
  int dim = wrap_dim(dim_, shape->ndim);
  Dims sizes = joined_sizes(tensors, dim, *shape);
  DType dtype = joined_type(tensors);
  MemoryFormat format = joined_format(tensors);
  TensorRef out = format == MemoryFormat::Contiguous ? empty(sizes, dtype)
                                                     : empty_strided(sizes, format_strides(sizes, format), dtype);
  if (out->numel) join_into(*out, tensors, dim);
  record_cat(out, tensors, dim);
  return out;
}

TensorRef stack(const Tensors& tensors, std::int64_t dim_) {
  check(!tensors.empty(), "stack expects a non-empty TensorList");
  const Tensor& first = *tensors[0];
  int dim = wrap_dim(dim_, first.ndim + 1);
  for (std::size_t i = 1; i < tensors.size(); ++i)
    check(equal(tensors[i]->sizes(), first.sizes()), "stack expects each tensor to be equal size, but got ",
          to_string(first.sizes()), " at entry 0 and ", to_string(tensors[i]->sizes()), " at entry ", i);
  Dims sizes(first.sizes());
  sizes.insert(dim, std::int64_t(tensors.size()));
  DType dtype = joined_type(tensors);
  TensorRef out;
  if (MemoryFormat format = dim < first.ndim ? joined_format(tensors) : MemoryFormat::Contiguous;
      format != MemoryFormat::Contiguous) {
    // laid out as cat along the dimension would be
    Dims joined(first.sizes());
    joined[dim] *= std::int64_t(tensors.size());
    Dims strides = format_strides(joined, format);
    strides.insert(dim, strides[dim] * first.size(dim));
    out = empty_strided(sizes, strides, dtype);
  } else {
    out = empty(sizes, dtype);
  }
  bool plain = out->is_contiguous();
  for (const Tensor* t : tensors) plain = plain && t->is_contiguous() && t->dtype == dtype;
  if (plain) {
    std::int64_t rows = 1;
    for (int i = 0; i < dim; ++i) rows *= sizes[i];
    auto n = std::int64_t(tensors.size());
    std::int64_t bytes = rows ? first.numel / rows * out->item_size() : 0;
    WorkArray<JoinBlock, 32> blocks(n);
    for (std::int64_t i = 0; i < n; ++i) blocks[i] = {tensors[std::size_t(i)]->read(), bytes};
    join_rows(out->write(), rows, blocks.data(), n);
  } else {
    Dims strides(out->strides());
    std::int64_t step = strides[dim];
    strides.erase(dim);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      TensorRef place = make_tensor(Ref<Storage>(out->storage), dtype, first.sizes(), strides, std::int64_t(i) * step);
      copy_numbers(*place, *tensors[i]);
    }
  }
  if (!any_needs_record(tensors) || !is_differentiable(dtype)) return out;
  std::vector<DType> types;
  for (const Tensor* t : tensors) types.push_back(t->dtype);
  record_many("StackBackward0", {&out, 1}, tensors, {}, [types = std::move(types), dim](Vjp& v) {
    for (std::size_t i = 0; i < types.size(); ++i)
      if (v.needs(int(i))) v.set(int(i), cast(*select(*v.grad(), dim, std::int64_t(i)), types[i]));
  });
  return out;
}

// ---- the operators

namespace {

TensorRef cat_op(const Tensors& tensors, std::int64_t dim) { return cat(tensors, dim); }
TensorRef stack_op(const Tensors& tensors, std::int64_t dim) { return stack(tensors, dim); }

const Define joins[] = {
    {"cat(Tensor[] tensors, int dim=0)", &cat_op, Function | Out, "Tensors one behind the other along a dimension."},
    {"concat(Tensor[] tensors, int dim=0)", &cat_op, Function | Out, "The same as cat."},
    {"concatenate(Tensor[] tensors, int dim=0)", &cat_op, Function | Out, "The same as cat."},
    {"stack(Tensor[] tensors, int dim=0)", &stack_op, Function | Out, "Tensors of one shape along a new dimension."},
};

}  // namespace

}  // namespace rushlight
