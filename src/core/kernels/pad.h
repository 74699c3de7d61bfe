// Padding by numbers of the tensor itself: each place of the result shows a place of the source, along up to three
// dimensions by a table each.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/dtype.h"

namespace rushlight {

struct PadMap {
  std::vector<std::int64_t> source[3];  ///< for depth, height, width: the place in the source that each place shows
  std::int64_t size[3] = {1, 1, 1};     ///< of the source
  std::int64_t planes = 1;              ///< leading dimensions, as one
  std::int64_t source_numel() const { return size[0] * size[1] * size[2]; }
  std::int64_t result_numel() const { return std::int64_t(source[0].size() * source[1].size() * source[2].size()); }
};

/// Both row-major.
void pad_forward(const PadMap& map, std::int64_t item, const std::byte* from, std::byte* to);
/// Adds each number of the gradient at the place that it showed; `to` holds zeros.
void pad_backward(const PadMap& map, DType dtype, const std::byte* gradient, std::byte* to);

}  // namespace rushlight
