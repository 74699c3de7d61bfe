// Convolution by matrix products: the windows of a block of output positions are unfolded into the columns of a matrix
// that stays in the cache, and multiplied by the weights. Blocks and tasks depend on sizes alone.
#include <algorithm>
#include <complex>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/convolution.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"

namespace rushlight {
namespace {

constexpr std::int64_t block_bytes = 1 << 18;  ///< an unfolded block: a part of a core's own cache
constexpr std::int64_t least_columns = 64, most_columns = 2048;
constexpr std::int64_t least_tasks = 8;  ///< work is cut at least so far, where its sizes allow

/// Memory that a thread keeps for its unfolded blocks.
template <class T>
T* scratch(int slot, std::int64_t n) {
  thread_local struct {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
  } kept[2];
  auto& s = kept[slot];
  std::size_t bytes = std::size_t(n) * sizeof(T);
  if (s.size < bytes) {
    s.bytes = std::make_unique_for_overwrite<std::byte[]>(bytes);
    s.size = bytes;
  }
  return reinterpret_cast<T*>(s.bytes.get());
}

/// Output positions [begin, end) of all images, counted through the batch.
struct Block {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

/// Blocks of output positions: parts of one image, or several whole small images.
struct Blocks {
  std::int64_t space, batch, in_image = 1, images = 1, count;
  Blocks(const ConvGeometry& c, std::int64_t rows, std::int64_t item) : space(c.out_space()), batch(c.batch) {
    std::int64_t columns =
        std::clamp(block_bytes / std::max<std::int64_t>(rows * item, 1), least_columns, most_columns);
    if (space >= columns)
      in_image = (space + columns - 1) / columns;
    else
      images =
          std::clamp<std::int64_t>(columns / std::max<std::int64_t>(space, 1), 1, std::max<std::int64_t>(batch, 1));
    count = in_image > 1 ? batch * in_image : (batch + images - 1) / images;
  }
  Block operator[](std::int64_t i) const {
    if (in_image == 1) return {i * images * space, std::min(batch, (i + 1) * images) * space};
    std::int64_t image = i / in_image, part = i % in_image, step = (space + in_image - 1) / in_image;
    return {image * space + std::min(space, part * step), image * space + std::min(space, (part + 1) * step)};
  }
};

template <class T>
class Unfolded {
 public:
  explicit Unfolded(const ConvGeometry& c) : c(c), space(c.out_space()), whole(c.pointwise()) {}

  /// The windows of channels [channel, channel + channels) at the block's positions: row (channel, tap), column
  /// position.
  MatrixView operator()(const T* x, std::int64_t channel, std::int64_t channels, Block b) const {
    if (whole && one_image(b)) {
      const T* at = x + (b.begin / space * c.in_channels + channel) * space + b.begin % space;
      return {const_cast<T*>(at), channels, b.size(), space, 1};
    }
    std::int64_t rows = channels * c.taps();
    T* columns = scratch<T>(0, rows * b.size());
    for_images(b, [&](std::int64_t image, std::int64_t begin, std::int64_t end, std::int64_t column) {
      const T* planes = x + (image * c.in_channels + channel) * c.in_space();
      for_windows(channels, begin, end,
                  [&](std::int64_t row, std::int64_t plane, const TapRange& width, std::int64_t at, std::int64_t line,
                      std::int64_t from, std::int64_t to) {
                    T* out = columns + row * b.size() + column + at;
                    std::int64_t first = line < 0 ? to : std::clamp(width.first, from, to),
                                 last = line < 0 ? to : std::clamp(width.last, first, to);
                    std::fill(out, out + (first - from), T(0));
                    const T* in = planes + plane * c.in_space() + line * c.in[2] + width.offset;
                    if (c.stride[2] == 1)
                      std::copy(in + first, in + last, out + (first - from));
                    else
                      for (std::int64_t i = first; i < last; ++i) out[i - from] = in[i * c.stride[2]];
                    std::fill(out + (last - from), out + (to - from), T(0));
                  });
    });
    return {columns, rows, b.size(), b.size(), 1};
  }

