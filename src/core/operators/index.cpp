#include "operators/index.h"

#include <numeric>

#include "kernels/nest.h"
#include "kernels/parallel.h"
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {

TensorRef nonzero(const Tensor& t) {
  TensorRef x = packed(t);
  std::vector<std::int64_t> found;
  visit_dtype(t.dtype, [&]<class T>() {
    const T* p = x->read_as<T>();
    for (std::int64_t i = 0; i < x->numel; ++i)
      if constexpr (is_complex_type<T>) {
        if (p[i] != T(0)) found.push_back(i);
      } else {
        if (float(p[i]) != 0 || p[i] != T(0)) found.push_back(i);
      }
  });
  auto n = std::int64_t(found.size());
  TensorRef out = empty(Dims{n, t.ndim}, DType::Int64);
  auto* to = out->write_as<std::int64_t>();
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t rest = found[std::size_t(k)];
    for (int d = t.ndim - 1; d >= 0; --d) {
      to[k * t.ndim + d] = rest % t.size(d);
      rest /= t.size(d);
    }
  }
  return out;
}

namespace {

/// An index expression resolved against a shape: which dimensions are indexed, and for each place of the result's
/// indexed block the element offset in the source.
struct Plan {
  Dims block;                ///< the broadcast shape of the index tensors
  Dims rest_sizes, rest_strides;  ///< dimensions that are not indexed
  int block_at = 0;          ///< where the block stands among the rest in the result
  TensorRef offsets;         ///< int64, one per place of the block, in elements
  Dims result_sizes() const {
    Dims out;
    for (int i = 0; i < block_at; ++i) out.push_back(rest_sizes[i]);
    for (auto s : block) out.push_back(s);
    for (int i = block_at; i < rest_sizes.size(); ++i) out.push_back(rest_sizes[i]);
    return out;
  }
};

/// Masks become index tensors; checks types and counts.
TensorList plain_indices(const Tensor& t, const TensorList& given) {
  TensorList out;
  int dim = 0;
  for (auto& i : given) {
    if (!i) {
      out.push_back(nullptr);
      ++dim;
      continue;
    }
    if (i->dtype == DType::Bool || i->dtype == DType::UInt8) {
      for (int k = 0; k < i->ndim; ++k)
        check_index(dim + k < t.ndim && i->size(k) == t.size(dim + k), "The shape of the mask ", to_string(i->sizes()), " at index ", k,
                    " does not match the shape of the indexed tensor ", to_string(t.sizes()), " at index ", dim + k);
      TensorRef at = nonzero(*i);
      GradScope off(false);
      for (int k = 0; k < i->ndim; ++k) out.push_back(contiguous(*select(*at, 1, k)));
      dim += i->ndim;
      continue;
    }
    check_index(i->dtype == DType::Int64 || i->dtype == DType::Int32 || i->dtype == DType::Int16 || i->dtype == DType::Int8,
                "tensors used as indices must be long, int, byte or bool tensors");
    out.push_back(cast(*i, DType::Int64));
    ++dim;
  }
  check_index(dim <= t.ndim, "too many indices for tensor of dimension ", int(t.ndim));
  while (int(out.size()) < t.ndim) out.push_back(nullptr);
  return out;
}

Plan make_plan(const Tensor& t, const TensorList& given) {
  TensorList indices = plain_indices(t, given);
  Plan p;
  bool any = false;
  for (auto& i : indices)
    if (i) {
      try {
        p.block = any ? broadcast_sizes(p.block, i->sizes()) : Dims(i->sizes());
      } catch (const Error&) {
        std::string shapes;
        for (auto& j : indices)
          if (j) shapes += (shapes.empty() ? "" : ", ") + to_string(j->sizes()).str();
        fail(ErrorKind::Index, "shape mismatch: indexing tensors could not be broadcast together with shapes ", shapes);
      }
      any = true;
    }
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
  p.offsets = zeros(p.block, DType::Int64);
  auto* to = p.offsets->write_as<std::int64_t>();
  for (int d = 0; d < t.ndim; ++d) {
    if (!indices[std::size_t(d)]) continue;
    TensorRef at = packed(*make_tensor(Ref<Storage>(indices[std::size_t(d)]->storage), DType::Int64, p.block, broadcast_strides(*indices[std::size_t(d)], p.block),
                                       indices[std::size_t(d)]->offset));
    auto* from = at->read_as<std::int64_t>();
    std::int64_t n = t.size(d), stride = t.stride(d);
    for (std::int64_t k = 0; k < p.offsets->numel; ++k) {
      std::int64_t i = from[k];
      check_index(i >= -n && i < n, "index ", i, " is out of bounds for dimension ", d, " with size ", n);
      to[k] += (i < 0 ? i + n : i) * stride;
    }
  }
  return p;
}

/// The result's dimensions of the plan applied to `t` as block first, then the rest.
Dims block_first(const Plan& p) {
  Dims order;
  for (int i = 0; i < p.block.size(); ++i) order.push_back(p.block_at + i);
  for (int i = 0; i < p.rest_sizes.size(); ++i) order.push_back(i < p.block_at ? i : i + p.block.size());
  return order;
}

/// A view of `t` (shaped like the result) with the block first.
TensorRef arrange(const Tensor& t, const Plan& p) {
  GradScope off(false);
  return permute(t, block_first(p));
}

template <class T, class F>
void for_places(const Tensor& source, const Plan& p, const Tensor& values, bool exclusive, F&& f) {
  // values: block first; its block part is walked by a nest, the rest by another
  Dims block_strides, rest_strides;
  int b = p.block.size();
  for (int i = 0; i < values.ndim; ++i) (i < b ? block_strides : rest_strides).push_back(values.stride(i));
  std::int64_t item = sizeof(T);
  const std::int64_t* rest[2] = {p.rest_strides.data(), rest_strides.data()};
  std::int64_t items[2] = {item, item};
  Nest inner(p.rest_sizes, rest, items, 2);
  char* base = const_cast<char*>(reinterpret_cast<const char*>(source.read()));
  char* other = const_cast<char*>(reinterpret_cast<const char*>(values.read()));
  auto* offsets = p.offsets->read_as<std::int64_t>();
  if (inner.numel == 0 || p.offsets->numel == 0) return;
  auto run = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      std::int64_t rest_index = k, at = 0;
      for (int d = b - 1; d >= 0; --d) {
        at += rest_index % p.block[d] * block_strides[d];
        rest_index /= p.block[d];
      }
      char* pair[2] = {base + offsets[k] * item, other + at * item};
      if (inner.numel == 1) {
        f(reinterpret_cast<T*>(pair[0]), reinterpret_cast<T*>(pair[1]), 1, 0, 0);
        continue;
      }
      inner.run(pair, 0, inner.numel, [&](char** q, std::int64_t n, const std::int64_t* steps) {
        f(reinterpret_cast<T*>(q[0]), reinterpret_cast<T*>(q[1]), n, steps[0] / item, steps[1] / item);
      });
    }
  };
  if (exclusive)
    parallel_for(p.offsets->numel, std::max<std::int64_t>(1, (1 << 15) / inner.numel), run);
  else
    run(0, p.offsets->numel);
}

