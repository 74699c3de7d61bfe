// The look for infinities that anomaly mode may ask for.
#pragma once

#include "tensor/tensor.h"

namespace rushlight {

/// True where a floating or complex tensor holds an infinity.
bool has_infinity(const Tensor& t);

}  // namespace rushlight
