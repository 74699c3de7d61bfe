#include "kernels/pad.h"

#include <algorithm>

#include "kernels/parallel.h"

namespace rushlight {
namespace {

/// Calls f(source row, result row) for the rows of width of every plane; threads share the planes.
template <class T, class U, class F>
void for_rows(const PadMap& map, T* source, U* result, F&& f) {
  std::int64_t rows = std::int64_t(map.source[0].size() * map.source[1].size()),
               width = std::int64_t(map.source[2].size());
  parallel_for(map.planes, std::max<std::int64_t>(1, (1 << 14) / std::max<std::int64_t>(rows * width, 1)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t p = begin; p < end; ++p) {
                   T* from = source + p * map.source_numel();
                   U* to = result + p * rows * width;
                   for (std::int64_t d : map.source[0])
                     for (std::int64_t h : map.source[1]) {
                       f(from + (d * map.size[1] + h) * map.size[2], to, width);
                       to += width;
                     }
                 }
               });
}

}  // namespace

void pad_forward(const PadMap& map, std::int64_t item, const std::byte* from, std::byte* to) {
  const std::int64_t* x = map.source[2].data();
  visit_width(item, [&]<class T>() {
    for_rows(map, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to),
             [x](const T* row, T* out, std::int64_t n) {
               for (std::int64_t i = 0; i < n; ++i) out[i] = row[x[i]];
             });
  });
}

void pad_backward(const PadMap& map, DType dtype, const std::byte* gradient, std::byte* to) {
  const std::int64_t* x = map.source[2].data();
  visit_dtype(dtype, [&]<class T>() {
    for_rows(map, reinterpret_cast<T*>(to), reinterpret_cast<const T*>(gradient),
             [x](T* row, const T* g, std::int64_t n) {
               for (std::int64_t i = 0; i < n; ++i) row[x[i]] = T(row[x[i]] + g[i]);
             });
  });
}

}  // namespace rushlight
