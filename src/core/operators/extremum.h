// Largest and smallest elements.
#pragma once

#include "operators/reduce.h"

namespace rushlight {

/// The largest (smallest) over `dims`, all where empty; the gradient is shared evenly among equals.
TensorRef amax(const Tensor& t, IntSpan dims, bool keepdim = false);
TensorRef amin(const Tensor& t, IntSpan dims, bool keepdim = false);

}  // namespace rushlight
