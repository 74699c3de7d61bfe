#include "operators/normalization.h"

#include <array>
#include <limits>

#include "kernels/normalization.h"
#include "operators/layout.h"
#include "operators/operators.h"
#include "operators/registry.h"

// Each operator computes with a kernel and keeps mean and 1/sqrt(var + eps); its derivative is a kernel too. Where the
// derivative is itself to be recorded, it is the formula below in differentiable operators.

namespace rushlight {
namespace {

using Gradients = std::array<TensorRef, 3>;  // of input, weight and bias

/// Along which dimensions statistics are taken, and the shape in which weights broadcast against the input.
struct Extent {
  Dims dims, weight_shape;
  double eps = 0;
  bool centred = true;
};

TensorRef as_shape(const Tensor& t, IntSpan sizes) { return reshape(t, sizes); }

/// With x' = (x - mean) r, r = 1/sqrt(var + eps) and g' = g weight:
/// dx = r (g' - mean(g') - x' mean(g' x')), without mean(g') where x is not centred. `grouped` is the shape in which
/// statistics are taken (null: the input's own).
Gradients formula(const Tensor& g, const Tensor& x_, const Tensor* weight, const Extent& e, const Dims* grouped,
                  const bool (&needs)[3]) {
  TensorRef x = grouped ? as_shape(x_, *grouped) : TensorRef(const_cast<Tensor*>(&x_));
  static PointwiseOp& rsqrt = pointwise_op("rsqrt");
  TensorRef centred = e.centred ? sub(x, mean(*x, e.dims, true)) : x;
  TensorRef r = pointwise(rsqrt, {add(*mean(*square(centred), e.dims, true), *scalar_tensor(e.eps, x->dtype))});
  TensorRef normal = mul(centred, r);
  Gradients out;
  if (needs[0]) {
    TensorRef gw = weight ? mul(g, as_shape(*weight, e.weight_shape)) : TensorRef(const_cast<Tensor*>(&g));
    if (grouped) gw = as_shape(*gw, *grouped);
    TensorRef inner = sub(gw, mul(normal, mean(*mul(gw, normal), e.dims, true)));
    if (e.centred) inner = sub(inner, mean(*gw, e.dims, true));
    out[0] = mul(inner, r);
    if (grouped) out[0] = as_shape(*out[0], x_.sizes());
  }
  if (needs[1])
    out[1] = as_shape(*sum_to_size(*mul(g, grouped ? as_shape(*normal, x_.sizes()) : normal), e.weight_shape),
                      weight->sizes());
  if (needs[2]) out[2] = as_shape(*sum_to_size(g, e.weight_shape), Dims{count_elements(e.weight_shape)});
  return out;
}

TensorRef packed_or_null(const Tensor* t) { return t ? packed(*t) : nullptr; }
template <class T>
const T* numbers(const TensorRef& t) {
  return t ? t->read_as<T>() : nullptr;
}
template <class T>
T* places(const TensorRef& t) {
  return t ? t->write_as<T>() : nullptr;
}

/// Parameters of half-typed input may be float: everything is computed in float then, and rounded once.
void check_types(const Tensor& input, const Tensor* parameter) {
  if (!parameter || parameter->dtype == input.dtype) return;
  check(is_half(input.dtype), parameter->dtype == DType::Float32 || is_half(parameter->dtype)
                                  ? "mixed dtype (CPU): all inputs must share same datatype."
                                  : "mixed dtype (CPU): expect parameter to have scalar type of Float");
  check(parameter->dtype == DType::Float32, "mixed dtype (CPU): expect parameter to have scalar type of Float");
}
TensorRef widened(const Tensor* t) { return t ? cast(*t, DType::Float32) : nullptr; }

// ---- rows: layer_norm and rms_norm

void check_rows(const Tensor& input, IntSpan shape, const Tensor* weight, const Tensor* bias, const char* star) {
  check(!shape.empty(),
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
        "normalized_shape = []");
  check(!weight || equal(weight->sizes(), shape),
        "Expected weight to be of same shape as normalized_shape, but got weight of shape ",
        weight ? to_string(weight->sizes()).str() : "", " and normalized_shape = ", to_string(shape));
  check(!bias || equal(bias->sizes(), shape),
        "Expected bias to be of same shape as normalized_shape, but got bias of shape ",
        bias ? to_string(bias->sizes()).str() : "", " and normalized_shape = ", to_string(shape));
  bool fits = std::size_t(input.ndim) >= shape.size() && equal(input.sizes().last(shape.size()), shape);
  if (fits) return;
  std::string inside = to_string(shape).str();
  fail("Given normalized_shape=", inside, ", expected input with shape [*", star, inside.substr(1),
       ", but got input of size", to_string(input.sizes()));
}

Gradients row_gradients(const Tensor& g_, const Tensor& x_, const TensorRef& weight, const TensorRef& mean,
                        const TensorRef& rstd, std::int64_t n, const bool (&needs)[3]) {
  TensorRef g = packed(g_), x = packed(x_), w = packed_or_null(weight.get());
  Gradients out;
  if (needs[0]) out[0] = empty(x->sizes(), x->dtype);
  if (needs[1]) out[1] = empty(weight->sizes(), x->dtype);
  if (needs[2]) out[2] = empty(Dims{n}, x->dtype);
  visit_wide(x->dtype, "norm", [&]<class T>() {
    NormRows<T> r{n ? x->numel / n : 0,
                  n,
                  x->read_as<T>(),
                  numbers<T>(w),
                  nullptr,
                  mean ? const_cast<T*>(mean->read_as<T>()) : nullptr,
                  const_cast<T*>(rstd->read_as<T>())};
    normalize_rows_vjp(r, g->read_as<T>(), places<T>(out[0]), places<T>(out[1]), places<T>(out[2]));
  });
  return out;
}

TensorRef rows_normalized(const char* node, const Tensor& input, IntSpan shape, const Tensor* weight,
                          const Tensor* bias, double eps, bool centred) {
  std::int64_t n = count_elements(shape), rows = n ? input.numel / n : 0;
  TensorRef x = packed(input), w = packed_or_null(weight), b = packed_or_null(bias);
  TensorRef out = empty(input.sizes(), input.dtype), rstd = empty(Dims{rows}, input.dtype),
            mean = centred ? empty(Dims{rows}, input.dtype) : nullptr;
  visit_wide(input.dtype, centred ? "LayerNormKernelImpl" : "rms_norm", [&]<class T>() {
    normalize_rows(
        NormRows<T>{rows, n, x->read_as<T>(), numbers<T>(w), numbers<T>(b), places<T>(mean), rstd->write_as<T>()}, eps,
        out->write_as<T>());
  });
  Save keep_weight = weight ? save_in(*weight, 1) : Save{nullptr};
  return record(node, std::move(out), {&input, weight, bias},
                {save_in(input, 0), keep_weight, save_other(mean), save_other(rstd)},
                [n, eps, centred, shape = Dims(shape), weighted = weight != nullptr](Vjp& v) {
                  bool needs[] = {v.needs(0), v.needs(1), v.needs(2)};
                  TensorRef x = v.saved(0), w = weighted ? v.saved(1) : nullptr;
                  Gradients d;
                  if (differentiates()) {
                    Extent e{{}, shape, eps, centred};
                    for (int i = x->ndim - shape.size(); i < x->ndim; ++i) e.dims.push_back(i);
                    d = formula(*v.grad(), *x, w.get(), e, nullptr, needs);
                  } else {
                    d = row_gradients(*v.grad(), *x, w, centred ? v.saved(2) : nullptr, v.saved(3), n, needs);
                  }
                  if (needs[2]) d[2] = as_shape(*d[2], shape);
                  for (int i = 0; i < 3; ++i)
                    if (needs[i]) v.set(i, d[std::size_t(i)]);
                });
}

}  // namespace

TensorRef layer_norm(const Tensor& input, IntSpan shape, const Tensor* weight, const Tensor* bias, double eps) {
  check_rows(input, shape, weight, bias, ", ");
  check_types(input, weight);
  check_types(input, bias);
  if (!is_half(input.dtype)) return rows_normalized("NativeLayerNormBackward0", input, shape, weight, bias, eps, true);
  TensorRef w = widened(weight), b = widened(bias);
  return cast(*layer_norm(*cast(input, DType::Float32), shape, w.get(), b.get(), eps), input.dtype);
}

TensorRef rms_norm(const Tensor& input, IntSpan shape, const Tensor* weight, std::optional<double> given) {
  check_value(std::size_t(input.ndim) >= shape.size(), "Input tensor must have at least ", shape.size(),
              " dimensions, but got ", int(input.ndim));
  check_rows(input, shape, weight, nullptr, "");
  double eps = given                           ? *given
               : input.dtype == DType::Float64 ? std::numeric_limits<double>::epsilon()
                                               : double(std::numeric_limits<float>::epsilon());
  if (weight && weight->dtype != input.dtype) {
    TensorRef plain = rms_norm(input, shape, nullptr, given);
    return cast(*mul(plain, *weight), input.dtype);
  }
  if (is_complex(input.dtype)) {
    Dims last;
    for (int i = input.ndim - int(shape.size()); i < input.ndim; ++i) last.push_back(i);
    static PointwiseOp& inverse_root = pointwise_op("rsqrt");
    TensorRef scale =
        pointwise(inverse_root, {Operand(add(*mean(*square(input), last, true), *scalar_tensor(eps, input.dtype)))});
    TensorRef out = mul(input, scale);
    return weight ? mul(out, *weight) : out;
  }
  if (!is_half(input.dtype)) return rows_normalized("FusedRmsNormBackward0", input, shape, weight, nullptr, eps, false);
  TensorRef w = widened(weight);
  return cast(*rms_norm(*cast(input, DType::Float32), shape, w.get(), eps), input.dtype);
}

namespace {

// ---- channels: batch_norm and group_norm

/// A tensor whose channels are to be normalised, as it lies: in a layout with channels last, or packed in rows.
struct Lying {
  TensorRef tensor;
  Arrangement layout;
  explicit Lying(const Tensor& t, bool in_columns) {
    if (in_columns) layout = layout_of(t);
    if (layout.order != Arrangement::ChannelsLast) layout = {};
    tensor = layout ? TensorRef(const_cast<Tensor*>(&t)) : packed(t);
  }
  template <class T>
  const T* read() const {
    return layout ? read_laid_as<T>(*tensor) : tensor->read_as<T>();
  }
  TensorRef fresh() const {
    return layout ? empty_laid(tensor->sizes(), tensor->dtype, layout) : empty(tensor->sizes(), tensor->dtype);
  }
};

template <class T>
NormChannels<T> channels_of(const Lying& x, std::int64_t groups, const TensorRef& weight, const TensorRef& bias,
                            const TensorRef& mean, const TensorRef& rstd) {
  const Tensor& t = *x.tensor;
  std::int64_t samples = t.size(0), channels = t.size(1), space = count_elements(t.sizes().subspan(2));
  bool laid = bool(x.layout);
  return {laid ? samples * space : samples,
          channels,
          laid ? 1 : space,
          groups,
          x.read<T>(),
          numbers<T>(weight),
          numbers<T>(bias),
          mean->write_as<T>(),
          rstd->write_as<T>(),
          laid};
}

/// Statistics that come from outside take no part in the derivative.
Gradients channel_gradients(const Tensor& g_, const Tensor& x_, std::int64_t groups, const TensorRef& weight,
                            const TensorRef& mean, const TensorRef& rstd, bool constant, const bool (&needs)[3]) {
  settle_shared({&x_, &g_, weight.get()});
  Lying x(x_, groups == 0), g(g_, bool(x.layout));
  if (x.layout && !g.layout) g = Lying(*laid_copy(*g.tensor, x.layout), true);
  TensorRef w = packed_or_null(weight.get());
  Gradients out;
  if (needs[0]) out[0] = x.fresh();
  for (std::size_t i = 1; i < 3; ++i)
    if (needs[i]) out[i] = empty(Dims{x_.size(1)}, x_.dtype);
  visit_wide(x_.dtype, "norm", [&]<class T>() {
    normalize_channels_vjp(channels_of<T>(x, groups, w, nullptr, mean, rstd), constant, g.read<T>(),
                           out[0] ? write_laid_as<T>(*out[0]) : nullptr, places<T>(out[1]), places<T>(out[2]));
  });
  return out;
}

/// The derivative with statistics from outside: dx = g weight r.
Gradients constant_formula(const Tensor& g, const Tensor& x, const Tensor* weight, const Dims& shape,
                           const Tensor& mean, const Tensor& rstd, const bool (&needs)[3]) {
  TensorRef m = as_shape(mean, shape), r = as_shape(rstd, shape);
  Gradients out;
  if (needs[0]) out[0] = mul(weight ? mul(g, as_shape(*weight, shape)) : TensorRef(const_cast<Tensor*>(&g)), r);
  if (needs[1]) out[1] = as_shape(*sum_to_size(*mul(g, mul(sub(x, m), r)), shape), weight->sizes());
  if (needs[2]) out[2] = as_shape(*sum_to_size(g, shape), Dims{x.size(1)});
  return out;
}

TensorRef channels_normalized(const char* node, const Tensor& input, std::int64_t groups, const Tensor* weight,
                              const Tensor* bias, double eps, bool constant, TensorRef mean, TensorRef rstd,
                              const TensorRef& variance) {
  settle_shared({&input, weight, bias});
  Lying x(input, groups == 0);
  TensorRef w = packed_or_null(weight), b = packed_or_null(bias), out = x.fresh();
  visit_wide(input.dtype, "batch_norm", [&]<class T>() {
    auto c = channels_of<T>(x, groups, w, b, mean, rstd);
    if (!constant) channel_statistics(c, eps, places<T>(variance));
    normalize_channels(c, write_laid_as<T>(*out));
  });
  Save keep_weight = weight ? save_in(*weight, 1) : Save{nullptr};
  return record(node, std::move(out), {&input, weight, bias},
                {save_in(input, 0), keep_weight, save_other(mean), save_other(rstd)},
                [groups, eps, constant, weighted = weight != nullptr](Vjp& v) {
                  bool needs[] = {v.needs(0), v.needs(1), v.needs(2)};
                  TensorRef x = v.saved(0), w = weighted ? v.saved(1) : nullptr;
                  Gradients d;
                  Dims shape(x->ndim, 1);
                  shape[1] = x->size(1);
                  if (!differentiates()) {
                    d = channel_gradients(*v.grad(), *x, groups, w, v.saved(2), v.saved(3), constant, needs);
                  } else if (constant) {
                    d = constant_formula(*v.grad(), *x, w.get(), shape, *v.saved(2), *v.saved(3), needs);
                  } else if (groups) {
                    Dims grouped{x->size(0), groups, x->size(1) / groups * count_elements(x->sizes().subspan(2))};
                    d = formula(*v.grad(), *x, w.get(), {{2}, shape, eps, true}, &grouped, needs);
                  } else {
                    Extent e{{0}, shape, eps, true};
                    for (int i = 2; i < x->ndim; ++i) e.dims.push_back(i);
                    d = formula(*v.grad(), *x, w.get(), e, nullptr, needs);
                  }
                  for (int i = 0; i < 3; ++i)
                    if (needs[i]) v.set(i, d[std::size_t(i)]);
                });
}

/// running += momentum (batch - running), in place and without history.
void move_running(Tensor* running, const Tensor& batch, double factor, double momentum) {
  if (!running) return;
  GradScope off(false);
  TensorRef kept = mul(*running, Scalar(1 - momentum)),
            moved = mul(cast(batch, running->dtype), Scalar(momentum * factor));
  copy_into(*running, *add(*kept, *moved));
}

void check_channels(const Tensor* t, std::int64_t channels, const char* what) {
  check(!t || t->numel == channels, what, " should contain ", channels, " elements not ", t ? t->numel : 0);
}

TensorRef normalized_batch(const Tensor& input, const Tensor* weight, const Tensor* bias, Tensor* running_mean,
                           Tensor* running_var, bool training, double momentum, double eps);

/// An empty input needs no dimension of channels: nothing is normalised.
TensorRef batch_without_channels(const Tensor& input, const Tensor* weight, const Tensor* bias) {
  check_index(input.ndim == 1 && input.numel == 0, "Dimension out of range (expected to be in range of [",
              -std::max(1, int(input.ndim)), ", ", std::max(1, int(input.ndim)) - 1, "], but got 1)");
  TensorRef out = clone(input);
  if (weight) out = mul(*out, *select(*weight, 0, 0));
  return bias ? add(*out, *select(*bias, 0, 0)) : out;
}

TensorRef batch_norm(const Tensor& input, const Tensor* weight, const Tensor* bias, Tensor* running_mean,
                     Tensor* running_var, bool training, double momentum, double eps, bool) {
  std::int64_t channels = input.ndim > 1 ? input.size(1) : 0;
  if (!training) {
    check(running_mean, "running_mean must be defined in evaluation mode");
    check(running_var, "running_var must be defined in evaluation mode");
  }
  if (input.ndim < 2) return batch_without_channels(input, weight, bias);
  check_channels(running_mean, channels, "running_mean");
  check_channels(running_var, channels, "running_var");
  check_channels(weight, channels, "weight");
  check_channels(bias, channels, "bias");
  if (!is_floating(input.dtype) && input.numel)
    fail(ErrorKind::NotImplemented, "\"batch_norm\" not implemented for '", info(input.dtype).scalar_name, "'");
  for (const Tensor* t :
       {weight, bias, static_cast<const Tensor*>(running_mean), static_cast<const Tensor*>(running_var)})
    check_types(input, t);
  if (!is_half(input.dtype))
    return normalized_batch(input, weight, bias, running_mean, running_var, training, momentum, eps);
  TensorRef w = widened(weight), b = widened(bias);
  return cast(*normalized_batch(*cast(input, DType::Float32), w.get(), b.get(), running_mean, running_var, training,
                                momentum, eps),
              input.dtype);
}

TensorRef normalized_batch(const Tensor& input, const Tensor* weight, const Tensor* bias, Tensor* running_mean,
                           Tensor* running_var, bool training, double momentum, double eps) {
  std::int64_t channels = input.size(1);
  const char* node = "NativeBatchNormBackward0";
  if (!training) {
    TensorRef mean, rstd;  // copies: the running ones may move before backward
    {
      GradScope off(false);
      mean = convert(*running_mean, input.dtype, true);
      static PointwiseOp& rsqrt = pointwise_op("rsqrt");
      rstd = packed(*pointwise(rsqrt, {add(*cast(*running_var, input.dtype), *scalar_tensor(eps, input.dtype))}));
    }
    return channels_normalized(node, input, 0, weight, bias, eps, true, mean, rstd, nullptr);
  }
  TensorRef mean = empty(Dims{channels}, input.dtype), rstd = empty(Dims{channels}, input.dtype),
            variance = running_var ? empty(Dims{channels}, input.dtype) : nullptr;
  TensorRef out = channels_normalized(node, input, 0, weight, bias, eps, false, mean, rstd, variance);
  if (input.numel == 0) return out;
  double n = double(input.numel) / double(channels);
  move_running(running_mean, *mean, 1, momentum);
  if (running_var) move_running(running_var, *variance, n / (n - 1), momentum);
  return out;
}

TensorRef group_norm(const Tensor& input, std::int64_t groups, const Tensor* weight, const Tensor* bias, double eps,
                     bool) {
  check(groups > 0, "Expected num groups to be greater than 0, got ", groups);
  check(input.ndim >= 2, "Expected at least 2 dimensions for input tensor but received ", int(input.ndim));
  std::int64_t channels = input.size(1);
  check(channels % groups == 0,
        "Expected number of channels in input to be divisible by num_groups, but got input of shape ",
        to_string(input.sizes()), " and num_groups=", groups);
  auto check_vector = [&](const Tensor* t, const char* what) {
    check(!t || (t->ndim == 1 && t->numel == channels), "Expected ", what,
          " to be a vector of size equal to the number of channels in input, but got ", what, " of shape ",
          t ? to_string(t->sizes()).str() : "", " and input of shape ", to_string(input.sizes()));
    check_types(input, t);
  };
  check_vector(weight, "weight");
  check_vector(bias, "bias");
  if (is_half(input.dtype)) {
    TensorRef w = widened(weight), b = widened(bias);
    return cast(*group_norm(*cast(input, DType::Float32), groups, w.get(), b.get(), eps, false), input.dtype);
  }
  TensorRef mean = empty(Dims{input.size(0) * groups}, input.dtype),
            rstd = empty(Dims{input.size(0) * groups}, input.dtype);
  return channels_normalized("NativeGroupNormBackward0", input, groups, weight, bias, eps, false, mean, rstd, nullptr);
}

TensorRef layer_norm_function(const Tensor& input, const Dims& shape, const Tensor* weight, const Tensor* bias,
                              double eps, bool) {
  return layer_norm(input, shape, weight, bias, eps);
}
TensorRef rms_norm_function(const Tensor& input, const Dims& shape, const Tensor* weight, std::optional<double> eps) {
  return rms_norm(input, shape, weight, eps);
}

// ---- the operators

const Define norms[] = {
    {"layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool "
     "cudnn_enable=True)",
     &layer_norm_function, Function | Layer, "(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions."},
    {"rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None)", &rms_norm_function,
     Function | Layer, "x / sqrt(mean(x^2) + eps) * weight over the last dimensions."},
    {"batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
     "float momentum, float eps, bool cudnn_enabled)",
     &batch_norm, Function | Layer,
     "(x - mean) / sqrt(var + eps) * weight + bias for each channel, with statistics of the batch (training) or the "
     "running ones."},
    {"group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool "
     "cudnn_enabled=True)",
     &group_norm, Function | Layer,
     "(x - mean) / sqrt(var + eps) * weight + bias for each group of channels of a sample."},
};

}  // namespace
}  // namespace rushlight
