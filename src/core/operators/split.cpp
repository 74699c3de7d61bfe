// Views of consecutive parts. Their derivative joins the parts' gradients.
#include <limits>

#include "operators/operators.h"
#include "operators/registry.h"
#include "operators/view_form.h"

namespace rushlight {

TensorList unbind(const Tensor& t, std::int64_t dim_) {
  check_index(t.ndim > 0, "Dimension specified as ", dim_, " but tensor has no dimensions");
  int dim = wrap_dim(dim_, t.ndim);
  Dims sizes(t.sizes()), strides(t.strides());
  sizes.erase(dim);
  strides.erase(dim);
  TensorList out;
  for (std::int64_t i = 0; i < t.size(dim); ++i)
    out.push_back(window(t, sizes, strides, t.offset + i * t.stride(dim), Creation::MultiOutput));
  if (out.empty() || !is_differentiable(t.dtype)) return out;
  const Tensor* inputs[] = {&t};
  record_many("UnbindBackward0", out, inputs, {}, by_rows([from = Dims(t.sizes()), dim, dtype = t.dtype](Vjp& v) {
                TensorList parts;
                TensorRef none;
                for (std::int64_t i = 0; i < from[dim]; ++i) {
                  parts.push_back(v.grad(int(i)));
                  if (parts.back()) continue;
                  if (!none) {
                    Dims sizes(from);
                    sizes.erase(dim);
                    none = zeros(v.shape(sizes), dtype);
                  }
                  parts.back() = none;
                }
                v.set(0, stack(pointers(parts), v.dim(dim)));
              }));
  return out;
}

namespace {

/// How parts are given: as views that autograd follows, or as tensors of their own (unsafe_split), which may be
/// changed.
enum class Parts { Followed, Unfollowed };

TensorList parts_of(const char* name, const Tensor& t, int dim, const Dims& lengths, Parts kind) {
  Dims sizes(t.sizes());
  TensorList out;
  out.reserve(std::size_t(lengths.size()));
  std::int64_t at = t.offset;
  for (auto n : lengths) {
    sizes[dim] = n;
    out.push_back(kind == Parts::Followed ? window(t, sizes, t.strides(), at, Creation::MultiOutput)
                                          : make_tensor(alias_storage(t.storage), t.dtype, sizes, t.strides(), at));
    at += n * t.stride(dim);
  }
  if (out.empty() || !is_differentiable(t.dtype)) return out;
  const Tensor* inputs[] = {&t};
  record_many(name, out, inputs, {}, by_rows([from = Dims(t.sizes()), lengths, dim, dtype = t.dtype](Vjp& v) {
                TensorList parts;
                Dims sizes(from);
                for (int i = 0; i < lengths.size(); ++i) {
                  sizes[dim] = lengths[i];
                  parts.push_back(v.grad(i) ? v.grad(i) : zeros(v.shape(sizes), dtype));
                }
                v.set(0, cat(pointers(parts), v.dim(dim)));
              }));
  return out;
}

int split_dim(const char* name, const Tensor& t, std::int64_t dim) {
  check(t.ndim > 0, name, " expects at least a 1-dimensional tensor");
  return wrap_dim(dim, t.ndim);
}

/// As many parts of one length as the dimension has, the last one shorter where it does not divide.
Dims equal_lengths(std::int64_t total, std::int64_t length) {
  Dims lengths;
  std::int64_t n = length ? std::max<std::int64_t>(total / length + (total % length != 0), 1) : 1;
  for (std::int64_t i = 0; i < n; ++i) lengths.push_back(i + 1 < n ? length : total - i * length);
  return lengths;
}

TensorList split_as(const char* name, const Tensor& t, std::int64_t length, std::int64_t dim_, Parts kind) {
  int dim = split_dim("split", t, dim_);
  check(length >= 0, "split expects split_size be non-negative, but got split_size=", length);
  check(length > 0 || t.size(dim) == 0, "split_size can only be 0 if dimension size is 0, but got dimension size of ",
        t.size(dim));
  return parts_of(name, t, dim, equal_lengths(t.size(dim), length), kind);
}

TensorList split_with_sizes_as(const char* name, const Tensor& t, const Dims& lengths, std::int64_t dim_, Parts kind) {
  int dim = split_dim("split", t, dim_);
  std::int64_t total = 0;
  bool overflow = false;
  for (auto n : lengths) {
    check(n >= 0, "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=", lengths);
    overflow |= __builtin_add_overflow(total, n, &total);
  }
  check(!overflow && total == t.size(dim), "split_with_sizes expects split_sizes to sum exactly to ", t.size(dim),
        " (input tensor's size at dimension ", dim, "), but got split_sizes=", lengths);
  return parts_of(name, t, dim, lengths, kind);
}

TensorList chunk_as(const char* name, const char* name_with_sizes, const Tensor& t, std::int64_t chunks,
                    std::int64_t dim_, Parts kind) {
  check(t.ndim > 0, "chunk expects at least a 1-dimensional tensor");
  check(chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  check(chunks <= std::numeric_limits<std::int32_t>::max(), "number of chunks is too large: ", chunks);
  int dim = wrap_dim(dim_, t.ndim);
  std::int64_t total = t.size(dim), length = total / chunks + (total % chunks != 0);
  if (total == 0) return parts_of(name_with_sizes, t, dim, Dims(int(chunks), 0), kind);
  return parts_of(name, t, dim, equal_lengths(total, length), kind);
}

}  // namespace

TensorList split_with_sizes(const Tensor& t, const Dims& lengths, std::int64_t dim) {
  return split_with_sizes_as("SplitWithSizesBackward0", t, lengths, dim, Parts::Followed);
}
TensorList split(const Tensor& t, std::int64_t length, std::int64_t dim) {
  return split_as("SplitBackward0", t, length, dim, Parts::Followed);
}
TensorList chunk(const Tensor& t, std::int64_t chunks, std::int64_t dim) {
  return chunk_as("SplitBackward0", "SplitWithSizesBackward0", t, chunks, dim, Parts::Followed);
}

// ---- the operators

namespace {

TensorList unsafe_split(const Tensor& t, std::int64_t length, std::int64_t dim) {
  return split_as("UnsafeSplitBackward0", t, length, dim, Parts::Unfollowed);
}
TensorList unsafe_split_with_sizes(const Tensor& t, const Dims& lengths, std::int64_t dim) {
  return split_with_sizes_as("UnsafeSplitWithSizesBackward0", t, lengths, dim, Parts::Unfollowed);
}
TensorList unsafe_chunk(const Tensor& t, std::int64_t chunks, std::int64_t dim) {
  return chunk_as("UnsafeSplitBackward0", "UnsafeSplitWithSizesBackward0", t, chunks, dim, Parts::Unfollowed);
}

TensorList copies_of(const TensorList& views) {
  TensorList out;
  for (auto& v : views) out.push_back(own_copy(*v));
  return out;
}
TensorList unbind_copy(const Tensor& t, std::int64_t dim) { return copies_of(unbind(t, dim)); }
TensorList split_copy(const Tensor& t, std::int64_t length, std::int64_t dim) {
  return copies_of(split(t, length, dim));
}
TensorList split_with_sizes_copy(const Tensor& t, const Dims& lengths, std::int64_t dim) {
  return copies_of(split_with_sizes(t, lengths, dim));
}

/// Slices between these places; NumPy's array_split.
TensorList split_at(const Tensor& t, const Dims& places, int dim) {
  TensorList out;
  std::int64_t from = 0;
  for (auto to : places) {
    out.push_back(slice(t, dim, from, to, 1));
    from = to;
  }
  out.push_back(slice(t, dim, from, t.size(dim), 1));
  return out;
}

TensorList split_into(const Tensor& t, std::int64_t sections, int dim) {
  check(sections > 0, "number of sections must be larger than 0, got ", sections);
  check(sections <= std::numeric_limits<std::int32_t>::max(), "number of sections is too large: ", sections);
  std::int64_t total = t.size(dim), from = 0;
  TensorList out;
  for (std::int64_t i = 0; i < sections; ++i) {
    std::int64_t to = from + total / sections + (i < total % sections);
    out.push_back(slice(t, dim, from, to, 1));
    from = to;
  }
  return out;
}

int tensor_split_dim(const Tensor& t, std::int64_t dim) {
  check(t.ndim > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ", int(t.ndim),
        " dims");
  return wrap_dim(dim, t.ndim);
}
TensorList tensor_split_sections(const Tensor& t, std::int64_t sections, std::int64_t dim) {
  return split_into(t, sections, tensor_split_dim(t, dim));
}
TensorList tensor_split_indices(const Tensor& t, const Dims& indices, std::int64_t dim) {
  return split_at(t, indices, tensor_split_dim(t, dim));
}
TensorList tensor_split_tensor(const Tensor& t, const Tensor& places, std::int64_t dim_) {
  int dim = tensor_split_dim(t, dim_);
  check(places.dtype == DType::Int64,
        "tensor_split expected tensor_indices_or_sections to have dtype of long, but got ",
        info(places.dtype).scalar_name);
  check(places.ndim <= 1,
        "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got "
        "a tensor with ",
        int(places.ndim), " dims");
  TensorRef numbers = packed(places);
  const auto* p = numbers->read_as<std::int64_t>();
  if (places.ndim == 0) return split_into(t, *p, dim);
  return split_at(t, Dims(IntSpan(p, std::size_t(numbers->numel))), dim);
}

/// The dimension of hsplit, vsplit or dsplit, which want at least so many.
int named_dim(const char* name, const Tensor& t, int at_least, int dim) {
  check(t.ndim >= at_least, "torch.", name, " requires a tensor with at least ", at_least,
        " dimension, but got a tensor with ", int(t.ndim), " dimensions!");
  return dim;
}
TensorList even_split(const char* name, const Tensor& t, std::int64_t sections, int dim) {
  check(sections != 0 && t.size(dim) % sections == 0, "torch.", name, " attempted to split along dimension ", dim,
        ", but the size of the dimension ", t.size(dim), " is not divisible by the split_size ", sections, "!");
  return split_into(t, sections, dim);
}
TensorList hsplit(const Tensor& t, std::int64_t sections) {
  return even_split("hsplit", t, sections, named_dim("hsplit", t, 1, t.ndim > 1));
}
TensorList hsplit_at(const Tensor& t, const Dims& indices) {
  return split_at(t, indices, named_dim("hsplit", t, 1, t.ndim > 1));
}
TensorList vsplit(const Tensor& t, std::int64_t sections) {
  return even_split("vsplit", t, sections, named_dim("vsplit", t, 2, 0));
}
TensorList vsplit_at(const Tensor& t, const Dims& indices) {
  return split_at(t, indices, named_dim("vsplit", t, 2, 0));
}
TensorList dsplit(const Tensor& t, std::int64_t sections) {
  return even_split("dsplit", t, sections, named_dim("dsplit", t, 3, 2));
}
TensorList dsplit_at(const Tensor& t, const Dims& indices) {
  return split_at(t, indices, named_dim("dsplit", t, 3, 2));
}

const Define splits[] = {
    {"unbind(Tensor self, int dim=0)", &unbind, Both, "Views of all indices along a dimension."},
    {"unbind_copy(Tensor self, int dim=0)", &unbind_copy, Function | Out, "Copies of unbind's views."},
    {"split(Tensor self, int split_size, int dim=0)", &split, Both,
     "Views of parts of one length along a dimension, or of a list of lengths."},
    {"split(Tensor self, int[] split_size, int dim=0)", &split_with_sizes, Both},
    {"split_with_sizes(Tensor self, int[] split_sizes, int dim=0)", &split_with_sizes, Both,
     "Views of parts of these lengths along a dimension."},
    {"split_copy(Tensor self, int split_size, int dim=0)", &split_copy, Function | Out, "Copies of split's views."},
    {"split_with_sizes_copy(Tensor self, int[] split_sizes, int dim=0)", &split_with_sizes_copy, Function | Out,
     "Copies of split_with_sizes' views."},
    {"chunk(Tensor self, int chunks, int dim=0)", &chunk, Both,
     "Views of at most so many parts of one length along a dimension."},
    {"unsafe_split(Tensor self, int split_size, int dim=0)", &unsafe_split, Both,
     "split, as tensors that may be changed in place."},
    {"unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0)", &unsafe_split_with_sizes, Both,
     "split_with_sizes, as tensors that may be changed in place."},
    {"unsafe_chunk(Tensor self, int chunks, int dim=0)", &unsafe_chunk, Both,
     "chunk, as tensors that may be changed in place."},
    {"tensor_split(Tensor self, Tensor tensor_indices_or_sections, int dim=0)", &tensor_split_tensor, Both,
     "Slices of nearly equal length, or between places."},
    {"tensor_split(Tensor self, int sections, int dim=0)", &tensor_split_sections, Both},
    {"tensor_split(Tensor self, int[] indices, int dim=0)", &tensor_split_indices, Both},
    {"hsplit(Tensor self, int sections)", &hsplit, Both,
     "tensor_split along dimension 1 (of a vector: 0) into equal parts, or at indices."},
    {"hsplit(Tensor self, int[] indices)", &hsplit_at, Both},
    {"vsplit(Tensor self, int sections)", &vsplit, Both,
     "tensor_split along dimension 0 into equal parts, or at indices."},
    {"vsplit(Tensor self, int[] indices)", &vsplit_at, Both},
    {"dsplit(Tensor self, int sections)", &dsplit, Both,
     "tensor_split along dimension 2 into equal parts, or at indices."},
    {"dsplit(Tensor self, int[] indices)", &dsplit_at, Both},
};

}  // namespace

}  // namespace rushlight