  /// Adds columns back to the places that they were read from.
  void fold(const T* columns, T* x, std::int64_t channel, std::int64_t channels, Block b) const {
    for_images(b, [&](std::int64_t image, std::int64_t begin, std::int64_t end, std::int64_t column) {
      T* planes = x + (image * c.in_channels + channel) * c.in_space();
      for_windows(channels, begin, end,
                  [&](std::int64_t row, std::int64_t plane, const TapRange& width, std::int64_t at, std::int64_t line,
                      std::int64_t from, std::int64_t to) {
                    if (line < 0) return;
                    const T* in = columns + row * b.size() + column + at - from;
                    T* out = planes + plane * c.in_space() + line * c.in[2] + width.offset;
                    std::int64_t first = std::clamp(width.first, from, to), last = std::clamp(width.last, first, to);
                    if (c.stride[2] == 1)
                      for (std::int64_t i = first; i < last; ++i) out[i] += in[i];
                    else
                      for (std::int64_t i = first; i < last; ++i) out[i * c.stride[2]] += in[i];
                  });
    });
  }

  /// The block's part of channels [channel, channel + channels) of an array of outputs; gathered where it spans images.
  MatrixView outputs(const T* y, std::int64_t channel, std::int64_t channels, Block b) const {
    if (one_image(b)) return {const_cast<T*>(at_output(y, channel, b.begin)), channels, b.size(), space, 1};
    T* rows = scratch<T>(1, channels * b.size());
    for_images(b, [&](std::int64_t image, std::int64_t, std::int64_t, std::int64_t column) {
      for (std::int64_t k = 0; k < channels; ++k)
        std::copy_n(at_output(y, channel + k, image * space), space, rows + k * b.size() + column);
    });
    return {rows, channels, b.size(), b.size(), 1};
  }
  /// Writes such a gathered part back, with a bias for each channel.
  void spread(const T* rows, T* y, std::int64_t channel, std::int64_t channels, Block b, const T* bias) const {
    for_images(b, [&](std::int64_t image, std::int64_t, std::int64_t, std::int64_t column) {
      for (std::int64_t k = 0; k < channels; ++k) {
        const T* from = rows + k * b.size() + column;
        T *to = const_cast<T*>(at_output(y, channel + k, image * space)), shift = bias ? bias[channel + k] : T(0);
        for (std::int64_t i = 0; i < space; ++i) to[i] = from[i] + shift;
      }
    });
  }
  bool one_image(Block b) const { return b.begin / space == (b.end - 1) / space; }
  const T* at_output(const T* y, std::int64_t channel, std::int64_t position) const {
    return y + (position / space * c.out_channels + channel) * space + position % space;
  }

 private:
  /// f(image, first position, last position, column) for each image of the block.
  template <class F>
  void for_images(Block b, F&& f) const {
    for (std::int64_t at = b.begin; at < b.end;) {
      std::int64_t image = at / space, end = std::min(b.end, (image + 1) * space);
      f(image, at - image * space, end - image * space, at - b.begin);
      at = end;
    }
  }
  /// For each channel, tap and line of output positions within [begin, end): f(row, channel, width, at, line, from,
  /// to), where `line` is the input line (z, y) as one number, -1 outside, `from` and `to` the positions in the output
  /// line, and `at` the distance of the first one from `begin`.
  template <class F>
  void for_windows(std::int64_t channels, std::int64_t begin, std::int64_t end, F&& f) const {
    std::int64_t wide = c.out[2], taps = c.taps();
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      std::int64_t k[3] = {tap / (c.kernel[1] * c.kernel[2]), tap / c.kernel[2] % c.kernel[1], tap % c.kernel[2]};
      TapRange width(c, 2, k[2]);
      for (std::int64_t channel = 0; channel < channels; ++channel)
        for (std::int64_t p = begin; p < end;) {
          std::int64_t row = p / wide, from = p - row * wide, to = std::min(wide, end - row * wide);
          std::int64_t z = row / c.out[1] * c.stride[0] + k[0] * c.dilation[0] - c.padding[0],
                       y = row % c.out[1] * c.stride[1] + k[1] * c.dilation[1] - c.padding[1];
          bool inside = z >= 0 && z < c.in[0] && y >= 0 && y < c.in[1];
          f(channel * taps + tap, channel, width, p - begin, inside ? z * c.in[1] + y : -1, from, to);
          p = row * wide + to;
        }
    }
  }

