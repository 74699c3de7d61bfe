// Convolutions in one to three dimensions.
#pragma once

#include "kernels/convolution.h"
#include "tensor/tensor.h"

namespace rushlight {

// The three linear maps of x (N, in, ...), w (out, in / groups, ...) and the gradient g (N, out, ...) of the same sum
// of products, each the derivative of the others; batch and channels in the geometry are filled in from the operands.

/// x * w + bias: the convolution. `bias` may be null.
TensorRef conv_forward(const Tensor& x, const Tensor& w, const Tensor* bias, const ConvGeometry& geometry, int spatial);
/// The x of this g: the derivative with respect to the data, and the transposed convolution.
TensorRef conv_data(const Tensor& g, const Tensor& w, const Tensor* bias, const ConvGeometry& geometry, int spatial);
/// The w of this g; `blocked`: its numbers may lie in that layout.
TensorRef conv_weight(const Tensor& g, const Tensor& x, const ConvGeometry& geometry, int spatial, bool blocked);

}  // namespace rushlight
