// Maxima and means over windows of planes, in one to three dimensions. Rows of a window are combined first, a whole
// line of the plane at a time, then the elements of the line that each window covers.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/dtype.h"

namespace rushlight {

/// The windows along one dimension: output i covers first[i], first[i] + step, ... (count[i] of them), all inside.
struct WindowLine {
  std::int64_t in = 1, step = 1;
  std::vector<std::int64_t> first, count;
  std::vector<double> weight;  ///< 1 / (the extent that a mean divides by)
  std::int64_t out() const { return std::int64_t(first.size()); }
};

/// The windows of planes (z, y, x); missing dimensions have one window over one element.
struct Windows {
  WindowLine line[3];
  double scale = 1;  ///< multiplies every mean: 1 / divisor where one number divides them all
  std::int64_t in_space() const { return line[0].in * line[1].in * line[2].in; }
  std::int64_t out_space() const { return line[0].out() * line[1].out() * line[2].out(); }
};

/// values and their places in the plane, for each of `planes` planes. A NaN is the largest, the last one of several; of
/// equal numbers the first one is taken.
void window_max(DType dtype, const Windows& windows, std::int64_t planes, const void* x, void* values,
                std::int64_t* places);
/// y = means over the windows.
void window_mean(DType dtype, const Windows& windows, std::int64_t planes, const void* x, void* y);
/// gx = the transpose of that map, applied to gy.
void window_mean_transpose(DType dtype, const Windows& windows, std::int64_t planes, const void* gy, void* gx);

// float32 with channels last: (sample, place, channel)

/// As window_max; no window may be empty. The lock of the interpreter is kept.
void window_max_columns(const Windows& windows, std::int64_t samples, std::int64_t channels, const float* x,
                        float* values, std::int64_t* places);
/// gx = gy at the places of the maxima, added up.
void window_max_columns_transpose(const Windows& windows, std::int64_t samples, std::int64_t channels,
                                  const std::int64_t* places, const float* gy, float* gx);
bool has_empty_window(const Windows& windows);

}  // namespace rushlight
