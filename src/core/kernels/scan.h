// Running sums, products, extremes and log-sum-exps along a dimension.
//
// Each function works on `count` lines of n elements, equal lines side by side in memory (line.h): for a tensor, one
// call for each index of the dimensions outside the scanned one, its inner dimensions being the lines if they are
// contiguous. Lines whose elements lie farther apart than the lines themselves are worked on in groups, so that memory
// is read along cache lines. `out` may be `in`. Calls share nothing and may run in parallel.
//
// As in PyTorch, float runs in double, the half types in float, complex64 in complex128; every output is that rounded.
#pragma once

#include <complex>
#include <cstdint>

#include "kernels/line.h"
#include "tensor/dtype.h"

namespace rushlight {

/// out[i] = in[0] + ... + in[i]. Integers wrap around. T: every type but bool (PyTorch sums bool and small integers in
/// int64).
template <class T>
void cumsum_lines(Lines<const T> in, Lines<T> out, std::int64_t n, std::int64_t count);

/// out[i] = in[0] * ... * in[i]. The same types.
template <class T>
void cumprod_lines(Lines<const T> in, Lines<T> out, std::int64_t n, std::int64_t count);

/// values[i] = the largest of in[0..i], indices[i] = the last place where it stands. From the first NaN on the values
/// are NaN, at the place of the last one. T: every real type and bool.
template <class T>
void cummax_lines(Lines<const T> in, Lines<T> values, Lines<std::int64_t> indices, std::int64_t n, std::int64_t count);

/// The same with the smallest.
template <class T>
void cummin_lines(Lines<const T> in, Lines<T> values, Lines<std::int64_t> indices, std::int64_t n, std::int64_t count);

/// out[i] = log(exp(in[0]) + ... + exp(in[i])), each step x, y -> max + log1p(exp(min - max)), and x if both are the
/// same infinity. T: every differentiable type (log_add_exp.h).
template <class T>
void logcumsumexp_lines(Lines<const T> in, Lines<T> out, std::int64_t n, std::int64_t count);

}  // namespace rushlight
