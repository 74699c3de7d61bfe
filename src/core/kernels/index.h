// Moving numbers by lists of positions along a dimension.
#pragma once

#include "kernels/nest.h"
#include "tensor/dtype.h"
#include "tensor/scalar.h"

namespace rushlight {

/// Two tensors that meet along one dimension: place index[k] of the first with place k of the second, over all
/// positions of the other dimensions.
struct DimensionPair {
  Nest rest;  ///< the other dimensions: operands first, second
  char* first;
  char* second;
  std::int64_t first_step, second_step;  ///< bytes along the dimension
  const std::int64_t* index;             ///< in range
  std::int64_t count;
};

/// second[k] = first[index[k]]
void select_places(const DimensionPair& p, std::int64_t item);
/// first[index[k]] = second[k]
void copy_places(const DimensionPair& p, std::int64_t item);
/// first[index[k]] += alpha * second[k], in the order of k.
void add_places(const DimensionPair& p, DType dtype, const Scalar& alpha);

/// The same as select_places for row-major tensors of `rows` rows of `n` blocks of `bytes`.
void select_blocks(const std::byte* from, std::byte* to, std::int64_t rows, std::int64_t n, const std::int64_t* index,
                   std::int64_t count, std::int64_t bytes);

}  // namespace rushlight
