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
  record_many("CatBackward0", {&out, 1}, tensors, {}, by_rows([extents = std::move(extents), dim](Vjp& v) {
                const Tensor& g = *v.grad();
                std::int64_t at = 0;
                for (std::size_t i = 0; i < extents.size.size(); ++i) {
                  std::int64_t n = extents.size[i];
                  if (v.needs(int(i)))
                    v.set(int(i), cast(n < 0 ? *zeros(v.shape(Dims{0}), g.dtype) : *narrow(g, v.dim(dim), at, n),
                                       extents.dtype[i]));
                  if (n > 0) at += n;
                }
              }));
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
  record_many("StackBackward0", {&out, 1}, tensors, {}, by_rows([types = std::move(types), dim](Vjp& v) {
                for (std::size_t i = 0; i < types.size(); ++i)
                  if (v.needs(int(i))) v.set(int(i), cast(*select(*v.grad(), v.dim(dim), std::int64_t(i)), types[i]));
              }));
  return out;
}

// ---- the operators

namespace {

TensorRef cat_op(const Tensors& tensors, std::int64_t dim) { return cat(tensors, dim); }
TensorRef stack_op(const Tensors& tensors, std::int64_t dim) { return stack(tensors, dim); }

void check_some(const char* name, const Tensors& tensors) {
  check(!tensors.empty(), name, " expects a non-empty TensorList");
}

/// The tensors with at least so many dimensions, as atleast_1d and its like give them.
TensorList raised(const Tensors& tensors, int ndim) {
  TensorList out;
  for (const Tensor* t : tensors) {
    TensorRef x(const_cast<Tensor*>(t));
    if (ndim == 1 && x->ndim < 1) x = reshape(*x, Dims{1});
    if (ndim >= 2 && x->ndim < 2) x = x->ndim == 0 ? reshape(*x, Dims{1, 1}) : unsqueeze(*x, 0);
    if (ndim == 3 && x->ndim < 3) x = unsqueeze(*x, -1);
    out.push_back(std::move(x));
  }
  return out;
}

TensorRef hstack(const Tensors& tensors) {
  check_some("hstack", tensors);
  TensorList parts = raised(tensors, 1);
  return cat(pointers(parts), parts[0]->ndim == 1 ? 0 : 1);
}
TensorRef vstack(const Tensors& tensors) {
  check_some("vstack", tensors);
  return cat(pointers(raised(tensors, 2)), 0);
}
TensorRef dstack(const Tensors& tensors) {
  check_some("dstack", tensors);
  return cat(pointers(raised(tensors, 3)), 2);
}
TensorRef column_stack(const Tensors& tensors) {
  check_some("column_stack", tensors);
  TensorList columns;
  for (const Tensor* t : tensors)
    columns.push_back(t->ndim <= 1 ? reshape(*t, Dims{t->numel, 1}) : TensorRef(const_cast<Tensor*>(t)));
  return hstack(pointers(columns));
}

TensorRef block_diag(const Tensors& tensors) {
  Dims sizes{0, 0};
  struct Block {
    std::int64_t rows, columns;
    DType dtype;
    Dims shape;
  };
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = *tensors[i];
    check(t.ndim <= 2, "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input ", i, " has ",
          int(t.ndim), " dimensions");
    blocks.push_back({t.ndim == 2 ? t.size(0) : 1, t.ndim ? t.size(t.ndim - 1) : 1, t.dtype, Dims(t.sizes())});
    sizes[0] += blocks.back().rows;
    sizes[1] += blocks.back().columns;
  }
  if (tensors.empty()) return zeros(Dims{1, 0}, default_dtype);
  TensorRef out = zeros(sizes, joined_type(tensors));
  std::int64_t row = 0, column = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Block& b = blocks[i];
    TensorRef place = make_tensor(Ref<Storage>(out->storage), out->dtype, Dims{b.rows, b.columns}, out->strides(),
                                  row * sizes[1] + column);
    const Tensor& t = *tensors[i];
    copy_numbers(*place, t);
    row += b.rows;
    column += b.columns;
  }
  if (!any_needs_record(tensors) || !is_differentiable(out->dtype)) return out;
  record_many("BlockDiagBackward0", {&out, 1}, tensors, {}, [blocks = std::move(blocks)](Vjp& v) {
    std::int64_t row = 0, column = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const Block& b = blocks[i];
      if (v.needs(int(i)))
        v.set(int(i),
              cast(*reshape(*narrow(*narrow(*v.grad(), 0, row, b.rows), 1, column, b.columns), b.shape), b.dtype));
      row += b.rows;
      column += b.columns;
    }
  });
  return out;
}

TensorList broadcast_tensors(const Tensors& tensors) {
  Dims sizes;
  for (const Tensor* t : tensors) sizes = broadcast_sizes(sizes, t->sizes());
  TensorList out;
  for (const Tensor* t : tensors)
    out.push_back(equal(t->sizes(), sizes) ? TensorRef(const_cast<Tensor*>(t)) : expand(*t, sizes));
  return out;
}

