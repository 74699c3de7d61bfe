// Gathering and scattering: an index of full shape says, for each of its places, which place along one dimension of a
// table it stands for.
#pragma once

#include "kernels/nest.h"
#include "tensor/dtype.h"

namespace rushlight {

/// The lines along the dimension: operand 0 is the table, 1 the index (int64, in range), 2 the tensor that meets it
/// place by place.
struct IndexedLines {
  Nest lines;  ///< the other dimensions
  char* base[3];
  std::int64_t step[3];  ///< bytes along the dimension
  std::int64_t length;   ///< places of a line
};

enum class Scatter : std::uint8_t { Assign, Add, Multiply, Larger, Smaller };

/// other = table[index]
void gather_lines(const IndexedLines& w, std::int64_t item);
/// table[index] = table[index] op other, along each line in the order of places. Threads share the lines, so that the
/// result does not depend on them.
void scatter_lines(const IndexedLines& w, DType dtype, Scatter op);

}  // namespace rushlight