void put(Tensor& t, const Plan& p, const Tensor& values, bool accumulate) {
  GradScope off(false);
  TensorRef typed = values.dtype == t.dtype ? TensorRef(const_cast<Tensor*>(&values)) : cast(values, t.dtype);
  Dims sizes = p.result_sizes();
  TensorRef shaped = equal(typed->sizes(), sizes) ? typed : expand(*typed, sizes);
  TensorRef arranged = arrange(*shaped, p);
  t.write();
  if (accumulate) {
    visit_dtype(t.dtype, [&]<class T>() {
      for_places<T>(t, p, *arranged, false, [](T* to, T* from, std::int64_t n, std::int64_t ts, std::int64_t fs) {
        for (std::int64_t i = 0; i < n; ++i) to[i * ts] = T(to[i * ts] + from[i * fs]);
      });
    });
  } else {
    visit_width(t.item_size(), [&]<class T>() {
      for_places<T>(t, p, *arranged, false, [](T* to, T* from, std::int64_t n, std::int64_t ts, std::int64_t fs) {
        for (std::int64_t i = 0; i < n; ++i) to[i * ts] = from[i * fs];
      });
    });
  }
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

void check_values(const Tensor& t, const Plan& p, const Tensor& values) {
  Dims sizes = p.result_sizes();
  bool fits = values.ndim <= sizes.size();
  int lead = sizes.size() - values.ndim;
  for (int i = 0; fits && i < values.ndim; ++i) fits = values.size(i) == sizes[lead + i] || values.size(i) == 1;
  check(fits, "shape mismatch: value tensor of shape ", to_string(values.sizes()), " cannot be broadcast to indexing result of shape ", sizes);
  check(values.dtype == t.dtype || values.ndim == 0, "Index put requires the source and destination dtypes match, got ", info(t.dtype).scalar_name, " for the destination and ",
        info(values.dtype).scalar_name, " for the source.");
}

}  // namespace

