#include "kernels/convolution.h"

#include <algorithm>

namespace rushlight {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

}  // namespace

bool ConvGeometry::pointwise() const {
  for (int d = 0; d < 3; ++d)
    if (kernel[d] != 1 || stride[d] != 1 || padding[d] != 0 || in[d] != out[d]) return false;
  return true;
}

TapRange::TapRange(const ConvGeometry& c, int d, std::int64_t tap) : offset(tap * c.dilation[d] - c.padding[d]) {
  first = std::min(ceil_div(-offset, c.stride[d]), c.out[d]);
  last = std::clamp(ceil_div(c.in[d] - offset, c.stride[d]), first, c.out[d]);
}

const ConvolutionBackend& convolution_backend(DType dtype, const ConvGeometry& geometry) {
  if (depthwise_convolution.takes(dtype, geometry)) return depthwise_convolution;
  return gemm_convolution;
}

}  // namespace rushlight
