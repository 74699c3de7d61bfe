// Pooling: maxima and means over windows, of given sizes or of given number.
#include "kernels/pool.h"

#include <array>
#include <limits>
#include <memory>
#include <optional>

#include "operators/layout.h"
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

using Pair = std::array<TensorRef, 2>;
using SharedWindows = std::shared_ptr<const Windows>;

std::int64_t planes_of(const Tensor& x, int spatial) {
  return count_elements(x.sizes().first(std::size_t(x.ndim - spatial)));
}

/// The sizes of a result: those before the planes, then the planes'.
Dims pooled_sizes(const Tensor& x, const Windows& w, int spatial, bool input = false) {
  Dims sizes(x.sizes().first(std::size_t(x.ndim - spatial)));
  for (int d = 3 - spatial; d < 3; ++d) sizes.push_back(input ? w.line[d].in : w.line[d].out());
  return sizes;
}

// ---- the two linear maps of means, each the other's derivative

struct MeanNames {
  const char *forward, *backward;
};

TensorRef mean_transposed(const Tensor& g, const SharedWindows& w, int spatial, MeanNames names);

TensorRef mean_pooled(const Tensor& x, const SharedWindows& w, int spatial, MeanNames names) {
  TensorRef out = empty(pooled_sizes(x, *w, spatial), x.dtype);
  window_mean(x.dtype, *w, planes_of(x, spatial), packed(x)->read(), out->write());
  return record(names.forward, std::move(out), {&x}, {},
                [w, spatial, names](Vjp& v) { v.set(0, mean_transposed(*v.grad(), w, spatial, names)); });
}

TensorRef mean_transposed(const Tensor& g, const SharedWindows& w, int spatial, MeanNames names) {
  TensorRef out = empty(pooled_sizes(g, *w, spatial, true), g.dtype);
  window_mean_transpose(g.dtype, *w, planes_of(g, spatial), packed(g)->read(), out->write());
  return record(names.backward, std::move(out), {&g}, {},
                [w, spatial, names](Vjp& v) { v.set(0, mean_pooled(*v.grad(), w, spatial, names)); });
}

/// Halves are added in float.
TensorRef mean_of(const Tensor& x, const SharedWindows& w, int spatial, MeanNames names) {
  if (is_half(x.dtype)) return cast(*mean_pooled(*cast(x, DType::Float32), w, spatial, names), x.dtype);
  return mean_pooled(x, w, spatial, names);
}

// ---- maxima

/// A plane's elements in one dimension: the last `spatial` dimensions joined.
TensorRef flat_planes(const Tensor& t, int spatial) {
  return reshape(t, Dims{planes_of(t, spatial), count_elements(t.sizes().last(std::size_t(spatial)))});
}

/// Values and places of numbers that lie with channels last.
Pair max_of_columns(const Tensor& x, const Windows& w, const Dims& sizes) {
  auto fresh = [&](DType d) {
    Arrangement layout = channels_last(sizes, d);
    return layout ? empty_laid(sizes, d, layout) : empty(sizes, d);
  };
  Pair out{fresh(x.dtype), fresh(DType::Int64)};
  window_max_columns(w, x.size(0), x.size(1), read_laid_as<float>(x), write_laid_as<float>(*out[0]),
                     write_laid_as<std::int64_t>(*out[1]));
  return out;
}

/// The gradient of such numbers: null where it must be recorded or does not lie so.
TensorRef max_of_columns_vjp(const TensorRef& g_, const Tensor& places, const Windows& w, IntSpan from) {
  Arrangement layout = channels_last(from, DType::Float32);
  if (differentiates() || g_->dtype != DType::Float32 || !layout ||
      layout_of(places).order != Arrangement::ChannelsLast)
    return nullptr;
  Arrangement own = channels_last(g_->sizes(), g_->dtype);
  TensorRef g = layout_of(*g_) == own ? g_ : laid_copy(*packed(*g_), own), out = empty_laid(from, g->dtype, layout);
  window_max_columns_transpose(w, from[0], from[1], read_laid_as<std::int64_t>(places), read_laid_as<float>(*g),
                               write_laid_as<float>(*out));
  return out;
}

