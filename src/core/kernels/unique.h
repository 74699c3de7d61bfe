// Distinct elements, and distinct rows. NaN differs from everything, itself included, as in PyTorch; so every NaN is
// kept.
//
// Inputs are contiguous. Of the outputs, `inverse` (room for the n inputs: the output that each became) and `counts`
// (room for n: how many became each output) may be null. Of elements that are equal but not the same, as the zeros of
// both signs, the first is kept.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace rushlight {

/// Writes the distinct elements of `in` to `values` (room for n) in ascending order, NaNs last, and returns how many
/// they are. T: every real type and bool.
template <class T>
std::int64_t unique_sorted(const T* in, std::int64_t n, T* values, std::int64_t* inverse, std::int64_t* counts);

/// The same with only neighbours compared: every run of equal elements becomes one output, in the order of the runs.
template <class T>
std::int64_t unique_consecutive(const T* in, std::int64_t n, T* values, std::int64_t* inverse, std::int64_t* counts);

/// Distinct rows of n contiguous rows of `width` elements in lexicographic order (torch.unique with dim: the caller
/// makes that dimension the rows). Writes to `kept` (room for n) the first row of each kind and returns how many they
/// are.
template <class T>
std::int64_t unique_rows(const T* rows, std::int64_t n, std::int64_t width, std::int64_t* kept, std::int64_t* inverse,
                         std::int64_t* counts);

/// The same with only neighbouring rows compared.
template <class T>
std::int64_t unique_consecutive_rows(const T* rows, std::int64_t n, std::int64_t width, std::int64_t* kept,
                                     std::int64_t* inverse, std::int64_t* counts);

}  // namespace rushlight
