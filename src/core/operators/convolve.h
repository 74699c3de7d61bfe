// The three computations of a convolution (operators/conv.h) without history: by oneDNN in its layouts where it has a
// fast way, else in rows by our own kernels.
#pragma once

#include "kernels/convolution.h"
#include "tensor/tensor.h"

namespace rushlight {

TensorRef convolve_forward(const Tensor& x, const Tensor& w, const Tensor* bias, const ConvGeometry& c, int spatial);
TensorRef convolve_data(const Tensor& g, const Tensor& w, const ConvGeometry& c, int spatial);
/// `blocked`: the gradient may lie as weights do that oneDNN has laid out.
TensorRef convolve_weight(const Tensor& g, const Tensor& x, const ConvGeometry& c, int spatial, bool blocked);

}  // namespace rushlight
