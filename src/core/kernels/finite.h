// The search for what is not finite.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace rushlight {

/// What some numbers hold besides finite ones: a sum of these.
enum : unsigned { found_nan = 1, found_infinity = 2 };

/// What `n` numbers hold that are `step` bytes apart.
using FindFaults = unsigned (*)(const char* numbers, std::int64_t n, std::int64_t step);

/// The search for numbers of a real floating type.
FindFaults fault_search(DType dtype);

}  // namespace rushlight
