// Between which bounds integers lie.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace rushlight {

/// Whether the n indices, side by side, all lie in [low, size); `size` is not negative.
bool within(const std::int64_t* index, std::int64_t n, std::int64_t low, std::int64_t size);

struct Extent {
  std::int64_t least, largest;
};
/// The least and the largest of n >= 1 integers, side by side.
Extent extent(DType type, const void* integers, std::int64_t n);

}  // namespace rushlight
