// Indices along a dimension, laid out for kernels/scatter.h, and the first one that lies outside of it.
#pragma once

#include <optional>

#include "kernels/scatter.h"
#include "tensor/tensor.h"

namespace rushlight {

/// The size of `t` along `dim`: a scalar counts as a vector of one element.
inline std::int64_t size_along(const Tensor& t, int dim) { return t.ndim ? t.size(dim) : 1; }

/// The memory of a tensor as kernels take it; what they write has been asked for by write() before.
inline char* address(const Tensor& t) { return const_cast<char*>(reinterpret_cast<const char*>(t.read())); }

/// The first index outside of [low, size), if there is one.
std::optional<std::int64_t> misplaced(const Tensor& index, std::int64_t low, std::int64_t size);

/// The lines along `dim` of a table whose places are `places` in shape: strides of the index (int64) and of the values
/// over these. The addresses of both are to be set.
IndexedLines lines_along(const Tensor& table, IntSpan table_strides, int dim, IntSpan places, IntSpan index_strides,
                         IntSpan value_strides);

}  // namespace rushlight
