// Reductions over memory. The partition and the order of additions depend on sizes and layout alone, never on threads.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace rushlight {

/// The innermost work of a reduction, built once per instruction set.
struct ReductionBuild {
  /// Sum of n elements at a distance of `step` bytes, in 32 lanes that are then added as a tree.
  void (*sum_line)(DType dtype, const char* from, std::int64_t n, std::int64_t step, char* out);
  /// acc[i] += from[i * step bytes], i < n; acc is contiguous.
  void (*add_line)(DType dtype, char* acc, const char* from, std::int64_t n, std::int64_t step);
};

/// out (row-major, the kept dimensions) = sums of `t` over the dimensions whose bit is set. Both of one type (bool and
/// half types are converted by the caller). Long sums are made of partial sums of fixed blocks.
void reduce_sum(const Tensor& t, std::uint64_t reduced, Tensor& out);

}  // namespace rushlight
