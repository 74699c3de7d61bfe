// Whether indices lie where they may.
#pragma once

#include <cstdint>

namespace rushlight {

/// Whether the n indices, side by side, all lie in [low, size); `size` is not negative.
bool within(const std::int64_t* index, std::int64_t n, std::int64_t low, std::int64_t size);

}  // namespace rushlight
