// Channels and pixels exchanged, and classes as unit vectors.
#include <algorithm>

#include "operators/operators.h"
#include "operators/registry.h"
#include "tensor/format.h"

namespace rushlight {
namespace {

/// The numbers of a window of `t`'s storage in the order of `window`, as a tensor of `sizes` in t's memory format.
TensorRef rearranged(const Tensor& t, const Dims& window, const Dims& strides, const Dims& sizes) {
  TensorRef out = empty(sizes, t.dtype);
  if (out->numel) {
    TensorRef place = make_tensor(Ref<Storage>(out->storage), t.dtype, window, contiguous_strides(window), 0);
    copy_numbers(*place, *make_tensor(Ref<Storage>(t.storage), t.dtype, window, strides, t.offset));
  }
  MemoryFormat format = suggested_format(t);
  if (format == MemoryFormat::Contiguous) return out;
  TensorRef ordered = empty_in(sizes, t.dtype, format);
  copy_numbers(*ordered, *out);
  return ordered;
}

void check_image(const char* name, const char* factor_name, const Tensor& t, std::int64_t factor) {
  check(t.ndim >= 3, name, " expects input to have at least 3 dimensions, but got input with ", int(t.ndim),
        " dimension(s)");
  check(factor > 0, name, " expects a positive ", factor_name, ", but got ", factor);
  check(factor <= 1 << 24, name, ": ", factor_name, " is too large, got ", factor);
}

TensorRef pixel_unshuffle(const Tensor& t, std::int64_t factor);

TensorRef pixel_shuffle(const Tensor& t, std::int64_t r) {
  check_image("pixel_shuffle", "upscale_factor", t, r);
  int n = t.ndim;
  std::int64_t c = t.size(n - 3), h = t.size(n - 2), w = t.size(n - 1), per = r * r;
  check(c % per == 0,
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
        "input.size(-3)=",
        c, " is not divisible by ", per);
  Dims window, strides, sizes;
  for (int i = 0; i < n - 3; ++i) {
    window.push_back(t.size(i));
    strides.push_back(t.stride(i));
    sizes.push_back(t.size(i));
  }
  std::int64_t channel = t.stride(n - 3);
  for (auto s : {c / per, h, r, w, r}) window.push_back(s);
  for (auto s : {channel * per, t.stride(n - 2), channel * r, t.stride(n - 1), channel}) strides.push_back(s);
  for (auto s : {c / per, h * r, w * r}) sizes.push_back(s);
  TensorRef out = rearranged(t, window, strides, sizes);
  if (!is_differentiable(t.dtype)) return out;
  return record("PixelShuffleBackward0", out, {&t}, {}, [r](Vjp& v) { v.set(0, pixel_unshuffle(*v.grad(), r)); });
}

TensorRef pixel_unshuffle(const Tensor& t, std::int64_t r) {
  check_image("pixel_unshuffle", "downscale_factor", t, r);
  int n = t.ndim;
  std::int64_t c = t.size(n - 3), h = t.size(n - 2), w = t.size(n - 1);
  check(h % r == 0, "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=", h,
        " is not divisible by ", r);
  check(w % r == 0, "pixel_unshuffle expects width to be divisible by downscale_factor, but input.size(-1)=", w,
        " is not divisible by ", r);
  Dims window, strides, sizes;
  for (int i = 0; i < n - 3; ++i) {
    window.push_back(t.size(i));
    strides.push_back(t.stride(i));
    sizes.push_back(t.size(i));
  }
  std::int64_t row = t.stride(n - 2), column = t.stride(n - 1);
  for (auto s : {c, r, r, h / r, w / r}) window.push_back(s);
  for (auto s : {t.stride(n - 3), row, column, row * r, column * r}) strides.push_back(s);
  for (auto s : {c * r * r, h / r, w / r}) sizes.push_back(s);
  TensorRef out = rearranged(t, window, strides, sizes);
  if (!is_differentiable(t.dtype)) return out;
  return record("PixelUnshuffleBackward0", out, {&t}, {}, [r](Vjp& v) { v.set(0, pixel_shuffle(*v.grad(), r)); });
}

TensorRef channel_shuffle(const Tensor& t, std::int64_t groups) {
  check(t.ndim > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", to_string(t.sizes()));
  std::int64_t c = t.size(1);
  check(groups > 0, "Number of groups to divide channels in must be positive. Value of groups:", groups);
  check(c % groups == 0, "Number of channels must be divisible by groups. Got ", c, " channels and ", groups,
        " groups.");
  Dims window(t.sizes()), strides(t.strides());
  window[1] = c / groups;
  window.insert(2, groups);
  strides.insert(2, strides[1] * (c / groups));
  TensorRef out = rearranged(t, window, strides, Dims(t.sizes()));
  if (!is_differentiable(t.dtype)) return out;
  return record("ChannelShuffleBackward0", out, {&t}, {},
                [back = c / groups](Vjp& v) { v.set(0, back ? channel_shuffle(*v.grad(), back) : v.grad()); });
}

TensorRef one_hot(const Tensor& t, std::int64_t classes) {
  check(t.dtype == DType::Int64, "one_hot is only applicable to index tensor of type LongTensor.");
  check(t.numel > 0 || classes > 0, classes == -1 ? "Can not infer total number of classes from empty tensor."
                                                  : "Class values must be smaller than num_classes.");
  TensorRef x = packed(t);
  const auto* p = x->read_as<std::int64_t>();
  std::int64_t greatest = -1;
  for (std::int64_t i = 0; i < x->numel; ++i) {
    check(p[i] >= 0, "Class values must be non-negative.");
    greatest = std::max(greatest, p[i]);
  }
  if (classes == -1) classes = greatest + 1;
  check(greatest < classes, "Class values must be smaller than num_classes.");
  Dims sizes(t.sizes());
  sizes.push_back(classes);
  TensorRef out = zeros(sizes, DType::Int64);
  auto* to = out->write_as<std::int64_t>();
  for (std::int64_t i = 0; i < x->numel; ++i) to[i * classes + p[i]] = 1;
  return out;
}

const Define shuffles[] = {
    {"pixel_shuffle(Tensor self, int upscale_factor)", &pixel_shuffle, Function,
     "Channels (C r r, H, W) as pixels (C, H r, W r)."},
    {"pixel_unshuffle(Tensor self, int downscale_factor)", &pixel_unshuffle, Function,
     "Pixels (C, H r, W r) as channels (C r r, H, W)."},
    {"channel_shuffle(Tensor self, int groups)", &channel_shuffle, Function,
     "Channels of several groups taken in turn."},
    {"native_channel_shuffle(Tensor self, int groups)", &channel_shuffle, Function, "channel_shuffle"},
    {"one_hot(Tensor self, int num_classes=-1)", &one_hot, NnFunction | NoGradient,
     "Class numbers as unit vectors along a new last dimension."},
};

}  // namespace

}  // namespace rushlight
