// Convolution of each channel by itself: each tap adds a shifted plane.
#include <algorithm>

#include "kernels/convolution.h"
#include "kernels/parallel.h"

namespace rushlight {
namespace {

/// Calls f(output, input, n, step, tap) for each run of n outputs whose inputs, `step` apart, lie inside at that tap.
template <class F>
void for_runs(const ConvGeometry& c, F&& f) {
  for (std::int64_t a = 0; a < c.kernel[0]; ++a)
    for (std::int64_t b = 0; b < c.kernel[1]; ++b)
      for (std::int64_t k = 0; k < c.kernel[2]; ++k) {
        TapRange depth(c, 0, a), height(c, 1, b), width(c, 2, k);
        std::int64_t n = width.last - width.first, tap = (a * c.kernel[1] + b) * c.kernel[2] + k;
        if (n <= 0) continue;
        for (std::int64_t z = depth.first; z < depth.last; ++z)
          for (std::int64_t y = height.first; y < height.last; ++y) {
            std::int64_t row = (z * c.stride[0] + depth.offset) * c.in[1] + y * c.stride[1] + height.offset;
            f((z * c.out[1] + y) * c.out[2] + width.first, row * c.in[2] + width.first * c.stride[2] + width.offset, n,
              c.stride[2], tap);
          }
      }
}

/// Calls f(n, channel) in parallel.
template <class F>
void for_planes(const ConvGeometry& c, std::int64_t count, F&& f) {
  std::int64_t work = std::max<std::int64_t>(
      1, c.out_space() * c.taps() * (c.batch * c.in_channels / std::max<std::int64_t>(count, 1)));
  parallel_for(count, std::max<std::int64_t>(1, (1 << 16) / work), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) f(i);
  });
}

template <class T>
void forward(const ConvGeometry& c, const T* x, const T* w, const T* bias, T* y) {
  for_planes(c, c.batch * c.in_channels, [&](std::int64_t i) {
    std::int64_t channel = i % c.in_channels;
    const T *from = x + i * c.in_space(), *taps = w + channel * c.taps();
    T* to = y + i * c.out_space();
    std::fill(to, to + c.out_space(), bias ? bias[channel] : T(0));
    for_runs(c, [&](std::int64_t out, std::int64_t in, std::int64_t n, std::int64_t step, std::int64_t tap) {
      T factor = taps[tap];
      if (step == 1)
        for (std::int64_t k = 0; k < n; ++k) to[out + k] += factor * from[in + k];
      else
        for (std::int64_t k = 0; k < n; ++k) to[out + k] += factor * from[in + k * step];
    });
  });
}

template <class T>
void backward_data(const ConvGeometry& c, const T* gy, const T* w, T* gx) {
  for_planes(c, c.batch * c.in_channels, [&](std::int64_t i) {
    const T *from = gy + i * c.out_space(), *taps = w + i % c.in_channels * c.taps();
    T* to = gx + i * c.in_space();
    std::fill(to, to + c.in_space(), T(0));
    for_runs(c, [&](std::int64_t out, std::int64_t in, std::int64_t n, std::int64_t step, std::int64_t tap) {
      T factor = taps[tap];
      for (std::int64_t k = 0; k < n; ++k) to[in + k * step] += factor * from[out + k];
    });
  });
}

template <class T>
void backward_weight(const ConvGeometry& c, const T* gy, const T* x, T* gw) {
  for_planes(c, c.in_channels, [&](std::int64_t channel) {
    T* taps = gw + channel * c.taps();
    std::fill(taps, taps + c.taps(), T(0));
    for (std::int64_t i = channel; i < c.batch * c.in_channels; i += c.in_channels) {
      const T *g = gy + i * c.out_space(), *from = x + i * c.in_space();
      for_runs(c, [&](std::int64_t out, std::int64_t in, std::int64_t n, std::int64_t step, std::int64_t tap) {
        T lanes[8] = {};
        std::int64_t k = 0;
        for (; k + 8 <= n; k += 8)
          for (int l = 0; l < 8; ++l) lanes[l] += g[out + k + l] * from[in + (k + l) * step];
        for (; k < n; ++k) lanes[k % 8] += g[out + k] * from[in + k * step];
        taps[tap] += ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
      });
    }
  });
}

template <class F>
void visit(DType d, F&& f) {
  d == DType::Float32 ? f.template operator()<float>() : f.template operator()<double>();
}

}  // namespace

const ConvolutionBackend depthwise_convolution{
    "depthwise",
    [](DType d, const ConvGeometry& c) { return c.depthwise() && (d == DType::Float32 || d == DType::Float64); },
    [](DType d, const ConvGeometry& c, const void* x, const void* w, const void* bias, void* y) {
      visit(d, [&]<class T>() {
        forward(c, static_cast<const T*>(x), static_cast<const T*>(w), static_cast<const T*>(bias), static_cast<T*>(y));
      });
    },
    [](DType d, const ConvGeometry& c, const void* gy, const void* w, void* gx) {
      visit(d, [&]<class T>() {
        backward_data(c, static_cast<const T*>(gy), static_cast<const T*>(w), static_cast<T*>(gx));
      });
    },
    [](DType d, const ConvGeometry& c, const void* gy, const void* x, void* gw) {
      visit(d, [&]<class T>() {
        backward_weight(c, static_cast<const T*>(gy), static_cast<const T*>(x), static_cast<T*>(gw));
      });
    }};

}  // namespace rushlight