Pair max_pooled(const Tensor& x, const SharedWindows& shared, int spatial, const char* node) {
  const Windows& w = *shared;
  Dims sizes = pooled_sizes(x, w, spatial);
  if (is_half(x.dtype)) {
    Pair wide = max_pooled(*cast(x, DType::Float32), shared, spatial, node);
    return {cast(*wide[0], x.dtype), wide[1]};
  }
  bool in_columns = x.dtype == DType::Float32 && x.ndim == spatial + 2 && w.out_space() > 1 &&
                    layout_of(x).order == Arrangement::ChannelsLast && !has_empty_window(w);
  Pair out = in_columns ? max_of_columns(x, w, sizes) : Pair{empty(sizes, x.dtype), empty(sizes, DType::Int64)};
  if (!in_columns)
    window_max(x.dtype, w, planes_of(x, spatial), packed(x)->read(), out[0]->write(), out[1]->write_as<std::int64_t>());
  const Tensor* inputs[] = {&x};
  Save saves[] = {save_other(out[1])};
  record_many(node, out, inputs, saves, [from = Dims(x.sizes()), spatial, shared](Vjp& v) {
    if (!v.grad(0)) return;
    if (v.saved(0)->storage->layout)
      if (TensorRef g = max_of_columns_vjp(v.grad(0), *v.saved(0), *shared, from)) return v.set(0, g);
    TensorRef places = flat_planes(*v.saved(0), spatial), g = flat_planes(*v.grad(0), spatial);
    IntSpan plane = IntSpan(from).last(std::size_t(spatial));
    v.set(0, view(*scatter_along(*g, Dims{g->size(0), count_elements(plane)}, 1, *places), from));
  });
  return out;
}

/// Which numbers PyTorch pools: bool never, integers by windows of given sizes only.
void check_pooled_type(const Tensor& x, bool integers, const char* operation) {
  if (x.dtype == DType::Bool || (is_integral(x.dtype) && !integers))
    fail(ErrorKind::NotImplemented, '"', operation, "\" not implemented for '", info(x.dtype).scalar_name, "'");
}

// ---- windows of given sizes

struct Sizes {
  Dims kernel, stride, padding, dilation;
  bool ceil_mode;
};

const char* counted(int n) { return n == 1 ? "one int" : n == 2 ? "two ints" : "three ints"; }

Dims spread(const Dims& given, int n, const char* operation, const char* what) {
  check(given.size() == 1 || given.size() == n, operation, ": ", what, " must either be a single int, or a tuple of ",
        counted(n));
  return given.size() == n ? given : Dims(n, given[0]);
}

Sizes checked_sizes(const Dims& kernel, const Dims& stride, const Dims& padding, const Dims& dilation, bool ceil_mode,
                    int n, const char* operation) {
  Sizes s{spread(kernel, n, operation, "kernel_size"),
          {},
          spread(padding, n, operation, "padding"),
          spread(dilation, n, operation, "dilation"),
          ceil_mode};
  s.stride = stride.empty() ? s.kernel : spread(stride, n, operation, "stride");
  for (int i = 0; i < n; ++i) {
    check(s.stride[i] != 0, "stride should not be zero");
    check(s.kernel[i] > 0 && s.stride[i] > 0, operation,
          ": kernel size and stride should be greater than zero, but got ", s.kernel[i], " and ", s.stride[i]);
    check(s.dilation[i] > 0, "dilation should be greater than zero, but got ", s.dilation[i]);
    check(s.padding[i] >= 0, "pad must be non-negative, but got pad: ", s.padding[i]);
    check(s.padding[i] <= ((s.kernel[i] - 1) * s.dilation[i] + 1) / 2,
          "pad should be at most half of effective kernel size, but got pad=", s.padding[i],
          ", kernel_size=", s.kernel[i], " and dilation=", s.dilation[i]);
  }
  return s;
}

std::int64_t windows_along(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t pad,
                           std::int64_t dilation, bool ceil_mode) {
  std::int64_t reach = in + 2 * pad - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
  std::int64_t out = (reach < 0 ? -((-reach + stride - 1) / stride) : reach / stride) + 1;
  return ceil_mode && (out - 1) * stride >= in + pad ? out - 1 : out;  // the last window begins inside
}

