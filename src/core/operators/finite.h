// The look for what is not finite.
#pragma once

#include "tensor/tensor.h"

namespace rushlight {

enum class Fault { None, Nan, Infinity };

/// What is wrong with the numbers, as far as it is asked for: NaN before infinity.
Fault fault_in(const Tensor& t, bool nans, bool infinities);
/// True where a floating tensor holds a NaN.
bool has_nan(const Tensor& t);

}  // namespace rushlight
