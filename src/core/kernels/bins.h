// Numbers put into bins: places in a sorted sequence, histograms, counts of small integers.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace rushlight {

/// out[i] = where values[i] belongs in the ascending sequence boundaries[0..n): the number of boundaries below it, or
/// not above it if `right` (torch.searchsorted for one row of each, torch.bucketize). With a `sorter`, not null, the
/// sequence is boundaries[sorter[0]], boundaries[sorter[1]], ... NaN belongs to the end. T: every real type; Index:
/// int32, int64.
template <class T, class Index>
void search_sorted(const T* boundaries, std::int64_t n, const std::int64_t* sorter, const T* values, std::int64_t m,
                   bool right, Index* out);

/// Adds to counts[0..bins) how many of in[0..n) lie in each of `bins` equal parts of [low, high], low < high
/// (torch.histc): number x goes to part (x - low) * bins / (high - low), rounded down, and `high` to the last; what
/// lies outside, and NaN, is not counted. The arithmetic is T's, halves rounded at every step. The counts are whole;
/// PyTorch adds them in T, where those of halves stick at 2,048 (256). T: float, double, Half, BFloat16.
template <class T>
void count_in_parts(const T* in, std::int64_t n, std::int64_t bins, T low, T high, std::int64_t* counts);

/// counts[in[i]] += 1 for i < n. Every in[i] lies in [0, bins). T: every integral type.
template <class T>
void count_by_index(const T* in, std::int64_t n, std::int64_t bins, std::int64_t* counts);

/// totals[in[i]] += weights[i] for i < n in order. Every in[i] is an index of `totals`. T: every integral type. Total:
/// float, double.
template <class T, class Total>
void add_by_index(const T* in, std::int64_t n, const Total* weights, Total* totals);

}  // namespace rushlight
