// Maxima over windows of data with channels last: whole pixels are compared.
#include <algorithm>
#include <memory>

#include "kernels/cpu.h"
#include "kernels/parallel.h"
#include "kernels/pool.h"

namespace rushlight {

#define RUSHLIGHT_DECLARE(isa)                                                                                     \
  namespace isa {                                                                                                  \
  void max_into(const float* x, std::int64_t n, std::int32_t here, bool first, float* best, std::int32_t* places); \
  }
RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE)
#undef RUSHLIGHT_DECLARE

namespace {

using MaxInto = void (*)(const float*, std::int64_t, std::int32_t, bool, float*, std::int32_t*);

/// Calls f(place) for each place of the plane in window (z, y, x), in order.
template <class F>
void for_places(const Windows& w, std::size_t z, std::size_t y, std::size_t x, F&& f) {
  const WindowLine &depth = w.line[0], &height = w.line[1], &width = w.line[2];
  for (std::int64_t a = 0; a < depth.count[z]; ++a)
    for (std::int64_t b = 0; b < height.count[y]; ++b)
      for (std::int64_t c = 0; c < width.count[x]; ++c)
        f(((depth.first[z] + a * depth.step) * height.in + height.first[y] + b * height.step) * width.in +
          width.first[x] + c * width.step);
}

}  // namespace

bool has_empty_window(const Windows& w) {
  for (auto& line : w.line)
    for (auto count : line.count)
      if (count == 0) return true;
  return false;
}

void window_max_columns(const Windows& w, std::int64_t samples, std::int64_t channels, const float* x, float* values,
                        std::int64_t* places) {
  const MaxInto compare = RUSHLIGHT_BEST(max_into);
  std::int64_t high = w.line[1].out(), wide = w.line[2].out(), lines = w.line[0].out() * high;
  auto line = [&](std::int64_t i, std::int32_t* place) {
    const float* plane = x + i / lines * w.in_space() * channels;
    auto z = std::size_t(i % lines / high), y = std::size_t(i % high);
    for (std::int64_t o = 0; o < wide; ++o) {
      std::int64_t to = (i * wide + o) * channels;
      bool first = true;
      for_places(w, z, y, std::size_t(o), [&](std::int64_t at) {
        compare(plane + at * channels, channels, std::int32_t(at), first, values + to, place);
        first = false;
      });
      for (std::int64_t k = 0; k < channels; ++k) places[to + k] = place[k];
    }
  };
  parallel_for(
      samples * lines, std::max<std::int64_t>(1, (1 << 13) / (wide * channels)),
      [&](std::int64_t begin, std::int64_t end) {
        auto place = std::make_unique<std::int32_t[]>(std::size_t(channels));
        for (std::int64_t i = begin; i < end; ++i) line(i, place.get());
      },
      true);
}

void window_max_columns_transpose(const Windows& w, std::int64_t samples, std::int64_t channels,
                                  const std::int64_t* places, const float* gy, float* gx) {
  const std::int64_t together = samples < 4 ? 16 : 64;  // channels: whole cache lines, and enough tasks
  std::int64_t parts = (channels + together - 1) / together, in = w.in_space(), out = w.out_space();
  parallel_for(
      samples * parts, std::max<std::int64_t>(1, (1 << 14) / ((in + out) * together)),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          std::int64_t sample = i / parts, first = i % parts * together, n = std::min(together, channels - first);
          float* to = gx + sample * in * channels + first;
          for (std::int64_t p = 0; p < in; ++p) std::fill_n(to + p * channels, n, 0.0f);
          for (std::int64_t o = 0; o < out; ++o) {
            std::int64_t from = (sample * out + o) * channels + first;
            for (std::int64_t k = 0; k < n; ++k) to[places[from + k] * channels + k] += gy[from + k];
          }
        }
      },
      true);
}

}  // namespace rushlight
