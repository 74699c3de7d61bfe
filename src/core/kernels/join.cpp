#include "kernels/join.h"

#include <algorithm>
#include <cstring>

#include "kernels/parallel.h"
#include "tensor/dtype.h"

namespace rushlight {

namespace {

/// Rows of one element from each.
template <class T>
void interleave(std::byte* to_, std::int64_t rows, const JoinBlock* blocks, std::int64_t n) {
  auto* to = reinterpret_cast<T*>(to_);
  parallel_for(rows, std::max<std::int64_t>(1, (1 << 15) / n), [&](std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t some = 256;  // rows whose part of the result stays in the cache
    for (std::int64_t at = begin; at < end; at += some)
      for (std::int64_t i = 0; i < n; ++i) {
        auto* from = reinterpret_cast<const T*>(blocks[i].from);
        for (std::int64_t row = at; row < std::min(at + some, end); ++row) to[row * n + i] = from[row];
      }
  });
}

}  // namespace

void join_rows(std::byte* to, std::int64_t rows, const JoinBlock* blocks, std::int64_t n) {
  std::int64_t row_bytes = 0;
  for (std::int64_t i = 0; i < n; ++i) row_bytes += blocks[i].bytes;
  if (row_bytes == 0) return;
  std::int64_t item = blocks[0].bytes;
  bool words = (item & (item - 1)) == 0 && item <= 16 &&
               std::all_of(blocks, blocks + n, [&](const JoinBlock& b) { return b.bytes == item; });
  if (words && n > 1) return visit_width(item, [&]<class T>() { interleave<T>(to, rows, blocks, n); });
  // parts of the result's bytes: long rows are shared out as well as many short ones
  parallel_for(rows * row_bytes, std::int64_t(1) << 18, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t row = begin / row_bytes, skip = begin % row_bytes;
    while (begin < end) {
      for (std::int64_t i = 0; i < n && begin < end; ++i) {
        const JoinBlock& b = blocks[i];
        if (skip >= b.bytes) {
          skip -= b.bytes;
          continue;
        }
        std::int64_t count = std::min(b.bytes - skip, end - begin);
        std::memcpy(to + begin, b.from + row * b.bytes + skip, std::size_t(count));
        begin += count;
        skip = 0;
      }
      ++row;
    }
  });
}

}  // namespace rushlight
