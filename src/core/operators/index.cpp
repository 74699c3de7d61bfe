#include "operators/index.h"

#include "autograd/tangent.h"
#include "kernels/mask.h"
#include "kernels/parallel.h"
#include "operators/operators.h"
#include "operators/places.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

TensorRef borrowed(const Tensor& t) { return TensorRef(const_cast<Tensor*>(&t)); }

bool is_mask(const Tensor& t) { return t.dtype == DType::Bool || t.dtype == DType::UInt8; }

void check_mask_shape(const Tensor& t, const Tensor& mask, int dim) {
  for (int k = 0; k < mask.ndim; ++k)
    check_index(dim + k < t.ndim && mask.size(k) == t.size(dim + k), "The shape of the mask ", to_string(mask.sizes()),
                " at index ", k, " does not match the shape of the indexed tensor ", to_string(t.sizes()), " at index ",
                dim + k);
}

/// One index tensor per dimension (null: the whole dimension): masks become positions; checks types and counts.
TensorList plain_indices(const Tensor& t, const TensorList& given) {
  GradScope off(false);
  TensorList out;
  int dim = 0;
  for (auto& i : given) dim += i && is_mask(*i) ? i->ndim : 1;
  check_index(dim <= t.ndim, "too many indices for tensor of dimension ", int(t.ndim), " (got ", dim, ")");
  dim = 0;
  for (auto& i : given) {
    if (i && is_mask(*i)) {
      if (i->dtype == DType::UInt8)
        warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.");
      check_mask_shape(t, *i, dim);
      for (auto& positions : nonzero_positions(*i)) out.push_back(positions);
      dim += i->ndim;
      continue;
    }
    check_index(!i || i->dtype == DType::Int64 || i->dtype == DType::Int32,
                "tensors used as indices must be long, int, byte or bool tensors");
    out.push_back(i ? cast(*i, DType::Int64) : nullptr);
    ++dim;
  }
  out.resize(std::size_t(t.ndim));
  return out;
}

/// An index expression resolved against a shape: which dimensions are indexed, and the places that each position of the
/// result's indexed block stands for.
struct Plan {
  Dims block;                     ///< the broadcast shape of the index tensors
  Dims rest_sizes, rest_strides;  ///< dimensions that are not indexed
  int block_at = 0;               ///< where the block stands among the rest in the result
  int only = -1;                  ///< the indexed dimension, where it is one alone
  TensorRef places;  ///< int64, packed, one per position of the block: of `only` its indices, which the kernel or
                     ///< check() has to look at, else offsets in elements
  std::int64_t step = 1, size = 1;  ///< the distance in elements of a place from the next, and how many there are
  Dims result_sizes() const {
    Dims out(rest_sizes);
    for (int i = block.size() - 1; i >= 0; --i) out.insert(block_at, block[i]);
    return out;
  }
  void check() const;
};

void check_positions(const Tensor& index, int dim, std::int64_t size) {
  if (auto bad = misplaced(index, -size, size))
    fail(ErrorKind::Index, "index ", *bad, " is out of bounds for dimension ", dim, " with size ", size);
}
void Plan::check() const {
  if (only >= 0) check_positions(*places, only, size);
}

Dims common_block(const TensorList& indices) {
  Dims block;
  bool any = false;
  for (auto& i : indices) {
    if (!i) continue;
    try {
      block = any ? broadcast_sizes(block, i->sizes()) : Dims(i->sizes());
    } catch (const Error&) {
      std::string shapes;
      for (auto& j : indices)
        if (j) shapes = concat(shapes, shapes.empty() ? "" : ", ", to_string(j->sizes()));
      fail(ErrorKind::Index, "shape mismatch: indexing tensors could not be broadcast together with shapes ", shapes);
    }
    any = true;
  }
  return block;
}