  const ConvGeometry& c;
  std::int64_t space;
  bool whole;
};

/// The columns of group g's weights that belong to channels [channel, channel + channels) of the group.
template <class T>
MatrixView weights_of(const ConvGeometry& c, const T* w, std::int64_t g, std::int64_t channel, std::int64_t channels) {
  std::int64_t row = c.group_in() * c.taps();
  return {const_cast<T*>(w) + g * c.group_out() * row + channel * c.taps(), c.group_out(), channels * c.taps(), row, 1};
}
MatrixView turned(const MatrixView& m) { return {m.data, m.cols, m.rows, m.col_stride, m.row_stride}; }

/// Runs tasks in parallel, or one after the other with products on several threads where they are few.
template <class F>
void run_tasks(const ConvGeometry& c, std::int64_t count, F&& f) {
  double work = double(c.batch) * double(c.out_space()) * double(c.out_channels) * double(c.group_in()) *
                double(c.taps()) / double(std::max<std::int64_t>(count, 1));
  auto grain = std::max<std::int64_t>(1, std::int64_t(double(1 << 18) / std::max(work, 1.0)));
  auto run = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) f(i);
  };
  if (count >= num_threads())
    parallel_for(count, grain, run);
  else
    run(0, count);
}

/// The channels of a group in parts, so that there are enough tasks.
struct Parts {
  std::int64_t channels, each, count;
  Parts(std::int64_t channels, std::int64_t tasks, std::int64_t least) : channels(channels) {
    std::int64_t wanted = std::max<std::int64_t>(1, (least_tasks + tasks - 1) / std::max<std::int64_t>(tasks, 1));
    each = std::max({std::int64_t(1), std::min(least, channels), (channels + wanted - 1) / wanted});
    count = (channels + each - 1) / each;
  }
  std::int64_t begin(std::int64_t i) const { return i * each; }
  std::int64_t size(std::int64_t i) const { return std::min(each, channels - i * each); }
};

template <class T>
void forward(DType d, const ConvGeometry& c, const T* x, const T* w, const T* bias, T* y) {
  Unfolded<T> unfolded(c);
  std::int64_t ins = c.group_in(), outs = c.group_out();
  Blocks blocks(c, ins * c.taps(), sizeof(T));
  run_tasks(c, c.groups * blocks.count, [&](std::int64_t task) {
    std::int64_t g = task / blocks.count;
    Block b = blocks[task % blocks.count];
    if (b.size() == 0) return;
    MatrixView columns = unfolded(x, g * ins, ins, b), weights = weights_of(c, w, g, 0, ins);
    if (!unfolded.one_image(b)) {
      T* rows = scratch<T>(1, outs * b.size());
      gemm(d, weights, columns, {rows, outs, b.size(), b.size(), 1});
      return unfolded.spread(rows, y, g * outs, outs, b, bias);
    }
    MatrixView out = unfolded.outputs(y, g * outs, outs, b);
    if (bias)
      for (std::int64_t k = 0; k < outs; ++k)
        std::fill_n(static_cast<T*>(out.data) + k * out.row_stride, out.cols, bias[g * outs + k]);
    gemm(d, weights, columns, out, 1.0, bias ? 1.0 : 0.0);
  });
}

template <class T>
void backward_data(DType d, const ConvGeometry& c, const T* gy, const T* w, T* gx) {
  Unfolded<T> unfolded(c);
  std::int64_t ins = c.group_in(), outs = c.group_out(), space = c.in_space();
  Blocks blocks(c, ins * c.taps(), sizeof(T));
  std::int64_t batches = (c.batch + blocks.images - 1) / blocks.images;  // an image's blocks add to the same places
  Parts parts(ins, c.groups * batches, 8);
  run_tasks(c, batches * c.groups * parts.count, [&](std::int64_t task) {
    std::int64_t part = task % parts.count, g = task / parts.count % c.groups, batch = task / parts.count / c.groups;
    std::int64_t channel = parts.begin(part), channels = parts.size(part), rows = channels * c.taps();
    MatrixView weights = turned(weights_of(c, w, g, channel, channels));
    std::int64_t last_image = std::min(c.batch, (batch + 1) * blocks.images);
    bool direct = c.pointwise() && blocks.images == 1;  // each number is written once
    if (!direct)
      for (std::int64_t n = batch * blocks.images; n < last_image; ++n)
        std::fill_n(gx + (n * c.in_channels + g * ins + channel) * space, channels * space, T(0));
    for (std::int64_t i = batch * blocks.in_image; i < (batch + 1) * blocks.in_image; ++i) {
      Block b = blocks[i];
      if (b.size() == 0) continue;
      MatrixView g_rows = unfolded.outputs(gy, g * outs, outs, b);
      if (direct) {
        T* to = gx + (b.begin / space * c.in_channels + g * ins + channel) * space + b.begin % space;
        gemm(d, weights, g_rows, {to, rows, b.size(), space, 1});
        continue;
      }
      T* columns = scratch<T>(0, rows * b.size());
      gemm(d, weights, g_rows, {columns, rows, b.size(), b.size(), 1});
      unfolded.fold(columns, gx, g * ins + channel, channels, b);
    }
  });
}