WindowLine window_line(std::int64_t in, std::int64_t out, const Sizes& s, int i, bool include_pad) {
  WindowLine line;
  line.in = in, line.step = s.dilation[i];
  for (std::int64_t o = 0; o < out; ++o) {
    std::int64_t begin = o * s.stride[i] - s.padding[i],
                 first = begin < 0 ? begin + (-begin + line.step - 1) / line.step * line.step : begin;
    std::int64_t last = std::min(begin + (s.kernel[i] - 1) * line.step, in - 1),
                 count = last < first ? 0 : (last - first) / line.step + 1;
    std::int64_t padded = std::min(begin + s.kernel[i], in + s.padding[i]) - begin;
    line.first.push_back(first);
    line.count.push_back(count);
    line.weight.push_back(1.0 / double(include_pad ? padded : std::max<std::int64_t>(count, 1)));
  }
  return line;
}

constexpr const char* mean_names[] = {"avg_pool1d", "avg_pool2d", "avg_pool3d"};

void check_planes(const Tensor& x, int n, const char* operation) {
  auto kind = operation == mean_names[1] && x.ndim < 3 ? ErrorKind::Index : ErrorKind::Runtime;  // as PyTorch has it
  if (x.ndim != n + 1 && x.ndim != n + 2)
    fail(kind, operation, ": non-empty ", n + 1, "D or ", n + 2,
         "D (batch mode) tensor expected for input, but got: ", to_string(x.sizes()));
  for (int i = x.ndim == n + 2 ? 1 : 0; i < x.ndim; ++i)
    check(x.size(i) > 0, operation, ": Expected ", n + 1, "D or ", n + 2,
          "D (batch mode) tensor with optional 0 dim batch size for input, but got:", to_string(x.sizes()));
}

std::string by(std::int64_t channels, IntSpan space) {
  std::string out = "(" + std::to_string(channels);
  for (auto s : space) out += "x" + std::to_string(s);
  return out + ")";
}

SharedWindows sized_windows(const Tensor& x, int n, const Sizes& s, bool include_pad = false,
                            std::optional<std::int64_t> divisor = {}) {
  auto w = std::make_shared<Windows>();
  Dims out;
  bool fits = true;
  IntSpan in = x.sizes().last(std::size_t(n));
  for (int i = 0; i < n; ++i) {
    out.push_back(
        windows_along(in[std::size_t(i)], s.kernel[i], s.stride[i], s.padding[i], s.dilation[i], s.ceil_mode));
    fits &= out[i] > 0;
  }
  std::int64_t channels = x.size(x.ndim - n - 1);
  check(fits, "Given input size: ", by(channels, in), ". Calculated output size: ", by(channels, out),
        ". Output size is too small\nexpected windows of ", to_string(s.kernel), " to fit");
  for (int d = 0; d < 3; ++d) {
    int i = d - (3 - n);
    w->line[d] = i < 0 ? WindowLine{1, 1, {0}, {1}, {1.0}} : window_line(in[std::size_t(i)], out[i], s, i, include_pad);
    if (divisor) std::fill(w->line[d].weight.begin(), w->line[d].weight.end(), 1.0);
  }
  if (divisor) w->scale = 1.0 / double(*divisor);
  return w;
}

constexpr const char* max_nodes[] = {"MaxPool2DWithIndicesBackward0", "MaxPool2DWithIndicesBackward0",
                                     "MaxPool3DWithIndicesBackward0"};
constexpr const char* max_names[] = {"max_pool1d", "max_pool2d", "max_pool3d"};
constexpr MeanNames mean_nodes[] = {{"AvgPool2DBackward0", "AvgPool2DBackwardBackward0"},
                                    {"AvgPool2DBackward0", "AvgPool2DBackwardBackward0"},
                                    {"AvgPool3DBackward0", "AvgPool3DBackwardBackward0"}};

template <int n>
Pair max_pool_with_places(const Tensor& x, const Dims& kernel, const Dims& stride, const Dims& padding,
                          const Dims& dilation, bool ceil_mode) {
  const char* operation = max_names[n - 1];
  check_planes(x, n, operation);
  check_pooled_type(x, true, operation);
  Sizes s = checked_sizes(kernel, stride, padding, dilation, ceil_mode, n, operation);
  return max_pooled(x, sized_windows(x, n, s), n, max_nodes[n - 1]);
}