/// The index over the whole block, row-major.
TensorRef over_block(const Tensor& index, const Dims& block) {
  if (equal(index.sizes(), block)) return packed(index);
  return packed(
      *make_tensor(Ref<Storage>(index.storage), DType::Int64, block, broadcast_strides(index, block), index.offset));
}

/// Offsets in elements of what several indices name together.
TensorRef offsets(const Tensor& t, const TensorList& indices, const Dims& block) {
  TensorRef out = zeros(block, DType::Int64);
  for (int d = 0; d < t.ndim; ++d) {
    if (!indices[std::size_t(d)]) continue;
    std::int64_t size = t.size(d), scale = t.stride(d);
    check_positions(*indices[std::size_t(d)], d, size);
    TensorRef at = over_block(*indices[std::size_t(d)], block);
    const auto* from = at->read_as<std::int64_t>();
    auto* to = out->write_as<std::int64_t>();
    parallel_for(at->numel, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t k = begin; k < end; ++k) to[k] += (from[k] + (from[k] < 0 ? size : 0)) * scale;
    });
  }
  return out;
}

Plan make_plan(const Tensor& t, const TensorList& given) {
  TensorList indices = plain_indices(t, given);
  Plan p;
  p.block = common_block(indices);
  int first = -1, last = -1, count = 0;
  for (int d = 0; d < t.ndim; ++d) {
    if (!indices[std::size_t(d)]) {
      p.rest_sizes.push_back(t.size(d));
      p.rest_strides.push_back(t.stride(d));
      continue;
    }
    if (first < 0) {
      first = d;
      p.block_at = p.rest_sizes.size();
    }
    last = d;
    ++count;
  }
  if (last - first + 1 != count) p.block_at = 0;  // not side by side: the block comes first
  if (count == 1) {
    p.only = first;
    p.step = t.stride(first);
    p.size = t.size(first);
    p.places = packed(*indices[std::size_t(first)]);
    return p;
  }
  p.places = offsets(t, indices, p.block);
  for (int d = 0; d < t.ndim; ++d)
    if (indices[std::size_t(d)]) p.size += (std::max<std::int64_t>(t.size(d), 1) - 1) * t.stride(d);
  return p;
}

/// The strides of `values`, shaped like the plan's result, with its block as one dimension; false where it is not one.
bool flat_block(const Plan& p, const Tensor& values, Dims& strides) {
  int b = p.block.size();
  std::int64_t step = 0, run = 1;
  for (int i = b - 1; i >= 0; --i) {
    if (p.block[i] == 1) continue;
    std::int64_t s = values.stride(p.block_at + i);
    if (run == 1) step = s;
    if (s != step * run) return false;
    run *= p.block[i];
  }
  strides = Dims();
  for (int i = 0; i < p.block_at; ++i) strides.push_back(values.stride(i));
  strides.push_back(step);
  for (int i = p.block_at + b; i < values.ndim; ++i) strides.push_back(values.stride(i));
  return true;
}

/// The places of `t` beside `values`, whose strides have the block as one dimension.
IndexedLines lines_of(const Tensor& t, const Plan& p, const Tensor& values, const Dims& value_strides) {
  Dims sizes(p.rest_sizes), strides(p.rest_strides), index_strides(p.rest_sizes.size());
  sizes.insert(p.block_at, p.places->numel);
  strides.insert(p.block_at, p.step);
  index_strides.insert(p.block_at, 1);
  IndexedLines w = lines_along(t, strides, p.block_at, sizes, index_strides, value_strides);
  w.base[1] = address(*p.places);
  w.base[2] = address(values);
  w.size = p.size;
  w.wraps = true;
  return w;
}

void read_places(const Tensor& t, const Plan& p, Tensor& out) {
  out.write();
  Dims strides;
  flat_block(p, out, strides);
  if (out.numel == 0 || !gather_lines(lines_of(t, p, out, strides), t.item_size())) p.check();
}

