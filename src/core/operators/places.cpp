#include "operators/places.h"

#include <algorithm>
#include <atomic>

#include "kernels/bounds.h"
#include "kernels/parallel.h"
#include "operators/copy.h"

namespace rushlight {

std::optional<std::int64_t> misplaced(const Tensor& index, std::int64_t low, std::int64_t size) {
  TensorRef at = packed(index);
  const auto* p = at->read_as<std::int64_t>();
  std::atomic<bool> in_range = true;
  parallel_for(at->numel, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    if (!within(p + begin, end - begin, low, size)) in_range = false;
  });
  if (in_range) [[likely]]
    return std::nullopt;
  return *std::find_if(p, p + at->numel, [&](std::int64_t i) { return i < low || i >= size; });
}

IndexedLines lines_along(const Tensor& table, IntSpan table_strides, int dim, IntSpan places, IntSpan index_strides,
                         IntSpan value_strides) {
  IndexedLines w;
  std::int64_t item = table.item_size();
  w.length = places[std::size_t(dim)];
  w.step[0] = table_strides[std::size_t(dim)] * item;
  w.step[1] = index_strides[std::size_t(dim)] * std::int64_t(sizeof(std::int64_t));
  w.step[2] = value_strides[std::size_t(dim)] * item;
  w.size = size_along(table, dim);
  w.base[0] = address(table);
  Dims others(places);
  others[dim] = 1;
  const std::int64_t* strides[3] = {table_strides.data(), index_strides.data(), value_strides.data()};
  std::int64_t items[3] = {item, sizeof(std::int64_t), item};
  w.lines = Nest(others, strides, items, 3);
  return w;
}

}  // namespace rushlight
