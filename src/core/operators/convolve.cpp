#include "operators/convolve.h"

#include "kernels/onednn.h"
#include "kernels/parallel.h"
#include "operators/copy.h"
#include "operators/layout.h"
#include "tensor/format.h"

namespace rushlight {
namespace {

Dims sizes_of(std::int64_t first, std::int64_t second, const std::int64_t (&space)[3], int spatial) {
  Dims sizes{first, second};
  for (int d = 3 - spatial; d < 3; ++d) sizes.push_back(space[d]);
  return sizes;
}

/// The arrays of a pass; the one that it computes is null.
struct Arrays {
  const Tensor *x, *w, *y, *bias;
};

/// An operand as it lies: in the layout that is understood, channels-last by its strides, or packed in rows.
class Lying {
 public:
  Lying(const Tensor* t, Arrangement::Order understood) {
    if (!t) return;
    tensor_ = TensorRef(const_cast<Tensor*>(t));
    MemoryFormat format = t->is_contiguous() ? MemoryFormat::Contiguous : suggested_format(*t);
    if (layout_of(*t).order == understood) {
      order_ = understood;
      laid_ = true;
    } else if (understood == Arrangement::ChannelsLast && format != MemoryFormat::Contiguous &&
               is_contiguous_in(*t, format)) {
      order_ = understood;
    } else {
      tensor_ = packed(*t);
    }
  }
  Arrangement::Order order() const { return order_; }
  void* data() const { return laid_ ? tensor_->storage->read_laid() : const_cast<std::byte*>(tensor_->read()); }

 private:
  TensorRef tensor_;
  Arrangement::Order order_ = Arrangement::Rows;
  bool laid_ = false;
};

/// Null where the library is not there or has no fast way.
TensorRef by_onednn(ConvPass pass, const Arrays& a, const ConvGeometry& c, const Dims& sizes, Arrangement::Order made) {
  DType dtype = a.x ? a.x->dtype : a.y->dtype;
  const OnednnTable* library = dtype == DType::Float32 ? onednn() : nullptr;
  if (!library || c.batch * c.in_space() * c.out_space() * c.in_channels * c.out_channels * c.taps() == 0)
    return nullptr;
  settle_shared({a.x, a.w, a.y, a.bias});
  Lying x(a.x, Arrangement::ChannelsLast), w(a.w, Arrangement::Blocked), y(a.y, Arrangement::ChannelsLast);
  Arrangement layout = made == Arrangement::Blocked ? blocked(sizes, dtype)
                       : made                       ? channels_last(sizes, dtype)
                                                    : Arrangement();
  TensorRef bias = a.bias ? packed(*a.bias) : nullptr;
  made = layout.order;
  ConvTask task{
      pass, bias != nullptr, a.x ? x.order() : made, a.w ? w.order() : made, a.y ? y.order() : made, num_threads(), c};
  const void* plan = library->plan(task);
  if (!plan) return nullptr;
  TensorRef out = layout ? empty_laid(sizes, dtype, layout) : empty(sizes, dtype);
  void* to = out->storage->write_laid();
  const void* shift = bias ? bias->read() : nullptr;
  check(library->run(plan, a.x ? x.data() : to, a.w ? w.data() : to, shift, a.y ? y.data() : to, onednn_services(),
                     &layout_stats.in_library),
        "oneDNN could not run a convolution with an output of size ", to_string(sizes));
  return out;
}

/// Weights of a model are brought into the library's order once: there they stay, and so do their gradients and what an
/// optimizer keeps of them, until somebody reads them.
void lay_weights(const Tensor& w, const ConvGeometry& c) {
  if (c.groups != 1 || w.dtype != DType::Float32 || w.storage->layout || !w.is_leaf() || !onednn()) return;
  if (Arrangement layout = blocked(w.sizes(), w.dtype)) try_rearrange(w, layout);
}

}  // namespace

TensorRef convolve_forward(const Tensor& x, const Tensor& w, const Tensor* bias, const ConvGeometry& c, int spatial) {
  Dims sizes = sizes_of(c.batch, c.out_channels, c.out, spatial);
  lay_weights(w, c);
  if (TensorRef y = by_onednn(ConvPass::Forward, {&x, &w, nullptr, bias}, c, sizes, Arrangement::ChannelsLast))
    return y;
  TensorRef px = packed(x), pw = packed(w), pb = bias ? packed(*bias) : nullptr, y = empty(sizes, x.dtype);
  convolution_backend(x.dtype, c).forward(x.dtype, c, px->read(), pw->read(), pb ? pb->read() : nullptr, y->write());
  return y;
}

TensorRef convolve_data(const Tensor& g, const Tensor& w, const ConvGeometry& c, int spatial) {
  Dims sizes = sizes_of(c.batch, c.in_channels, c.in, spatial);
  if (TensorRef x = by_onednn(ConvPass::Data, {nullptr, &w, &g, nullptr}, c, sizes, Arrangement::ChannelsLast))
    return x;
  TensorRef pg = packed(g), pw = packed(w), x = empty(sizes, g.dtype);
  convolution_backend(g.dtype, c).backward_data(g.dtype, c, pg->read(), pw->read(), x->write());
  return x;
}

TensorRef convolve_weight(const Tensor& g, const Tensor& x, const ConvGeometry& c, int spatial, bool blocked) {
  Dims sizes = sizes_of(c.out_channels, c.group_in(), c.kernel, spatial);
  if (TensorRef w = by_onednn(ConvPass::Weight, {&x, nullptr, &g, nullptr}, c, sizes,
                              blocked ? Arrangement::Blocked : Arrangement::Rows))
    return w;
  TensorRef pg = packed(g), px = packed(x), w = empty(sizes, x.dtype);
  convolution_backend(x.dtype, c).backward_weight(x.dtype, c, pg->read(), px->read(), w->write());
  return w;
}

}  // namespace rushlight