/// `shaped`: of the result's shape and t's type.
void write_places(Tensor& t, const Plan& p, const Tensor& shaped, bool accumulate) {
  t.write();
  if (shaped.numel == 0) return p.check();
  Dims strides;
  TensorRef values = borrowed(shaped);
  if (!flat_block(p, *values, strides)) {
    values = packed(shaped);
    flat_block(p, *values, strides);
  }
  if (!scatter_lines(lines_of(t, p, *values, strides), t.dtype, accumulate ? Scatter::Add : Scatter::Assign)) p.check();
}

void put(Tensor& t, const Plan& p, const Tensor& values, bool accumulate) {
  GradScope off(false);
  TensorRef typed = cast(values, t.dtype);
  Dims sizes = p.result_sizes();
  write_places(t, p, equal(typed->sizes(), sizes) ? *typed : *expand(*typed, sizes), accumulate);
}

/// True where the expression is one mask over all dimensions: the most frequent kind has ways of its own.
bool is_whole_mask(const Tensor& t, const TensorList& indices) {
  return indices.size() == 1 && indices[0] && indices[0]->dtype == DType::Bool && indices[0]->ndim == t.ndim &&
         t.ndim > 0;
}

/// to[mask] = values: one number, or one for each True.
void write_masked(Tensor& to, const Tensor& mask, const Tensor& values) {
  if (values.numel != 1) return put_masked(to, mask, *cast(values, to.dtype));
  std::byte number[16];
  item(values).store(to.dtype, number);
  char* base[2] = {address(mask), reinterpret_cast<char*>(to.write())};
  const std::int64_t* strides[2] = {mask.strides().data(), to.strides().data()};
  std::int64_t items[2] = {1, to.item_size()};
  fill_masked(Nest(to.sizes(), strides, items, 2), base, number, to.item_size());
}

/// Index tensors saved with a node; absent ones stay absent.
struct SavedIndices {
  std::vector<Save> saves;
  std::vector<int> slot;
  explicit SavedIndices(const TensorList& indices, int first) {
    for (auto& i : indices) {
      slot.push_back(i ? first + int(saves.size()) : -1);
      if (i) saves.push_back(save_other(i));
    }
  }
};

TensorList unpack_indices(Vjp& v, const std::vector<int>& slot) {
  TensorList out;
  for (int s : slot) out.push_back(s < 0 ? TensorRef() : v.saved(s));
  return out;
}

void check_values(const Tensor& t, const Dims& sizes, const Tensor& values) {
  bool fits = values.ndim <= sizes.size();
  int lead = sizes.size() - values.ndim;
  for (int i = 0; fits && i < values.ndim; ++i) fits = values.size(i) == sizes[lead + i] || values.size(i) == 1;
  check(fits, "shape mismatch: value tensor of shape ", to_string(values.sizes()),
        " cannot be broadcast to indexing result of shape ", sizes);
  check(values.dtype == t.dtype || values.ndim == 0, "Index put requires the source and destination dtypes match, got ",
        info(t.dtype).scalar_name, " for the destination and ", info(values.dtype).scalar_name, " for the source.");
}

/// t[indices] = values: the checks, then what writes.
class Put {
 public:
  Put(const Tensor& t, const TensorList& indices, const Tensor& values, bool accumulate)
      : values_(borrowed(values)), accumulate_(accumulate) {
    if (!accumulate && is_whole_mask(t, indices)) {
      mask_ = indices[0];
      check_mask_shape(t, *mask_, 0);
      check_values(t, values.numel == 1 ? Dims{1} : Dims{count_true(*mask_)}, values);
      return;
    }
    plan_ = make_plan(t, indices);
    check_values(t, plan_.result_sizes(), values);
  }
  /// Refuses places that are not there; write() does it too late for what is changed in place.
  void check() const {
    if (!mask_) plan_.check();
  }
  /// The values are read from the memory that is written: work on a copy.
  void separate(const Tensor& t) {
    if (memory_overlap(t, *values_) != Overlap::None) values_ = copy_of(*values_);
  }
  void write(Tensor& t) const {
    if (mask_)
      write_masked(t, *mask_, *values_);
    else
      put(t, plan_, *values_, accumulate_);
  }