template <class T>
void backward_weight(DType d, const ConvGeometry& c, const T* gy, const T* x, T* gw) {
  Unfolded<T> unfolded(c);
  std::int64_t ins = c.group_in(), outs = c.group_out(), size = c.out_channels * ins * c.taps();
  Parts parts(ins, c.groups, 8);
  Blocks blocks(c, parts.each * c.taps(), sizeof(T));
  // few channels: blocks are shared out over slabs, whose sums are then joined
  std::int64_t slabs =
      std::clamp<std::int64_t>(least_tasks / (c.groups * parts.count), 1, std::max<std::int64_t>(blocks.count, 1));
  std::vector<T> sums(slabs > 1 ? std::size_t(slabs * size) : 0);
  run_tasks(c, c.groups * parts.count * slabs, [&](std::int64_t task) {
    std::int64_t slab = task % slabs, part = task / slabs % parts.count, g = task / slabs / parts.count;
    std::int64_t channel = parts.begin(part), channels = parts.size(part);
    MatrixView to = weights_of(c, slabs > 1 ? sums.data() + slab * size : gw, g, channel, channels);
    std::int64_t begin = blocks.count * slab / slabs, end = blocks.count * (slab + 1) / slabs;
    bool first = true;
    for (std::int64_t i = begin; i < end; ++i) {
      Block b = blocks[i];
      if (b.size() == 0) continue;
      MatrixView columns = unfolded(x, g * ins + channel, channels, b);
      gemm(d, unfolded.outputs(gy, g * outs, outs, b), turned(columns), to, 1.0, first ? 0.0 : 1.0);
      first = false;
    }
    if (first)
      for (std::int64_t k = 0; k < to.rows; ++k)
        std::fill_n(static_cast<T*>(to.data) + k * to.row_stride, to.cols, T(0));
  });
  if (slabs == 1) return;
  std::copy_n(sums.data(), size, gw);
  for (std::int64_t s = 1; s < slabs; ++s)
    for (std::int64_t i = 0; i < size; ++i) gw[i] += sums[std::size_t(s * size + i)];
}

/// Types that products are computed in; halves are converted before.
template <class F>
void visit(DType d, F&& f) {
  visit_dtype(d, [&]<class T>() {
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      fail(ErrorKind::NotImplemented, "\"convolution\" not implemented for '", info(d).scalar_name, "'");
    else
      f.template operator()<T>();
  });
}

}  // namespace

const ConvolutionBackend gemm_convolution{
    "gemm", [](DType, const ConvGeometry&) { return true; },
    [](DType d, const ConvGeometry& c, const void* x, const void* w, const void* bias, void* y) {
      visit(d, [&]<class T>() {
        forward(d, c, static_cast<const T*>(x), static_cast<const T*>(w), static_cast<const T*>(bias),
                static_cast<T*>(y));
      });
    },
    [](DType d, const ConvGeometry& c, const void* gy, const void* w, void* gx) {
      visit(d, [&]<class T>() {
        backward_data(d, c, static_cast<const T*>(gy), static_cast<const T*>(w), static_cast<T*>(gx));
      });
    },
    [](DType d, const ConvGeometry& c, const void* gy, const void* x, void* gw) {
      visit(d, [&]<class T>() {
        backward_weight(d, c, static_cast<const T*>(gy), static_cast<const T*>(x), static_cast<T*>(gw));
      });
    }};

}  // namespace rushlight
