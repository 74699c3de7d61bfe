#include "operators/conv.h"

#include <string>

#include "operators/convolve.h"
#include "operators/layout.h"
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

/// The gradient of a bias: everything but the channels added up.
TensorRef bias_gradient(const Tensor& g) {
  Dims dims{0};
  for (int i = 2; i < g.ndim; ++i) dims.push_back(i);
  return sum(g, dims);
}

bool lies_blocked(const Tensor& w) { return layout_of(w).order == Arrangement::Blocked; }

}  // namespace

TensorRef conv_forward(const Tensor& x, const Tensor& w, const Tensor* bias, const ConvGeometry& c, int spatial) {
  return record("ConvolutionBackward0", convolve_forward(x, w, bias, c, spatial), {&x, &w, bias},
                {save_in(x, 0), save_in(w, 1)}, [c, spatial](Vjp& v) {
                  if (v.needs(0)) v.set(0, conv_data(*v.grad(), *conjugate(*v.saved(1)), nullptr, c, spatial));
                  if (v.needs(1))
                    v.set(1, conv_weight(*v.grad(), *conjugate(*v.saved(0)), c, spatial, lies_blocked(*v.saved(1))));
                  if (v.needs(2)) v.set(2, bias_gradient(*v.grad()));
                });
}

TensorRef conv_data(const Tensor& g, const Tensor& w, const Tensor* bias, const ConvGeometry& c, int spatial) {
  TensorRef x = convolve_data(g, w, c, spatial);
  if (bias) {
    GradScope off(false);
    Dims wide(x->ndim, 1);
    wide[1] = c.in_channels;
    x = add(*x, *reshape(*bias, wide));
  }
  return record("ConvolutionBackward0", std::move(x), {&g, &w, bias}, {save_in(g, 0), save_in(w, 1)},
                [c, spatial](Vjp& v) {
                  if (v.needs(0)) v.set(0, conv_forward(*v.grad(), *conjugate(*v.saved(1)), nullptr, c, spatial));
                  if (v.needs(1))
                    v.set(1, conv_weight(*conjugate(*v.saved(0)), *v.grad(), c, spatial, lies_blocked(*v.saved(1))));
                  if (v.needs(2)) v.set(2, bias_gradient(*v.grad()));
                });
}

TensorRef conv_weight(const Tensor& g, const Tensor& x, const ConvGeometry& c, int spatial, bool blocked) {
  TensorRef w = convolve_weight(g, x, c, spatial, blocked);
  return record("ConvolutionBackward1", std::move(w), {&g, &x}, {save_in(g, 0), save_in(x, 1)}, [c, spatial](Vjp& v) {
    if (v.needs(0)) v.set(0, conv_forward(*conjugate(*v.saved(1)), *v.grad(), nullptr, c, spatial));
    if (v.needs(1)) v.set(1, conv_data(*conjugate(*v.saved(0)), *v.grad(), nullptr, c, spatial));
  });
}

namespace {

/// The arguments of one call, checked.
struct Call {
  const Tensor &input, &weight;
  const Tensor* bias;
  int spatial;
  std::int64_t groups;
  bool transposed;
  Dims stride, padding, dilation;

  Dims spread(const Dims& given, const char* what) const {
    check(given.size() == 1 || given.size() == spatial, "expected ", what,
          " to be a single integer value or a list of ", spatial,
          " values to match the convolution dimensions, but got ", what, "=", to_string(given));
    return given.size() == spatial ? given : Dims(spatial, given[0]);
  }

  Call(const Tensor& input, const Tensor& weight, const Tensor* bias, int spatial, const Dims& stride_,
       const Dims& padding_, const Dims& dilation_, std::int64_t groups, bool transposed)
      : input(input), weight(weight), bias(bias), spatial(spatial), groups(groups), transposed(transposed) {
    check(groups > 0, "non-positive groups is not supported");
    check(weight.ndim == spatial + 2, "expected a weight of ", spatial + 2, " dimensions for a convolution over ",
          spatial, " dimensions, but got a weight of size ", to_string(weight.sizes()));
    stride = spread(stride_, "stride"), padding = spread(padding_, "padding"), dilation = spread(dilation_, "dilation");
    for (auto p : padding) check(p >= 0, "negative padding is not supported");
    for (auto s : stride) check(s > 0, "non-positive stride is not supported");
    for (auto d : dilation) check(d > 0, "dilation should be greater than zero, but got ", to_string(dilation));
    constexpr std::int64_t most = std::int64_t(1) << 31;  // products of two of them fit
    for (const Dims* given : {&stride, &padding, &dilation})
      for (auto d : *given) check(d <= most, "stride, padding and dilation must not be over ", most, ", but got ", d);
    check_types();
    check_channels();
  }

