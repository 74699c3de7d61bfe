// Rows of a matrix looked up by index.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/parallel.h"
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

/// What lookups send back to the matrix; `padding` is a row that gets nothing, or -1.
struct Lookup {
  std::int64_t rows, padding;
  bool by_frequency;  ///< a row's gradient is divided by how often it was looked up
};

TensorRef rows_added(const Tensor& g, const Tensor& indices, const Lookup& l);

/// The rows at indices, those of the padding row as zeros where `l` says so: the transpose of rows_added.
TensorRef rows_found(const Tensor& weight, const Tensor& indices, const Lookup& l, const char* node,
                     bool zero_padding) {
  Dims sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  TensorRef out = empty(sizes, weight.dtype), w = packed(weight), at = packed(indices);
  auto* index = at->read_as<std::int64_t>();
  std::int64_t bytes = weight.size(1) * weight.item_size();
  const std::byte* from = w->read();
  std::byte* to = out->write();
  parallel_for(indices.numel, std::max<std::int64_t>(1, (1 << 15) / std::max<std::int64_t>(bytes, 1)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   if (zero_padding && index[i] == l.padding)
                     std::memset(to + i * bytes, 0, std::size_t(bytes));
                   else
                     std::memcpy(to + i * bytes, from + index[i] * bytes, std::size_t(bytes));
                 }
               });
  return record(node, std::move(out), {&weight}, {save_other(indices)},
                [l](Vjp& v) { v.set(0, rows_added(*v.grad(), *v.saved(0), l)); });
}

std::vector<double> shares(const std::int64_t* index, std::int64_t n, std::int64_t rows) {
  std::vector<double> share(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < n; ++i) ++share[std::size_t(index[i])];
  for (auto& s : share) s = s > 0 ? 1 / s : 0;
  return share;
}

/// The lookups of each row in order: those of row r are order[begin[r]] up to order[begin[r + 1]].
struct LookupsByRow {
  std::vector<std::int64_t> begin, order;
  LookupsByRow(const std::int64_t* index, std::int64_t n, std::int64_t rows)
      : begin(std::size_t(rows + 2)), order(static_cast<std::size_t>(n)) {
    for (std::int64_t i = 0; i < n; ++i) ++begin[std::size_t(index[i] + 2)];
    for (std::size_t r = 2; r < begin.size(); ++r) begin[r] += begin[r - 1];
    for (std::int64_t i = 0; i < n; ++i) order[std::size_t(begin[std::size_t(index[i] + 1)]++)] = i;
  }
};

/// row = part, or += part, whose numbers are `step` apart: side by side, or all the same one, as the gradients of sums.
template <bool first, class T>
void add_row(T* __restrict row, const T* part, std::int64_t width, std::int64_t step) {
  auto joined = [](T a, T b) { return first ? b : T(a + b); };
  if (step == 1)
    for (std::int64_t k = 0; k < width; ++k) row[k] = joined(row[k], part[k]);
  else if (T all = *part; step == 0)
    for (std::int64_t k = 0; k < width; ++k) row[k] = joined(row[k], all);
  else
    for (std::int64_t k = 0; k < width; ++k) row[k] = joined(row[k], part[k * step]);
}

/// Each row of `to` is written by one thread: zeros, or what its lookups' rows of `g` add up to.
template <class T>
void add_rows(const Tensor& g, const LookupsByRow& lookups, const Lookup& l, T* to) {
  std::int64_t width = g.size(1), row_step = g.stride(0), step = g.stride(1);
  const T* from = g.read_as<T>();
  auto write = [&](std::int64_t r) {
    T* row = to + r * width;
    std::int64_t begin = lookups.begin[std::size_t(r)], end = lookups.begin[std::size_t(r + 1)];
    if (begin == end || r == l.padding) return void(std::fill_n(row, width, T(0)));
    auto part = [&](std::int64_t i) { return from + lookups.order[std::size_t(i)] * row_step; };
    add_row<true>(row, part(begin), width, step);
    for (std::int64_t i = begin + 1; i < end; ++i) add_row<false>(row, part(i), width, step);
    if (l.by_frequency)
      for (std::int64_t k = 0; k < width; ++k) row[k] = T(row[k] / T(float(end - begin)));
  };
  if (width == 0) return;
  parallel_for(l.rows, std::max<std::int64_t>(1, (1 << 15) / width), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) write(r);
  });
}

TensorRef rows_added(const Tensor& g, const Tensor& indices, const Lookup& l) {
  TensorRef from, at = packed(indices);
  {
    GradScope off(false);
    from = reshape(g, Dims{indices.numel, g.size(g.ndim - 1)});
  }
  TensorRef out = empty(Dims{l.rows, from->size(1)}, g.dtype);
  LookupsByRow lookups(at->read_as<std::int64_t>(), indices.numel, l.rows);
  visit_dtype(g.dtype, [&]<class T>() { add_rows<T>(*from, lookups, l, out->write_as<T>()); });
  if (!l.by_frequency)
    return record("EmbeddingDenseBackward0", std::move(out), {&g}, {save_other(indices)},
                  [l](Vjp& v) { v.set(0, rows_found(*v.grad(), *v.saved(0), l, "EmbeddingBackward0", true)); });
  return record("EmbeddingDenseBackward0", std::move(out), {&g}, {save_other(indices)}, [l](Vjp& v) {
    TensorRef at = packed(*v.saved(0));
    std::vector<double> share = shares(at->read_as<std::int64_t>(), at->numel, l.rows);
    TensorRef factors = zeros(Dims{l.rows, 1}, v.grad()->dtype);
    for (std::int64_t i = 0; i < l.rows; ++i)
      Scalar(share[std::size_t(i)]).store(factors->dtype, factors->write() + i * factors->item_size());
    v.set(0, rows_found(*mul(v.grad(), factors), *v.saved(0), {l.rows, l.padding, false}, "EmbeddingBackward0", true));
  });
}

TensorRef checked_indices(const Tensor& indices) {
  check(indices.dtype == DType::Int64 || indices.dtype == DType::Int32,
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got ",
        info(indices.dtype).scalar_name, " instead (while checking arguments for embedding)");
  GradScope off(false);
  return packed(*cast(indices, DType::Int64));
}

TensorRef embedding(const Tensor& weight, const Tensor& indices, std::int64_t padding, bool by_frequency, bool sparse) {
  check(weight.ndim == 2, "'weight' must be 2-D");
  if (sparse)
    fail(ErrorKind::NotImplemented, "embedding: sparse=True is not available, gradients are dense tensors here");
  TensorRef at = checked_indices(indices);
  auto* index = at->read_as<std::int64_t>();
  std::int64_t rows = weight.size(0);
  for (std::int64_t i = 0; i < at->numel; ++i)
    check_index(index[i] >= 0 && index[i] < rows, "index out of range in self");
  return rows_found(weight, *at, {rows, padding, by_frequency}, "EmbeddingBackward0", false);
}

const Define lookups[] = {
    {"embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False)",
     &embedding, Function | Layer,
     "The rows of a matrix (n, D) at indices of any shape: (*indices.shape, D). An index outside [0, n) raises "
     "IndexError."},
};

}  // namespace
}  // namespace rushlight
