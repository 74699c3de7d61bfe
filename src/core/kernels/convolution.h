// Convolution over memory: forward, backward to the data and backward to the weights, in one to three dimensions.
//
// All arrays are row-major: data (batch, channels, space), weights (out_channels, in_channels / groups, kernel). A
// backend offers the three computations for the types and geometries that it takes; the last in the table takes all.
#pragma once

#include "tensor/dtype.h"

namespace rushlight {

/// Always three dimensions of space; those that a convolution has not are 1, in front. Padding is what lies before the
/// first element; what lies behind the last one follows from `out`.
struct ConvGeometry {
  std::int64_t batch, groups, in_channels, out_channels;
  std::int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];

  std::int64_t in_space() const { return in[0] * in[1] * in[2]; }
  std::int64_t out_space() const { return out[0] * out[1] * out[2]; }
  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  std::int64_t group_in() const { return in_channels / groups; }
  std::int64_t group_out() const { return out_channels / groups; }
  /// Each output is a mixture of the channels at its own place: the data serve as they are.
  bool pointwise() const;
  bool depthwise() const { return group_in() == 1 && group_out() == 1 && groups > 1; }
};

struct ConvolutionBackend {
  const char* name;
  bool (*takes)(DType dtype, const ConvGeometry& geometry);
  /// y = x * w + bias (null: none)
  void (*forward)(DType dtype, const ConvGeometry& geometry, const void* x, const void* w, const void* bias, void* y);
  /// gx = the gradient of x, of y's gradient gy: also the transposed convolution of gy
  void (*backward_data)(DType dtype, const ConvGeometry& geometry, const void* gy, const void* w, void* gx);
  void (*backward_weight)(DType dtype, const ConvGeometry& geometry, const void* gy, const void* x, void* gw);
};

/// The first backend that takes the convolution.
const ConvolutionBackend& convolution_backend(DType dtype, const ConvGeometry& geometry);
/// Matrix products over unfolded windows (convolution_gemm.cpp), and sums over shifted planes
/// (convolution_depthwise.cpp).
extern const ConvolutionBackend gemm_convolution, depthwise_convolution;

/// The outputs [first, last) along dimension d whose input at `tap` lies inside; out = last = first where none does.
struct TapRange {
  std::int64_t first, last, offset;  ///< input = output * stride + offset
  TapRange(const ConvGeometry& c, int d, std::int64_t tap);
};

}  // namespace rushlight
