// Indexing along one dimension: index_select and what writes to the places it reads.
#include "kernels/index.h"
#include "operators/operators.h"
#include "operators/partial.h"
#include "operators/registry.h"

namespace rushlight {

void refuse_shared_memory(const Tensor& written, const Tensor& read) {
  check(memory_overlap(written, read) == Overlap::None,
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before "
        "performing the operation.");
}

namespace {

/// The positions as packed int64; refuses other types and shapes.
TensorRef positions(const char* name, const Tensor& index) {
  check(index.dtype == DType::Int64 || index.dtype == DType::Int32, name, "(): Expected dtype int32 or int64 for index");
  check_index(index.ndim <= 1, name, "(): Index is supposed to be a vector");
  GradScope off(false);
  return packed(*cast(index, DType::Int64));
}

void check_range(const std::int64_t* index, std::int64_t count, std::int64_t size) {
  std::uint64_t bad = 0;
  for (std::int64_t k = 0; k < count; ++k) bad |= std::uint64_t(std::uint64_t(index[k]) >= std::uint64_t(size));
  check_index(!bad, "index out of range in self");
}

Dims without(IntSpan all, int dim) {
  Dims out(all);
  if (!out.empty()) out.erase(dim);
  return out;
}

/// `t` at index[k] along `dim` beside `other` at k, whose strides are given over t's sizes.
DimensionPair pair_up(const Tensor& t, const Tensor& other, IntSpan other_strides, int dim, const Tensor& index) {
  DimensionPair p;
  Dims sizes = without(t.sizes(), dim), a = without(t.strides(), dim), b = without(other_strides, dim);
  const std::int64_t* strides[2] = {a.data(), b.data()};
  std::int64_t item[2] = {t.item_size(), other.item_size()};
  p.rest = Nest(sizes, strides, item, 2);
  p.first = const_cast<char*>(reinterpret_cast<const char*>(t.read()));
  p.second = const_cast<char*>(reinterpret_cast<const char*>(other.read()));
  p.first_step = t.ndim ? t.stride(dim) * item[0] : 0;
  p.second_step = other_strides.empty() ? 0 : other_strides[std::size_t(dim)] * item[1];
  p.index = index.read_as<std::int64_t>();
  p.count = index.numel;
  return p;
}

}  // namespace

TensorRef index_select(const Tensor& t, std::int64_t dim_, const Tensor& index) {
  TensorRef at = positions("index_select", index);
  int dim = wrap_dim(dim_, t.ndim);
  std::int64_t size = t.ndim ? t.size(dim) : 1;
  check(t.ndim || at->numel == 1, "index_select(): Index to scalar can have only 1 value, got ", at->numel, " value(s)");
  check(size > 0 || at->numel == 0, "index_select(): self indexing axis dim should be positive");
  check_range(at->read_as<std::int64_t>(), at->numel, size);
  Dims sizes(t.sizes());
  if (t.ndim) sizes[dim] = at->numel;
  TensorRef out = empty(sizes, t.dtype);
  if (out->numel == 0) {
  } else if (t.is_contiguous()) {
    std::int64_t rows = 1, bytes = t.item_size();
    for (int i = 0; i < dim; ++i) rows *= t.size(i);
    for (int i = dim + 1; i < t.ndim; ++i) bytes *= t.size(i);
    select_blocks(t.read(), out->write(), rows, size, at->read_as<std::int64_t>(), at->numel, bytes);
  } else {
    out->write();
    select_places(pair_up(t, *out, out->strides(), dim, *at), t.item_size());
  }
  if (!is_differentiable(t.dtype)) return out;
  return record("IndexSelectBackward0", out, {&t}, {save_other(index)}, [sizes = Dims(t.sizes()), dim](Vjp& v) {
    TensorRef index = v.saved(0);
    v.set(0, index_add(*zeros(sizes, v.grad()->dtype), dim, *index, *v.grad(), 1));
  });
}

namespace {

/// Checks index_add's and index_copy's source, and gives its strides over the places that it meets.
void check_source(const char* name, const Tensor& self, int dim, const Tensor& index, const Tensor& source) {
  (void)index;
  check(self.dtype == source.dtype, name, "(): self and source expected to have the same dtype, but got (self) ", info(self.dtype).scalar_name, " and (source) ",
        info(source.dtype).scalar_name);
  (void)dim;
}

TensorRef index_add_to(Target target, std::int64_t dim_, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  const Tensor& self = target.self;
  TensorRef at = positions("index_add", index);
  int dim = wrap_dim(dim_, self.ndim);
  check_source("index_add", self, dim, *at, source);
  check_range(at->read_as<std::int64_t>(), at->numel, self.ndim ? self.size(dim) : 1);
  return write_part(
      "IndexAddBackward0", target, {&self, &source}, {save_other(index)},
      [&](Tensor& to) {
        to.write();
        if (to.numel && at->numel) add_places(pair_up(to, source, source.strides(), dim, *at), to.dtype, alpha);
      },
      [dim, alpha](Vjp& v) {
        TensorRef index = v.saved(0);
        if (v.needs(0)) v.set(0, v.grad());
        if (v.needs(1)) {
          static PointwiseOp& mul = pointwise_op("mul");
          TensorRef g = index_select(*v.grad(), dim, *index);
          v.set(1, alpha.is(1) ? g : pointwise(mul, {Operand(g), Operand(alpha)}));
        }
      });
}

}  // namespace

TensorRef index_add(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  return index_add_to(self, dim, index, source, alpha);
}

// ---- the operators

namespace {

TensorRef index_add_inplace(Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  return index_add_to({self, "index_add_"}, dim, index, source, alpha);
}

const Define along_a_dimension[] = {
    {"index_select(Tensor self, int dim, Tensor index)", &index_select, Both | Out, "The places of a dimension that a vector of positions names."},
    {"index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1)", &index_add, Both | Out, "Adds alpha * source to the named places; a place named twice gets both."},
    {"index_add_(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1)", &index_add_inplace, Method, "index_add in place."},
};

}  // namespace

}  // namespace rushlight