TensorRef index(const Tensor& t, const TensorList& indices) {
  Plan p = make_plan(t, indices);
  TensorRef out = empty(p.result_sizes(), t.dtype);
  TensorRef arranged = arrange(*out, p);
  out->write();
  visit_width(t.item_size(), [&]<class T>() {
    for_places<T>(t, p, *arranged, true, [](T* from, T* to, std::int64_t n, std::int64_t fs, std::int64_t ts) {
      for (std::int64_t i = 0; i < n; ++i) to[i * ts] = from[i * fs];
    });
  });
  if (!needs_record(t)) return out;
  SavedIndices saved(indices, 0);
  const Tensor* inputs[] = {&t};
  TensorRef outs[] = {out};
  record_many("IndexBackward0", outs, inputs, saved.saves, [slot = saved.slot, sizes = Dims(t.sizes())](Vjp& v) {
    TensorRef none = zeros(sizes, v.grad()->dtype);
    v.set(0, index_put(*none, unpack_indices(v, slot), *v.grad(), true));
  });
  return out;
}

namespace {
Node* put_node(const Tensor& t, const TensorList& indices, const Tensor& values, bool accumulate) {
  SavedIndices saved(indices, 0);
  const Tensor* inputs[] = {&t, &values};
  return make_lambda_node("IndexPutBackward0", inputs, saved.saves, 1, [slot = saved.slot, accumulate, sizes = Dims(values.sizes()), dtype = values.dtype](Vjp& v) {
    TensorList at = unpack_indices(v, slot);
    if (v.needs(0)) v.set(0, accumulate ? v.grad() : index_put(*v.grad(), at, *scalar_tensor(0, v.grad()->dtype), false));
    if (v.needs(1)) v.set(1, cast(*sum_to_size(*index(*v.grad(), at), sizes), dtype));
  });
}
}  // namespace

TensorRef index_put(const Tensor& t, const TensorList& indices, const Tensor& values, bool accumulate) {
  Plan probe = make_plan(t, indices);
  check_values(t, probe, values);
  TensorRef out = copy_of(t);
  Plan p = make_plan(*out, indices);
  put(*out, p, values, accumulate);
  if (needs_record(t, values)) {
    Node* node = put_node(t, indices, values, accumulate);
    note_output(node, *out);
    set_history(*out, node);
    release(static_cast<Object*>(node));
  }
  return out;
}

void index_put_inplace(Tensor& t, const TensorList& indices, const Tensor& values, bool accumulate) {
  bool records = needs_record(t, values);
  check_inplace(t, records);
  refuse_overlapping_write(t);
  Plan p = make_plan(t, indices);
  check_values(t, p, values);
  Ref<Node> node;
  if (records) node = Ref<Node>::adopt(put_node(t, indices, values, accumulate));
  TensorRef source(const_cast<Tensor*>(&values));
  if (memory_overlap(t, values) != Overlap::None) source = copy_of(values);
  put(t, p, *source, accumulate);
  finish_inplace(t, std::move(node), "index_put_");
}

// ---- the operators

namespace {

const Define indexing[] = {
    {"nonzero(Tensor self)", &nonzero, Both | Out, "The positions of what is not zero, one row each."},
};

}  // namespace

}  // namespace rushlight