template <int n>
TensorRef max_pool(const Tensor& x, const Dims& kernel, const Dims& stride, const Dims& padding, const Dims& dilation,
                   bool ceil_mode) {
  return max_pool_with_places<n>(x, kernel, stride, padding, dilation, ceil_mode)[0];
}

template <int n>
TensorRef mean_pool(const Tensor& x, const Dims& kernel, const Dims& stride, const Dims& padding, bool ceil_mode,
                    bool count_include_pad, std::optional<std::int64_t> divisor) {
  const char* operation = mean_names[n - 1];
  check_planes(x, n, operation);
  check_pooled_type(x, true, operation);
  Sizes s = checked_sizes(kernel, stride, padding, Dims{1}, ceil_mode, n, operation);
  check(!divisor || *divisor != 0, "divisor must be not zero");
  for (int i = 0; n == 3 && i < 3; ++i)
    check(x.size(x.ndim - 3 + i) >= s.kernel[i], operation, ": expected an input of at least the kernel's size ",
          to_string(s.kernel), ", but got ", to_string(x.sizes()));
  return mean_of(x, sized_windows(x, n, s, count_include_pad, divisor), n, mean_nodes[n - 1]);
}

TensorRef mean_pool1d(const Tensor& x, const Dims& kernel, const Dims& stride, const Dims& padding, bool ceil_mode,
                      bool count_include_pad) {
  return mean_pool<1>(x, kernel, stride, padding, ceil_mode, count_include_pad, {});
}

// ---- a given number of windows

/// Window i of `out` over `in` elements: from floor(i in / out) to ceil((i + 1) in / out).
WindowLine even_line(std::int64_t in, std::int64_t out) {
  WindowLine line;
  line.in = in;
  for (std::int64_t i = 0; i < out; ++i) {
    std::int64_t first = i * in / out, count = ((i + 1) * in + out - 1) / out - first;
    line.first.push_back(first);
    line.count.push_back(count);
    line.weight.push_back(1.0 / double(count));
  }
  return line;
}

SharedWindows even_windows(const Tensor& x, int n, const Dims& given, const std::string& operation, bool channels) {
  check_pooled_type(x, false, operation.c_str());
  check(x.ndim == n + 1 || x.ndim == n + 2, operation, "(): Expected ", n + 1, "D or ", n + 2,
        "D tensor, but got: ", to_string(x.sizes()));
  check(given.size() == n || given.size() == 1, operation, ": output_size must be ", n);
  Dims out = given.size() == n ? given : Dims(n, given[0]);
  for (auto o : out)
    check(o >= 0, operation, ": elements of output_size must be greater than or equal to 0 but received ",
          to_string(out));
  for (auto o : out)
    check(o <= std::numeric_limits<std::int32_t>::max(), operation, ": output_size ", to_string(out), " is too large");
  for (int i = x.ndim - n - (channels && x.ndim == n + 2); i < x.ndim; ++i)
    check(x.size(i) > 0, operation,
          "(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ",
          to_string(x.sizes()), " with dimension ", i, " being empty");
  auto w = std::make_shared<Windows>();
  for (int d = 0; d < 3; ++d) {
    int i = d - (3 - n);
    w->line[d] = even_line(i < 0 ? 1 : x.size(x.ndim - n + i), i < 0 ? 1 : out[i]);
  }
  return w;
}

template <int n>
TensorRef adaptive_mean_pool(const Tensor& x, const Dims& output_size) {
  static const std::string operation = "adaptive_avg_pool" + std::to_string(n) + "d";
  if (int least = std::max<int>(x.ndim, 1); n > 1 && x.ndim < n)
    fail(ErrorKind::Index, "Dimension out of range (expected to be in range of [", -least, ", ", least - 1,
         "], but got ", -n, "): ", operation, "() expected ", n + 1, "D or ", n + 2,
         "D tensor, but got: ", to_string(x.sizes()));
  SharedWindows w = even_windows(x, n, output_size, operation, n == 3);
  if (n > 1 && w->out_space() == 1 && x.numel) {
    Dims dims;
    for (int i = x.ndim - n; i < x.ndim; ++i) dims.push_back(i);
    return mean(x, dims, true);
  }
  static constexpr MeanNames names =
      n == 3 ? MeanNames{"AdaptiveAvgPool3DBackward0", "AdaptiveAvgPool3DBackwardBackward0"}
             : MeanNames{"AdaptiveAvgPool2DBackward0", "AdaptiveAvgPool2DBackwardBackward0"};
  return mean_of(x, w, n, names);
}

