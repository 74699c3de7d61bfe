// Normalisation over layers, groups and batches.
#pragma once

#include <optional>

#include "tensor/tensor.h"

namespace rushlight {

/// (x - mean) / sqrt(var + eps) * weight + bias over the last dimensions, of these sizes; weight and bias may be null.
TensorRef layer_norm(const Tensor& input, IntSpan normalized_shape, const Tensor* weight, const Tensor* bias,
                     double eps);
/// x / sqrt(mean(x^2) + eps) * weight; eps defaults to the type's machine epsilon.
TensorRef rms_norm(const Tensor& input, IntSpan normalized_shape, const Tensor* weight, std::optional<double> eps);

}  // namespace rushlight