TensorList grids(const Tensors& tensors, bool columns_first) {
  check_some("meshgrid", tensors);
  for (const Tensor* t : tensors) {
    check(t->dtype == tensors[0]->dtype, "meshgrid expects all tensors to have the same dtype");
    check(t->ndim <= 1, "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got one of shape ",
          to_string(t->sizes()));
  }
  int n = int(tensors.size());
  Tensors order(tensors);
  bool swapped = columns_first && n >= 2;
  if (swapped) std::swap(order[0], order[1]);
  Dims sizes(n);
  for (int i = 0; i < n; ++i) sizes[i] = order[std::size_t(i)]->numel;
  TensorList out;
  for (int i = 0; i < n; ++i) {
    Dims lone(n, 1);
    lone[i] = sizes[i];
    out.push_back(expand(*view(*contiguous(*order[std::size_t(i)]), lone), sizes));
  }
  if (swapped) std::swap(out[0], out[1]);
  return out;
}

TensorList meshgrid(const Tensors& tensors, const std::optional<std::string>& indexing) {
  if (!indexing) {
    warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.");
    return grids(tensors, false);
  }
  check(*indexing == "ij" || *indexing == "xy",
        "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: ", *indexing);
  return grids(tensors, *indexing == "xy");
}

TensorRef cartesian_prod(const Tensors& tensors) {
  for (const Tensor* t : tensors) check(t->ndim == 1, "Expect a 1D vector, but got shape ", to_string(t->sizes()));
  if (tensors.size() == 1) return TensorRef(const_cast<Tensor*>(tensors[0]));
  TensorList columns;
  for (auto& grid : grids(tensors, false)) columns.push_back(reshape(*grid, Dims{-1}));
  return stack(pointers(columns), 1);
}

/// The rising (where `repeats`: not falling) sequences of r numbers below n in order: one list per place in the
/// sequence.
std::vector<std::vector<std::int64_t>> sequences(std::int64_t n, std::int64_t r, bool repeats) {
  std::vector<std::vector<std::int64_t>> out(static_cast<std::size_t>(r));
  std::vector<std::int64_t> at(static_cast<std::size_t>(r));
  for (std::int64_t i = 0; i < r; ++i) at[std::size_t(i)] = repeats ? 0 : i;
  if (n == 0 || (!repeats && r > n)) return out;
  while (true) {
    for (std::int64_t i = 0; i < r; ++i) out[std::size_t(i)].push_back(at[std::size_t(i)]);
    std::int64_t i = r - 1;
    auto limit = [&](std::int64_t k) { return repeats ? n - 1 : n - r + k; };
    while (i >= 0 && at[std::size_t(i)] == limit(i)) --i;
    if (i < 0) return out;
    ++at[std::size_t(i)];
    for (std::int64_t k = i + 1; k < r; ++k) at[std::size_t(k)] = at[std::size_t(k - 1)] + (repeats ? 0 : 1);
  }
}

TensorRef combinations(const Tensor& t, std::int64_t r, bool with_replacement) {
  check(t.ndim == 1, "Expect a 1D vector, but got shape ", to_string(t.sizes()));
  check(r >= 0, "Expect a non-negative number, but got ", r);
  if (r == 0) return empty(Dims{0}, t.dtype);
  TensorList columns;
  for (auto& list : sequences(t.size(0), r, with_replacement)) {
    TensorRef index = empty(Dims{std::int64_t(list.size())}, DType::Int64);
    std::copy(list.begin(), list.end(), index->write_as<std::int64_t>());
    columns.push_back(index_select(t, 0, *index));
  }
  return stack(pointers(columns), 1);
}

const Define joins[] = {
    {"cat(Tensor[] tensors, int dim=0)", &cat_op, Function | Out, "Tensors one behind the other along a dimension."},
    {"concat(Tensor[] tensors, int dim=0)", &cat_op, Function | Out, "The same as cat."},
    {"concatenate(Tensor[] tensors, int dim=0)", &cat_op, Function | Out, "The same as cat."},
    {"stack(Tensor[] tensors, int dim=0)", &stack_op, Function | Out, "Tensors of one shape along a new dimension."},
    {"hstack(Tensor[] tensors)", &hstack, Function | Out, "Tensors side by side: along dimension 1, vectors along 0."},
    {"vstack(Tensor[] tensors)", &vstack, Function | Out, "Tensors as rows, one below the other."},
    {"row_stack(Tensor[] tensors)", &vstack, Function | Out, "vstack"},
    {"dstack(Tensor[] tensors)", &dstack, Function | Out, "Tensors along dimension 2."},
    {"column_stack(Tensor[] tensors)", &column_stack, Function | Out, "hstack with vectors as columns."},
    {"block_diag(Tensor[] tensors)", &block_diag, Function, "The matrix with the tensors along its diagonal."},
    {"broadcast_tensors(Tensor[] tensors)", &broadcast_tensors, Function,
     "Views of one shape, the one that they broadcast to."},
    {"meshgrid(Tensor[] tensors, *, str? indexing=None)", &meshgrid, Function,
     "Coordinates of a grid: a view per vector, which varies along its own dimension."},
    {"cartesian_prod(Tensor[] tensors)", &cartesian_prod, Function,
     "All combinations of one element of each vector, one row each."},
    {"combinations(Tensor self, int r=2, bool with_replacement=False)", &combinations, Function,
     "All choices of r elements of a vector, one row each."},
};

}  // namespace

}  // namespace rushlight
