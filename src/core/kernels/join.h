// Blocks of memory interleaved: what joining row-major tensors along a dimension is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rushlight {

struct JoinBlock {
  const std::byte* from;
  std::int64_t bytes;  ///< of one row
};

/// Row r of the result is row r of each block, one behind the other.
void join_rows(std::byte* to, std::int64_t rows, const JoinBlock* blocks, std::int64_t n);

}  // namespace rushlight