  void check_types() const {
    if (input.dtype == DType::Bool) fail(ErrorKind::NotImplemented, "\"convolution\" not implemented for 'Bool'");
    check(input.dtype == weight.dtype, "expected scalar type ", info(input.dtype).scalar_name, " but found ",
          info(weight.dtype).scalar_name);
    check(!bias || bias->dtype == input.dtype, "Input type (", type_text(input.dtype), ") and bias type (",
          bias ? type_text(bias->dtype) : "", ") should be the same");
  }

  void check_channels() const {
    std::int64_t first = weight.size(0), found = input.size(1), outs = transposed ? weight.size(1) * groups : first;
    check(first >= groups, "Given groups=", groups, ", expected weight to be at least ", groups,
          " at dimension 0, but got weight of size ", to_string(weight.sizes()), " instead");
    check(first % groups == 0, "Given groups=", groups, ", expected weight to be divisible by ", groups,
          " at dimension 0, but got weight of size [", to_string(weight.sizes()), "] instead");
    if (transposed)
      check(found == first, "Given transposed=1, weight of size ", to_string(weight.sizes()), ", expected input",
            to_string(input.sizes()), " to have ", first, " channels, but got ", found, " channels instead");
    else
      check(found == weight.size(1) * groups, "Given groups=", groups, ", weight of size ", to_string(weight.sizes()),
            ", expected input", to_string(input.sizes()), " to have ", weight.size(1) * groups, " channels, but got ",
            found, " channels instead");
    check(!bias || (bias->ndim == 1 && bias->size(0) == outs), "Given ", transposed ? "transposed=1, " : "",
          "weight of size ", to_string(weight.sizes()), ", expected bias to be 1-dimensional with ", outs,
          " elements, but got bias of size ", bias ? to_string(bias->sizes()).str() : "", " instead");
  }

  /// Everything but the sizes of space.
  ConvGeometry geometry() const {
    ConvGeometry c{input.size(0), groups, 0, 0, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}};
    c.in_channels = transposed ? weight.size(1) * groups : input.size(1);
    c.out_channels = weight.size(0);
    for (int i = 0, d = 3 - spatial; d < 3; ++i, ++d) {
      c.kernel[d] = weight.size(i + 2);
      c.stride[d] = stride[i], c.padding[d] = padding[i], c.dilation[d] = dilation[i];
    }
    return c;
  }
};

std::string by(const Dims& sizes) {
  std::string out;
  for (int i = 0; i < sizes.size(); ++i) out += (i ? " x " : "") + std::to_string(sizes[i]);
  return out;
}

TensorRef convolve(const Call& a, const Dims& behind) {
  ConvGeometry c = a.geometry();
  Dims padded, kernel;
  bool fits = true;
  for (int i = 0, d = 3 - a.spatial; d < 3; ++i, ++d) {
    c.in[d] = a.input.size(i + 2);
    padded.push_back(c.in[d] + a.padding[i] + behind[i]);
    kernel.push_back(c.dilation[d] * (c.kernel[d] - 1) + 1);
    fits &= padded[i] >= kernel[i];
    c.out[d] = (padded[i] - kernel[i]) / c.stride[d] + 1;
  }
  check(fits, "Calculated padded input size per channel: (", by(padded), "). Kernel size: (", by(kernel),
        "). Kernel size can't be greater than actual input size");
  return conv_forward(a.input, a.weight, a.bias, c, a.spatial);
}

TensorRef convolve_transposed(const Call& a, const Dims& output_padding_) {
  ConvGeometry c = a.geometry();
  Dims output_padding = a.spread(output_padding_, "output_padding"), in, out;
  bool fits = true;
  for (int i = 0, d = 3 - a.spatial; d < 3; ++i, ++d) {
    std::int64_t extra = output_padding[i];
    check(extra >= 0, "negative output_padding is not supported");
    check(extra < c.stride[d] || extra < c.dilation[d],
          "output padding must be smaller than either stride or dilation, but got output_padding: ", extra,
          " stride: ", c.stride[d], " dilation: ", c.dilation[d]);
    c.out[d] = a.input.size(i + 2);
    c.in[d] = (c.out[d] - 1) * c.stride[d] - 2 * c.padding[d] + c.dilation[d] * (c.kernel[d] - 1) + extra + 1;
    in.push_back(c.out[d]), out.push_back(c.in[d]);
    fits &= c.in[d] > 0;
  }
  check(fits, "Given input size per channel: (", by(in), "). Calculated output size per channel: (", by(out),
        "). Output size is too small");
  return conv_data(a.input, a.weight, a.bias, c, a.spatial);
}

/// Calls f(input with a batch, weight, bias): halves in float, an input without a batch as a batch of one.
template <class F>
TensorRef with_batch(const char* name, int spatial, const Tensor& input, const Tensor& weight, const Tensor* bias,
                     F&& f) {
  check(input.ndim == spatial + 1 || input.ndim == spatial + 2, "Expected ", spatial + 1, "D (unbatched) or ",
        spatial + 2, "D (batched) input to ", name, spatial, "d, but got input of size: ", to_string(input.sizes()));
  TensorRef x = input.ndim == spatial + 1 ? unsqueeze(input, 0) : nullptr, y;
  const Tensor& batched = x ? *x : input;
  if (is_half(input.dtype) && weight.dtype == input.dtype) {
    TensorRef b = bias ? cast(*bias, DType::Float32) : nullptr;
    y = cast(*f(*cast(batched, DType::Float32), *cast(weight, DType::Float32), b.get()), input.dtype);
  } else {
    y = f(batched, weight, bias);
  }
  return x ? squeeze(*y, 0) : y;
}

