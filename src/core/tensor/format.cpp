#include "tensor/format.h"

namespace rushlight {

namespace {
/// The k-th fastest dimension of n in a channels-last order: channels, then the last dimension, ..., then the batch.
int channels_last_dim(int k, int n) { return k == 0 ? 1 : k == n - 1 ? 0 : n - k; }
}  // namespace

MemoryFormat suggested_format(const Tensor& t) {
  int n = t.ndim;
  if ((n != 4 && n != 5) || t.stride(1) == 0) return MemoryFormat::Contiguous;
  std::int64_t least = 0;
  for (int k = 0; k < n; ++k) {
    int i = channels_last_dim(k, n);
    if (t.size(i) == 0 || t.stride(i) < least) return MemoryFormat::Contiguous;
    if (i == 0 && least == t.stride(1)) return MemoryFormat::Contiguous;  // nothing but the batch: either order
    least = t.stride(i) * t.size(i);
  }
  return n == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

Dims format_strides(IntSpan sizes, MemoryFormat format) {
  if (format != MemoryFormat::ChannelsLast && format != MemoryFormat::ChannelsLast3d) return contiguous_strides(sizes);
  int n = format == MemoryFormat::ChannelsLast ? 4 : 5;
  check(int(sizes.size()) == n, "required rank ", n, " tensor to use channels_last", n == 5 ? "_3d" : "", " format");
  Dims strides(n);
  std::int64_t step = 1;
  for (int k = 0; k < n; ++k) {
    int i = channels_last_dim(k, n);
    strides[i] = step;
    step *= std::max<std::int64_t>(sizes[std::size_t(i)], 1);
  }
  return strides;
}

bool is_contiguous_in(const Tensor& t, MemoryFormat format) {
  if (format != MemoryFormat::ChannelsLast && format != MemoryFormat::ChannelsLast3d) return t.is_contiguous();
  int n = format == MemoryFormat::ChannelsLast ? 4 : 5;
  if (t.ndim != n) return false;
  std::int64_t step = 1;
  for (int k = 0; k < n; ++k) {
    int i = channels_last_dim(k, n);
    if (t.size(i) != 1 && t.stride(i) != step) return false;
    step *= t.size(i);
  }
  return true;
}

}  // namespace rushlight