 private:
  TensorRef values_, mask_;
  bool accumulate_;
  Plan plan_;
};

Ref<Node> put_node(const Tensor& t, const TensorList& indices, const Tensor& values, bool accumulate) {
  SavedIndices saved(indices, 0);
  const Tensor* inputs[] = {&t, &values};
  return make_lambda_node(
      "IndexPutBackward0", inputs, saved.saves, 1,
      [slot = saved.slot, accumulate, sizes = Dims(values.sizes()), dtype = values.dtype](Vjp& v) {
        TensorList at = unpack_indices(v, slot);
        if (v.needs(0))
          v.set(0, accumulate ? v.grad() : index_put(*v.grad(), at, *scalar_tensor(0, v.grad()->dtype), false));
        if (v.needs(1)) v.set(1, cast(*sum_to_size(*index(*v.grad(), at), sizes), dtype));
      });
}

}  // namespace

TensorRef index(const Tensor& t, const TensorList& indices) {
  TensorRef out;
  if (is_whole_mask(t, indices)) {
    check_mask_shape(t, *indices[0], 0);
    GradScope off(false);
    out = masked_select(t, *indices[0]);
  } else {
    Plan p = make_plan(t, indices);
    out = empty(p.result_sizes(), t.dtype);
    read_places(t, p, *out);
  }
  if (!needs_record(t)) return out;
  SavedIndices saved(indices, 0);
  const Tensor* inputs[] = {&t};
  TensorRef outs[] = {out};
  record_many("IndexBackward0", outs, inputs, saved.saves, [slot = saved.slot, sizes = Dims(t.sizes())](Vjp& v) {
    TensorRef none = zeros(sizes, v.grad()->dtype);
    TensorList at = unpack_indices(v, slot);
    v.set(0,
          is_whole_mask(*none, at) ? masked_scatter(*none, *at[0], *v.grad()) : index_put(*none, at, *v.grad(), true));
  });
  return out;
}

TensorRef index_put(const Tensor& t, const TensorList& indices, const Tensor& values, bool accumulate) {
  TensorRef out = copy_of(t);
  Put(*out, indices, values, accumulate).write(*out);
  if (needs_record(t, values)) {
    Ref<Node> node = put_node(t, indices, values, accumulate);
    note_output(node.get(), *out);
    if (modes.dual)
      give_dual_history(node.get(), {&out, 1});
    else
      set_history(*out, node.get());
  }
  return out;
}

void index_put_inplace(Tensor& t, const TensorList& indices, const Tensor& values, bool accumulate) {
  bool records = needs_record(t, values);
  check_inplace(t, wants_gradients(t, values));
  refuse_overlapping_write(t);
  Put work(t, indices, values, accumulate);
  work.check();
  Ref<Node> node;
  if (records) node = put_node(t, indices, values, accumulate);
  work.separate(t);
  work.write(t);
  finish_inplace(t, std::move(node), "index_put_");
}

// ---- the operators

namespace {

TensorList listed(const Tensors& indices) {
  TensorList out;
  for (const Tensor* t : indices) out.push_back(borrowed(*t));
  return out;
}
TensorRef index_put_op(const Tensor& t, const Tensors& indices, const Tensor& values, bool accumulate) {
  return index_put(t, listed(indices), values, accumulate);
}
TensorRef index_put_(Tensor& t, const Tensors& indices, const Tensor& values, bool accumulate) {
  index_put_inplace(t, listed(indices), values, accumulate);
  return TensorRef(&t);
}

const Define indexing[] = {
    {"index_put(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False)", &index_put_op, Both,
     "A copy with self[indices] = values (+= where accumulate)."},
    {"index_put_(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False)", &index_put_, Both,
     "self[indices] = values (+= where accumulate)."},
};

}  // namespace

}  // namespace rushlight