template <int spatial>
TensorRef conv(const Tensor& input, const Tensor& weight, const Tensor* bias, const Dims& stride, const Dims& padding,
               const Dims& dilation, std::int64_t groups) {
  return with_batch("conv", spatial, input, weight, bias, [&](const Tensor& x, const Tensor& w, const Tensor* b) {
    Call call(x, w, b, spatial, stride, padding, dilation, groups, false);
    return convolve(call, call.padding);
  });
}

/// padding='same': as many outputs as inputs, the odd element of padding behind.
template <int spatial>
TensorRef conv_named(const Tensor& input, const Tensor& weight, const Tensor* bias, const Dims& stride,
                     const std::string& padding, const Dims& dilation, std::int64_t groups) {
  check(padding == "same" || padding == "valid", "Invalid padding string: '", padding, "'");
  return with_batch("conv", spatial, input, weight, bias, [&](const Tensor& x, const Tensor& w, const Tensor* b) {
    Call call(x, w, b, spatial, stride, Dims(spatial, 0), dilation, groups, false);
    Dims behind(spatial, 0);
    if (padding == "same") {
      for (auto s : call.stride) check(s == 1, "padding='same' is not supported for strided convolutions");
      for (int i = 0; i < spatial; ++i) {
        std::int64_t all = call.dilation[i] * (w.size(i + 2) - 1);
        call.padding[i] = all / 2, behind[i] = all - all / 2;
      }
    }
    return convolve(call, behind);
  });
}

template <int spatial>
TensorRef conv_transpose(const Tensor& input, const Tensor& weight, const Tensor* bias, const Dims& stride,
                         const Dims& padding, const Dims& output_padding, std::int64_t groups, const Dims& dilation) {
  return with_batch(
      "conv_transpose", spatial, input, weight, bias, [&](const Tensor& x, const Tensor& w, const Tensor* b) {
        return convolve_transposed(Call(x, w, b, spatial, stride, padding, dilation, groups, true), output_padding);
      });
}

TensorRef convolution(const Tensor& input, const Tensor& weight, const Tensor* bias, const Dims& stride,
                      const Dims& padding, const Dims& dilation, bool transposed, const Dims& output_padding,
                      std::int64_t groups) {
  int spatial = weight.ndim - 2;
  check(spatial >= 1 && spatial <= 3, "convolution: expected a weight of 3 to 5 dimensions, but got ",
        int(weight.ndim));
  return with_batch(transposed ? "conv_transpose" : "conv", spatial, input, weight, bias,
                    [&](const Tensor& x, const Tensor& w, const Tensor* b) {
                      Call call(x, w, b, spatial, stride, padding, dilation, groups, transposed);
                      return transposed ? convolve_transposed(call, output_padding) : convolve(call, call.padding);
                    });
}

// ---- the operators

#define RUSHLIGHT_CONV(n)                                                                                             \
  {"conv" #n "d(Tensor input, Tensor weight, Tensor? bias=None, int[" #n "] stride=1, int[" #n "] padding=0, int[" #n \
   "] dilation=1, int groups=1)",                                                                                     \
   &conv<n>, Function | Layer,                                                                                        \
   "Convolution over " #n " dimensions of input (N, in, ...) or (in, ...) with weight (out, in / groups, ...)."},     \
      {"conv" #n "d(Tensor input, Tensor weight, Tensor? bias=None, int[" #n                                          \
       "] stride=1, str padding='valid', int[" #n "] dilation=1, int groups=1)",                                      \
       &conv_named<n>, Function | Layer},                                                                             \
      {"conv_transpose" #n "d(Tensor input, Tensor weight, Tensor? bias=None, int[" #n "] stride=1, int[" #n          \
       "] padding=0, int[" #n "] output_padding=0, int groups=1, int[" #n "] dilation=1)",                            \
       &conv_transpose<n>, Function | Layer,                                                                          \
       "The transpose (not the inverse) of a convolution over " #n                                                    \
       " dimensions, with weight (in, out / groups, ...)."}

const Define convolutions[] = {
    RUSHLIGHT_CONV(1),
    RUSHLIGHT_CONV(2),
    RUSHLIGHT_CONV(3),
    {"convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool "
     "transposed, int[] output_padding, int groups)",
     &convolution, Function | Layer,
     "Convolution, plain or transposed, over as many dimensions as the weight has beside its channels."},
};
#undef RUSHLIGHT_CONV

}  // namespace
}  // namespace rushlight
