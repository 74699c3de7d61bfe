// Indexing along one dimension: index_select and what writes to the places it reads.
#include "operators/operators.h"
#include "operators/partial.h"
#include "operators/places.h"
#include "operators/registry.h"

namespace rushlight {

void refuse_shared_memory(const Tensor& written, const Tensor& read) {
  if (memory_overlap(written, read) != Overlap::None) fail_shared_memory();
}

namespace {

/// The positions as int64.
TensorRef positions(const Tensor& index) {
  GradScope off(false);
  return cast(index, DType::Int64);
}

Dims without(IntSpan all, int dim) {
  Dims out(all);
  if (!out.empty()) out.erase(dim);
  return out;
}

/// `table` at index[k] along `dim` beside place k of `values`, whose strides are over the table's dimensions.
IndexedLines pair_up(const Tensor& table, const Tensor& values, IntSpan value_strides, int dim, const Tensor& index) {
  Dims places(table.sizes()), strides(table.strides()), over(value_strides), along(std::max<int>(table.ndim, 1));
  if (table.ndim == 0) {
    places.push_back(1);
    strides.push_back(0);
    over.push_back(0);
  }
  places[dim] = index.numel;
  along[dim] = index.ndim ? index.stride(0) : 0;
  IndexedLines w = lines_along(table, strides, dim, places, along, over);
  w.base[1] = address(index);
  w.base[2] = address(values);
  return w;
}

}  // namespace

TensorRef index_select(const Tensor& t, std::int64_t dim_, const Tensor& index) {
  check(index.dtype == DType::Int64 || index.dtype == DType::Int32,
        "index_select(): Expected dtype int32 or int64 for index");
  check_index(index.ndim <= 1, "index_select(): Index is supposed to be a vector");
  TensorRef at = positions(index);
  int dim = wrap_dim(dim_, t.ndim);
  std::int64_t size = size_along(t, dim);
  check(t.ndim || at->numel == 1, "index_select(): Index to scalar can have only 1 value, got ", at->numel,
        " value(s)");
  check(size > 0 || at->numel == 0, "index_select(): self indexing axis dim should be positive");
  Dims sizes(t.sizes());
  if (t.ndim) sizes[dim] = at->numel;
  TensorRef out = empty(sizes, t.dtype);
  out->write();
  bool in_range =
      out->numel ? gather_lines(pair_up(t, *out, out->strides(), dim, *at), t.item_size()) : !misplaced(*at, 0, size);
  check_index(in_range, "index out of range in self");
  if (!is_differentiable(t.dtype)) return out;
  auto derivative = by_rows([sizes = Dims(t.sizes()), dim](Vjp& v) {
    TensorRef index = v.saved(0), none = zeros(v.shape(sizes), v.grad()->dtype);
    if (v.has_rows() && sizes.empty())
      v.set(0, add(*none, *v.grad()));
    else
      v.set(0, index_add(*none, v.dim(dim), *index, *v.grad(), 1));
  });
  return record("IndexSelectBackward0", out, {&t}, {save_other(index)}, derivative);
}

namespace {

/// The strides of `source` over the sizes of `t`: a scalar meets every place.
Dims strides_over(const Tensor& t, const Tensor& source) {
  if (source.ndim == t.ndim) return Dims(source.strides());
  return Dims(t.ndim, 0);
}

void check_add(const Tensor& self, const Tensor& index, const Tensor& source, int dim) {
  check_index(index.ndim <= 1, "index_add_(): Index is supposed to be a vector, but got dim: ", int(index.ndim),
              " with type: ", info(index.dtype).scalar_name, " and size: ", to_string(index.sizes()));
  check(index.dtype == DType::Int64 || index.dtype == DType::Int32,
        "index_add_(): Expected dtype int32/int64 for index but got: ", info(index.dtype).scalar_name);
  check(self.dtype == source.dtype, "index_add_(): self (", info(self.dtype).scalar_name, ") and source (",
        info(source.dtype).scalar_name, ") must have the same scalar type");
  check(dim == 0 || dim < source.ndim, "index_add_(): Indexing dim ", dim,
        " is out of bounds of the source tensor with dim ", int(source.ndim));
  check_index(source.ndim > 0 || index.numel == 1, "Dimension specified as ", dim, " but tensor has no dimensions");
  check(index.numel == size_along(source, dim), "index_add_(): Number of indices (", index.numel,
        ") should be equal to source.size(dim): (", size_along(source, dim), "), for dim: ", dim);
  check(self.ndim == source.ndim && without(self.sizes(), dim) == without(source.sizes(), dim),
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = ",
        to_string(self.sizes()), " source.shape = ", to_string(source.sizes()));
}

TensorRef index_add_to(Target target, std::int64_t dim_, const Tensor& index, const Tensor& source,
                       const Scalar& alpha) {
  const Tensor& self = target.self;
  int dim = wrap_dim(dim_, self.ndim);
  check_add(self, index, source, dim);
  TensorRef at = positions(index), part(const_cast<Tensor*>(&source));
  auto check_places = [&] {
    std::int64_t size = size_along(self, dim);
    if (auto bad = misplaced(*at, 0, size))
      fail("index ", *bad, " is out of bounds for dimension ", dim, " with size ", size);
  };
  if (target.inplace || source.numel == 0) check_places();
  static PointwiseOp& mul = pointwise_op("mul");
  if (!alpha.is(1)) {
    GradScope off(false);
    part = pointwise(mul, {Operand(source), Operand(scalar_tensor(alpha, source.dtype))});
  }
  return write_part(
      "IndexAddBackward0", target, {&self, &source}, {save_other(index)},
      [&](Tensor& to) {
        to.write();
        if (source.numel && !scatter_lines(pair_up(to, *part, part->strides(), dim, *at), to.dtype, Scatter::Add))
          check_places();
      },
      [dim, alpha](Vjp& v) {
        TensorRef index = v.saved(0);
        if (v.needs(0)) v.set(0, v.grad());
        if (v.needs(1)) {
          TensorRef g = index_select(*v.grad(), dim, *index);
          v.set(1, alpha.is(1) ? g : pointwise(mul, {Operand(g), Operand(alpha)}));
        }
      });
}

void check_copy(const Tensor& self, const Tensor& index, const Tensor& source, int dim) {
  check_index(index.ndim <= 1, "index_copy_(): Index should have dimension 1 or 0 (got ", int(index.ndim), ")");
  check_index(source.ndim > 0 || index.numel == 1,
              "index_copy_(): When source is scalar, index should have one element (got ", index.numel, ")");
  check_index(source.ndim == self.ndim || source.ndim == 0 || self.ndim == 0,
              "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
              "dimensionality (",
              int(source.ndim), "), destination dimensionality (", int(self.ndim), ")");
  check(index.dtype == DType::Int64, "index_copy_(): Expected a long tensor for index, but got ",
        info(index.dtype).scalar_name);
  check(self.dtype == source.dtype, "index_copy_(): self and source expected to have the same dtype, but got (self) ",
        info(self.dtype).scalar_name, " and (source) ", info(source.dtype).scalar_name);
  int source_dim = source.ndim ? dim : 0;
  Dims mine = without(self.sizes(), dim), its = without(source.sizes(), source_dim);
  check(mine == its,
        "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: ", mine,
        " at dimension ", dim, " and source slice shape: ", its, " at dimension ", source_dim, ".");
  check_index(source.ndim == 0 || index.numel == source.size(dim), "index_copy_(): Number of indices (", index.numel,
              ") should be equal to source.size(dim) (", size_along(source, dim), ")");
}

TensorRef index_copy_to(Target target, std::int64_t dim_, const Tensor& index, const Tensor& source) {
  const Tensor& self = target.self;
  int dim = wrap_dim(dim_, self.ndim);
  check_copy(self, index, source, dim);
  TensorRef at = positions(index);
  std::int64_t size = size_along(self, dim);
  if (auto bad = misplaced(*at, 0, size))
    fail(ErrorKind::Index, "index_copy_(): index ", *bad, " is out of bounds for dimension ", dim, " with size ", size);
  return write_part(
      "IndexCopyBackward0", target, {&self, &source}, {save_other(index)},
      [&](Tensor& to) {
        to.write();
        if (to.numel && at->numel)
          scatter_lines(pair_up(to, source, strides_over(to, source), dim, *at), to.dtype, Scatter::Assign);
      },
      [dim, sizes = Dims(source.sizes())](Vjp& v) {
        TensorRef index = v.saved(0);
        if (v.needs(0)) v.set(0, index_fill(*v.grad(), dim, *index, 0));
        if (v.needs(1)) v.set(1, reshape(*index_select(*v.grad(), dim, *index), sizes));
      });
}

/// The positions of index_fill, which count from the end where negative, as positions from the start.
TensorRef fill_positions(const Tensor& self, const Tensor& index, int dim) {
  check_index(index.dtype == DType::Int64, "index_fill_(): Expected dtype int64 for index.");
  check(index.ndim <= 1, "Index has to be a vector/scalar");
  std::int64_t size = size_along(self, dim);
  TensorRef at = packed(index);
  if (auto bad = misplaced(*at, -size, size))
    fail(ErrorKind::Index, "index ", *bad, " is out of bounds for dimension ", dim, " with size ", size);
  if (!misplaced(*at, 0, size)) return at;
  at = copy_of(*at);
  auto* p = at->write_as<std::int64_t>();
  for (std::int64_t k = 0; k < at->numel; ++k) p[k] += p[k] < 0 ? size : 0;
  return at;
}

void fill_places(Tensor& to, int dim, const Tensor& at, const Scalar& value) {
  to.write();
  if (to.numel == 0 || at.numel == 0) return;
  TensorRef number = scalar_tensor(value, to.dtype);
  scatter_lines(pair_up(to, *number, Dims(to.ndim, 0), dim, at), to.dtype, Scatter::Assign);
}

/// The positions in order, each once.
TensorRef distinct(const Tensor& positions) {
  TensorRef out = copy_of(*packed(positions));
  auto* p = out->write_as<std::int64_t>();
  std::sort(p, p + out->numel);
  std::int64_t n = std::unique(p, p + out->numel) - p;
  return make_tensor(Ref<Storage>(out->storage), DType::Int64, Dims{n}, Dims{1}, 0);
}

TensorRef index_fill_to(Target target, std::int64_t dim_, const Tensor& index, const Scalar& value) {
  const Tensor& self = target.self;
  int dim = wrap_dim(dim_, self.ndim);
  check(value.kind != Scalar::Complex || is_complex(self.dtype),
        "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  TensorRef at = fill_positions(self, index, dim);
  check_fits(value, self.dtype);
  return write_part(
      "IndexFillBackward0", target, {&self}, {save_other(at)}, [&](Tensor& to) { fill_places(to, dim, *at, value); },
      [dim](Vjp& v) {
        TensorRef at = v.saved(0);
        v.set(0, index_fill(*v.grad(), dim, *at, 0));
      });
}

TensorRef index_fill_to(Target target, std::int64_t dim_, const Tensor& index, const Tensor& value) {
  const Tensor& self = target.self;
  check(value.ndim == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
        int(value.ndim), " dimension(s).");
  int dim = wrap_dim(dim_, self.ndim);
  check(!is_complex(value.dtype) || is_complex(self.dtype),
        "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  TensorRef at = fill_positions(self, index, dim);
  Scalar number = item(value);
  check_fits(number, self.dtype);
  return write_part(
      "IndexFillBackward1", target, {&self, &value}, {save_other(at)},
      [&](Tensor& to) { fill_places(to, dim, *at, number); },
      [dim, dtype = value.dtype](Vjp& v) {
        TensorRef at = v.saved(0);
        if (v.needs(0)) v.set(0, index_fill(*v.grad(), dim, *at, 0));
        if (v.needs(1)) v.set(1, cast(*sum(*index_select(*v.grad(), dim, *distinct(*at)), {}), dtype));
      });
}

}  // namespace

TensorRef index_add(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source,
                    const Scalar& alpha) {
  return index_add_to(self, dim, index, source, alpha);
}
TensorRef index_fill(const Tensor& self, std::int64_t dim, const Tensor& index, const Scalar& value) {
  return index_fill_to(self, dim, index, value);
}

// ---- the operators

namespace {

TensorRef index_add_(Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  return index_add_to({self, "index_add_"}, dim, index, source, alpha);
}
TensorRef index_copy(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source) {
  return index_copy_to(self, dim, index, source);
}
TensorRef index_copy_(Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& source) {
  return index_copy_to({self, "index_copy_"}, dim, index, source);
}
TensorRef index_fill_tensor(const Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& value) {
  return index_fill_to(self, dim, index, value);
}
TensorRef index_fill_(Tensor& self, std::int64_t dim, const Tensor& index, const Scalar& value) {
  return index_fill_to({self, "index_fill_"}, dim, index, value);
}
TensorRef index_fill_tensor_(Tensor& self, std::int64_t dim, const Tensor& index, const Tensor& value) {
  return index_fill_to({self, "index_fill_"}, dim, index, value);
}

const Define along_a_dimension[] = {
    {"index_select(Tensor self, int dim, Tensor index)", &index_select, Both | Out,
     "The places of a dimension that a vector of positions names."},
    {"index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1)", &index_add, Both | Out,
     "Adds alpha * source to the named places; a place named twice gets both."},
    {"index_add_(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1)", &index_add_, Method,
     "index_add in place."},
    {"index_copy(Tensor self, int dim, Tensor index, Tensor source)", &index_copy, Both | Out,
     "Writes source to the named places."},
    {"index_copy_(Tensor self, int dim, Tensor index, Tensor source)", &index_copy_, Method, "index_copy in place."},
    {"index_fill(Tensor self, int dim, Tensor index, Tensor value)", &index_fill_tensor, Both,
     "Writes a number, or a 0-d tensor, to the named places."},
    {"index_fill(Tensor self, int dim, Tensor index, Scalar value)", &index_fill, Both},
    {"index_fill_(Tensor self, int dim, Tensor index, Tensor value)", &index_fill_tensor_, Method,
     "index_fill in place."},
    {"index_fill_(Tensor self, int dim, Tensor index, Scalar value)", &index_fill_, Method},
};

}  // namespace

}  // namespace rushlight
