// Numbers brought from row-major order into a layout (tensor/storage.h) and back.
#pragma once

#include "tensor/storage.h"

namespace rushlight {

/// Numbers of sizes (outer, inner, rest), of `item` bytes each.
struct Moved {
  std::int64_t outer, inner, rest, item;
};
void bring_from_rows(Arrangement::Order order, const Moved& sizes, const std::byte* from, std::byte* to);
void bring_to_rows(Arrangement::Order order, const Moved& sizes, const std::byte* from, std::byte* to);

}  // namespace rushlight
