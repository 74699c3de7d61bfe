// Largest and smallest elements.
#pragma once

#include "autograd/record.h"
#include "operators/reduce.h"

namespace rushlight {

/// The largest (smallest) over `dims`, all where empty; the gradient is shared evenly among equals.
TensorRef amax(const Tensor& t, IntSpan dims, bool keepdim = false);
TensorRef amin(const Tensor& t, IntSpan dims, bool keepdim = false);

/// The gradient of a reduction that gave one of its elements, shared evenly among those that equal it. Where the result
/// is a NaN, `nans` share it, or else the whole line gets NaN (as for amax and amin).
TensorRef evenly_shared(Vjp& v, const Tensor& g, const Tensor& x, const Tensor& result, const Reduced& r, bool nans);

}  // namespace rushlight
