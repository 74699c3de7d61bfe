// Elements at places along one dimension: what sorting, scanning and choosing operators give back gradients through.
#pragma once

#include "autograd/record.h"

namespace rushlight {

/// out[.., i, ..] = t[.., index[.., i, ..], ..]; `index` (int64) has t's sizes but along `dim`.
TensorRef gather_along(const Tensor& t, int dim, const Tensor& index);
/// Zeros of `sizes` with each element of `g` added at its place along `dim`: the derivative of gather_along.
TensorRef scatter_along(const Tensor& g, IntSpan sizes, int dim, const Tensor& index);
/// The same as a derivative, by rows where `v` has them.
TensorRef scatter_along(Vjp& v, const Tensor& g, IntSpan sizes, int dim, const Tensor& index);

/// The gradient of a reduction that chose one element of each line: `g` at the places `index`, zeros elsewhere.
TensorRef choice_vjp(Vjp& v, const Tensor& g, IntSpan sizes, int dim, const Tensor& index, bool keepdim);

}  // namespace rushlight
