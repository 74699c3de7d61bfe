// Memory formats: orders of dimensions in memory.
#pragma once

#include "tensor/tensor.h"

namespace rushlight {

/// The format whose order the strides follow: channels_last for four dimensions, channels_last_3d for five, else
/// contiguous (also where sizes of 1 leave it open, as PyTorch has it).
MemoryFormat suggested_format(const Tensor& t);
/// The strides of a new tensor in the format; refuses channels_last for other than four dimensions (3d: five).
Dims format_strides(IntSpan sizes, MemoryFormat format);

}  // namespace rushlight
