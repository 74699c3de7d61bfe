#include "kernels/join.h"

#include <algorithm>
#include <cstring>

#include "kernels/parallel.h"

namespace rushlight {

void join_rows(std::byte* to, std::int64_t rows, const JoinBlock* blocks, std::int64_t n) {
  std::int64_t row_bytes = 0;
  for (std::int64_t i = 0; i < n; ++i) row_bytes += blocks[i].bytes;
  if (row_bytes == 0) return;
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