template <int n>
Pair adaptive_max_pool(const Tensor& x, const Dims& output_size) {
  static const std::string operation = "adaptive_max_pool" + std::to_string(n) + "d";
  return max_pooled(x, even_windows(x, n, output_size, operation, true), n,
                    n == 3 ? "AdaptiveMaxPool3DBackward0" : "AdaptiveMaxPool2DBackward0");
}

// ---- the operators

#define RUSHLIGHT_MAX_ARGUMENTS(n)                                                               \
  "(Tensor self, int[" #n "] kernel_size, int[" #n "] stride=[], int[" #n "] padding=0, int[" #n \
  "] dilation=1, bool ceil_mode=False)"
#define RUSHLIGHT_MEAN_ARGUMENTS(n)                                       \
  "(Tensor self, int[" #n "] kernel_size, int[" #n "] stride=[], int[" #n \
  "] padding=0, bool ceil_mode=False, bool count_include_pad=True"

const Define pools[] = {
    {"max_pool1d" RUSHLIGHT_MAX_ARGUMENTS(1), &max_pool<1>, Function | Layer, "The maximum of each window of rows."},
    {"max_pool2d" RUSHLIGHT_MAX_ARGUMENTS(2), &max_pool<2>, Function | Layer, "The maximum of each window of planes."},
    {"max_pool3d" RUSHLIGHT_MAX_ARGUMENTS(3), &max_pool<3>, Function | Layer, "The maximum of each window of volumes."},
    {"max_pool1d_with_indices" RUSHLIGHT_MAX_ARGUMENTS(1), &max_pool_with_places<1>, Function | Layer,
     "The maximum of each window of rows, and where it stands."},
    {"max_pool2d_with_indices" RUSHLIGHT_MAX_ARGUMENTS(2), &max_pool_with_places<2>, NnFunction,
     "The maximum of each window of planes, and where it stands in the flattened plane."},
    {"max_pool3d_with_indices" RUSHLIGHT_MAX_ARGUMENTS(3), &max_pool_with_places<3>, NnFunction,
     "The maximum of each window of volumes, and where it stands in the flattened volume."},
    {"avg_pool1d" RUSHLIGHT_MEAN_ARGUMENTS(1) ")", &mean_pool1d, Function | Layer, "The mean of each window of rows."},
    {"avg_pool2d" RUSHLIGHT_MEAN_ARGUMENTS(2) ", int? divisor_override=None)", &mean_pool<2>, NnFunction,
     "The mean of each window of planes."},
    {"avg_pool3d" RUSHLIGHT_MEAN_ARGUMENTS(3) ", int? divisor_override=None)", &mean_pool<3>, NnFunction,
     "The mean of each window of volumes."},
    {"adaptive_avg_pool1d(Tensor self, int[1] output_size)", &adaptive_mean_pool<1>, Function | Layer,
     "Means of so many windows, as even as may be."},
    {"adaptive_avg_pool2d(Tensor self, int[2] output_size)", &adaptive_mean_pool<2>, NnFunction,
     "Means of so many windows, as even as may be."},
    {"adaptive_avg_pool3d(Tensor self, int[3] output_size)", &adaptive_mean_pool<3>, NnFunction,
     "Means of so many windows, as even as may be."},
    {"adaptive_max_pool1d(Tensor self, int[1] output_size)", &adaptive_max_pool<1>, Function | Layer,
     "Maxima of so many windows, as even as may be, and where they stand."},
    {"adaptive_max_pool2d(Tensor self, int[2] output_size)", &adaptive_max_pool<2>, NnFunction,
     "Maxima of so many windows, as even as may be, and where they stand."},
    {"adaptive_max_pool3d(Tensor self, int[3] output_size)", &adaptive_max_pool<3>, NnFunction,
     "Maxima of so many windows, as even as may be, and where they stand."},
};
#undef RUSHLIGHT_MAX_ARGUMENTS
#undef RUSHLIGHT_MEAN_ARGUMENTS

}  // namespace
}  // namespace rushlight
