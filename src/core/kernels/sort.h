// Sorting and selecting along a line. NaN is greater than every number, as in PyTorch.
//
// Every function takes lines (line.h) so that it serves any dimension of any tensor; the caller loops over the other
// dimensions, in parallel if it likes: the functions share nothing. Outputs must not overlap the input.
// T: every real type and bool, unless said otherwise.
//
// Equal elements. sort is stable, and median takes the element of its rank in that order. The other functions report,
// among equal elements, the index that PyTorch reports: they use the same algorithms in the same way. topk and mode
// thereby lean on the standard library's partial_sort, nth_element and sort, and agree with PyTorch where both were
// built with libstdc++.
#pragma once

#include <cstdint>

#include "kernels/line.h"
#include "tensor/dtype.h"

namespace rushlight {

/// values[i], indices[i] = the i-th element of `in` in ascending (NaN last) or descending (NaN first) order and its
/// place; equal elements keep their order. Either output may have no data. Small lines by comparison, others by radix.
template <class T>
void sort_line(Line<const T> in, std::int64_t n, bool descending, Line<T> values, Line<std::int64_t> indices);

/// The k largest (NaN counts as largest) or smallest elements and their places, k <= n; in order if `sorted`, else in
/// the order in which the selection leaves them. Not for bool.
template <class T>
void topk_line(Line<const T> in, std::int64_t n, std::int64_t k, bool largest, bool sorted, Line<T> values,
               Line<std::int64_t> indices);

/// An element and its place in its line.
template <class T>
struct Selected {
  T value;
  std::int64_t index;
};

/// The k-th smallest element, 1 <= k <= n, NaN last (torch.kthvalue). Not for bool.
template <class T>
Selected<T> kth_of_line(Line<const T> in, std::int64_t n, std::int64_t k);

/// The lower median of n >= 1 elements: the first NaN if there is one, else element (n - 1) / 2 in order. Not for bool.
template <class T>
Selected<T> median_of_line(Line<const T> in, std::int64_t n);

/// The lower median of the elements that are not NaN; NaN, at place 0, if all are (torch.nanmedian). Not for bool.
template <class T>
Selected<T> nanmedian_of_line(Line<const T> in, std::int64_t n);

/// The most frequent of n >= 1 elements, the smallest of several, at its last place (torch.mode). As in PyTorch, NaN
/// makes the result meaningless.
template <class T>
Selected<T> mode_of_line(Line<const T> in, std::int64_t n);

}  // namespace rushlight
