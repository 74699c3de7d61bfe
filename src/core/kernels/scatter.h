// Gathering and scattering: an index says, for each of its places, which place along one dimension of a table it stands
// for.
#pragma once

#include "kernels/nest.h"
#include "tensor/dtype.h"

namespace rushlight {

/// The lines along the dimension: operand 0 is the table, 1 the index (int64), 2 the tensor that meets it place by
/// place. An index that all lines share has no steps between them.
struct IndexedLines {
  Nest lines;  ///< the other dimensions
  char* base[3];
  std::int64_t step[3];  ///< bytes along the dimension
  std::int64_t length;   ///< places of a line
  std::int64_t size;     ///< places of a line of the table
  bool wraps = false;    ///< a negative index counts from the end
};

enum class Scatter : std::uint8_t { Assign, Add, Multiply, Larger, Smaller };

/// other = table[index]. False where an index lies outside of the table; some places are not written then.
bool gather_lines(const IndexedLines& w, std::int64_t item);
/// table[index] = table[index] op other, along each line in the order of places, whatever the number of threads. False
/// as above.
bool scatter_lines(const IndexedLines& w, DType dtype, Scatter op);

}  // namespace rushlight
