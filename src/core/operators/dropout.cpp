// Dropout of numbers and of channels, and the leaky relu of random slopes.
//
// The mask of torch.dropout is a tensor of bool, a byte for each number, and is multiplied in one pass forward and one
// pass back; PyTorch keeps a mask of the input's type. The numbers are PyTorch's, a draw for each in the order of
// memory.
#include <cmath>

#include "kernels/random.h"
#include "operators/pointwise.h"
#include "operators/random_fill.h"
#include "operators/view.h"

namespace rushlight {
namespace {

void check_probability(double p) {
  check(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
}

bool keeps_all(const Tensor& x, double p, bool train) { return p == 0 || !train || x.numel == 0; }

/// A factor as the type holds it.
double rounded(double value, DType d) {
  double out = value;
  visit_floating(d, "dropout", [&]<class T>() {
    out = double(T(std::conditional_t<std::is_same_v<T, double>, double, float>(value)));
  });
  return out;
}

/// 1 / (1 - p) by a division in the type.
double keep_scale(double p, DType d) { return d == DType::Float64 ? 1 / (1 - p) : rounded(1 / float(1 - p), d); }

/// x * noise for the noise that is 0 everywhere: numbers become 0, while infinities and NaN become NaN.
TensorRef drop_all(const Tensor& x) {
  static PointwiseOp& mul = pointwise_op("mul");
  return pointwise(mul, {Operand(x), Operand(zeros({}, x.dtype))});
}
void drop_all_(Tensor& x) {
  static PointwiseOp& mul = pointwise_op("mul");
  TensorRef zero = zeros({}, x.dtype);
  Operand in[] = {Operand(x), Operand(zero)};
  pointwise_inplace(mul, x, in, "dropout_");
}

TensorRef draw_mask(const Tensor& x, double p) {
  if (!is_floating(x.dtype)) {
    if (is_complex(x.dtype))
      fail(ErrorKind::NotImplemented, "\"bernoulli_scalar_cpu_\" not implemented for '", info(x.dtype).scalar_name,
           "'");
    fail("result type Float can't be cast to the desired output type ", info(x.dtype).scalar_name);
  }
  TensorRef mask = empty_like(x, DType::Bool);
  draw_bernoulli(*mask, 1 - p, default_generator->twister);
  return mask;
}

PointwiseOp& masked_scale() {
  static PointwiseOp& op = pointwise_op("masked_scale");
  return op;
}

}  // namespace

TensorRef dropout(const Tensor& x, double p, bool train) {
  check_probability(p);
  if (keeps_all(x, p, train)) return TensorRef(const_cast<Tensor*>(&x));
  if (p == 1) return drop_all(x);
  return pointwise(masked_scale(), {Operand(x), Operand(draw_mask(x, p)), Operand(keep_scale(p, x.dtype))});
}

namespace {

TensorRef dropout_(Tensor& x, double p, bool train) {
  check_probability(p);
  if (keeps_all(x, p, train)) return TensorRef(&x);
  check_inplace(x, wants_gradients(x));
  if (p == 1) {
    drop_all_(x);
  } else {
    TensorRef mask = draw_mask(x, p);
    Operand in[] = {Operand(x), Operand(mask), Operand(keep_scale(p, x.dtype))};
    pointwise_inplace(masked_scale(), x, in, "dropout_");
  }
  return TensorRef(&x);
}

std::tuple<TensorRef, TensorRef> native_dropout(const Tensor& x, double p, std::optional<bool> train) {
  bool dropping = train.value_or(true);
  double scale = dropping ? (p == 1 ? 0.0 : 1 / (1 - p)) : 1;
  TensorRef mask, out;
  {
    GradScope off(false);
    if (dropping && x.numel) {
      check(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", 1 - p);
      mask = draw_mask(x, p);
    } else {
      mask = empty_like(x, DType::Bool);
      fill_numbers(*mask, true);
    }
    if (is_floating(x.dtype)) scale = rounded(scale, x.dtype);
    out = pointwise(masked_scale(), {Operand(x), Operand(mask), Operand(scale)});
  }
  TensorRef outs[] = {out, mask};
  const Tensor* inputs[] = {&x};
  Save saves[] = {save_other(mask)};
  record_many("NativeDropoutBackward0", outs, inputs, saves, [scale](Vjp& v) {
    v.set(0, pointwise(masked_scale(), {Operand(v.grad()), Operand(v.saved(0)), Operand(scale)}));
  });
  return {out, mask};
}

// ---- whole channels, and forms that keep mean and variance

/// A factor and a shift for each number or, with `channels`, for each channel of each sample.
struct Noise {
  TensorRef factor, shift;
};

Noise draw_noise(const Tensor& x, double p, bool channels, bool alpha) {
  check(!channels || x.ndim >= 2, "Feature dropout requires at least 2 dimensions in the input");
  static PointwiseOp &mul = pointwise_op("mul"), &add = pointwise_op("add"), &div = pointwise_op("div");
  auto apply = [](PointwiseOp& op, Tensor& t, double number) {
    Operand in[] = {Operand(t), Operand(number)};
    pointwise_inplace(op, t, in, "dropout");
  };
  GradScope off(false);
  Noise noise;
  if (channels) {
    Dims sizes(x.ndim, 1);
    sizes[0] = x.size(0);
    sizes[1] = x.size(1);
    noise.factor = empty(sizes, x.dtype);
  } else {
    noise.factor = empty_like(x, x.dtype);
  }
  draw_bernoulli(*noise.factor, 1 - p, default_generator->twister);
  if (!alpha) {
    apply(div, *noise.factor, 1 - p);
    return noise;
  }
  // SELU's limit at -inf, and what restores mean 0 and variance 1 (Klambauer et al., "Self-normalizing neural
  // networks")
  constexpr double floor = 1.7580993408473766;
  double scale = 1 / std::sqrt((floor * floor * p + 1) * (1 - p));
  noise.shift = copy_of(*noise.factor);
  apply(add, *noise.shift, -1);
  apply(mul, *noise.shift, floor * scale);
  apply(add, *noise.shift, floor * scale * p);
  apply(mul, *noise.factor, scale);
  return noise;
}

template <bool channels, bool alpha>
TensorRef dropout_by_noise(const Tensor& x, double p, bool train) {
  static PointwiseOp &mul = pointwise_op("mul"), &add = pointwise_op("add");
  check_probability(p);
  if (keeps_all(x, p, train)) return TensorRef(const_cast<Tensor*>(&x));
  if (p == 1) return drop_all(x);
  Noise noise = draw_noise(x, p, channels, alpha);
  TensorRef out = pointwise(mul, {Operand(x), Operand(noise.factor)});
  if (!noise.shift) return out;
  Operand in[] = {Operand(out), Operand(noise.shift)};
  pointwise_inplace(add, *out, in, "add_");
  return out;
}

template <bool channels, bool alpha>
TensorRef dropout_by_noise_(Tensor& x, double p, bool train) {
  static PointwiseOp &mul = pointwise_op("mul"), &add = pointwise_op("add");
  check_probability(p);
  if (keeps_all(x, p, train)) return TensorRef(&x);
  check_inplace(x, wants_gradients(x));
  if (p == 1) {
    drop_all_(x);
    return TensorRef(&x);
  }
  Noise noise = draw_noise(x, p, channels, alpha);
  Operand product[] = {Operand(x), Operand(noise.factor)};
  pointwise_inplace(mul, x, product, "mul_");
  if (noise.shift) {
    Operand sum[] = {Operand(x), Operand(noise.shift)};
    pointwise_inplace(add, x, sum, "add_");
  }
  return TensorRef(&x);
}

// ---- rrelu

void check_slopes(double lower, double upper) {
  check(std::isfinite(lower), "rrelu: lower bound must be finite, got ", lower);
  check(std::isfinite(upper), "rrelu: upper bound must be finite, got ", upper);
  check(lower <= upper, "Lower bound should be less than or equal to the upper bound");
}

/// Without training the slope is the mean.
PointwiseOp& rrelu_mean() {
  static PointwiseOp& op = pointwise_op("rrelu_mean");
  return op;
}

/// x times its random slopes, and the slopes in `noise` (of x's shape, row-major).
TensorRef draw_slopes(const Tensor& x, Tensor& noise, double lower, double upper, GeneratorArg g) {
  check(equal(x.sizes(), noise.sizes()),
        "noise tensor shape must match self tensor shape. Got self.shape = ", to_string(x.sizes()),
        " noise.shape = ", to_string(noise.sizes()));
  if (x.dtype == DType::Float16)
    fail(ErrorKind::NotImplemented, "\"rrelu_with_noise_out_cpu\" not implemented for 'Half'");
  TensorRef out = empty(x.sizes(), x.dtype), numbers = packed(x);
  visit_floating(x.dtype, "rrelu_with_noise_out_cpu", [&]<class T>() {
    check(noise.dtype == x.dtype, "expected scalar type ", info(x.dtype).scalar_name, " but found ",
          info(noise.dtype).scalar_name);
    fill_leaky(generator_of(g), out->write_as<T>(), noise.write_as<T>(), numbers->read_as<T>(), x.numel, lower, upper);
  });
  return out;
}

struct TimesNoise {
  void operator()(Vjp& v) const {
    static PointwiseOp& mul = pointwise_op("mul");
    v.set(0, pointwise(mul, {Operand(v.grad()), Operand(v.saved(0))}));
  }
};

void refuse_whole_numbers(const Tensor& x, bool training) {
  if (!is_floating(x.dtype))
    fail(ErrorKind::NotImplemented, '"', training ? "rrelu_with_noise_out_cpu" : "leaky_relu_cpu",
         "\" not implemented for '", info(x.dtype).scalar_name, "'");
}

TensorRef rrelu_with(const Tensor& x, Tensor& noise, double lower, double upper, bool training, GeneratorArg g) {
  check_slopes(lower, upper);
  refuse_whole_numbers(x, training);
  if (!training) return pointwise(rrelu_mean(), {Operand(x), Operand((lower + upper) / 2)});
  TensorRef out = draw_slopes(x, noise, lower, upper, g);
  return record("RreluWithNoiseBackward0", out, {&x}, {save_other(noise)}, TimesNoise());
}

TensorRef rrelu_with_(Tensor& x, Tensor& noise, double lower, double upper, bool training, GeneratorArg g) {
  check_slopes(lower, upper);
  refuse_whole_numbers(x, training);
  if (!training) {
    Operand in[] = {Operand(x), Operand((lower + upper) / 2)};
    pointwise_inplace(rrelu_mean(), x, in, "rrelu_");
    return TensorRef(&x);
  }
  bool records = needs_record(x);
  check_inplace(x, wants_gradients(x));
  refuse_overlapping_write(x);
  TensorRef out = draw_slopes(x, noise, lower, upper, g);
  Ref<Node> node;
  if (records) {
    const Tensor* inputs[] = {&x};
    Save saves[] = {save_other(noise)};
    node = make_lambda_node("RreluWithNoiseBackward0", inputs, saves, 1, TimesNoise());
  }
  copy_numbers(x, *out);
  finish_inplace(x, std::move(node), "rrelu_");
  return TensorRef(&x);
}

TensorRef rrelu(const Tensor& x, double lower, double upper, bool training, GeneratorArg g) {
  return rrelu_with(x, *empty(x.sizes(), x.dtype), lower, upper, training, g);
}
TensorRef rrelu_(Tensor& x, double lower, double upper, bool training, GeneratorArg g) {
  return rrelu_with_(x, *empty(x.sizes(), x.dtype), lower, upper, training, g);
}

/// The same with the slopes in a tensor of the caller's.
template <TensorRef (*rule)(Tensor&, Tensor&, double, double, bool, GeneratorArg)>
TensorRef with_noise(Tensor& x, Tensor& noise, double lower, double upper, bool training, GeneratorArg g) {
  if (!training) return rule(x, noise, lower, upper, training, g);
  TensorRef slopes = noise.is_contiguous() ? TensorRef(&noise) : empty(noise.sizes(), noise.dtype);
  TensorRef out = rule(x, *slopes, lower, upper, training, g);
  if (slopes.get() != &noise) copy_numbers(noise, *slopes);
  return out;
}
TensorRef rrelu_given(Tensor& x, Tensor& noise, double lower, double upper, bool training, GeneratorArg g) {
  return rrelu_with(x, noise, lower, upper, training, g);
}

#define RUSHLIGHT_DROPOUT "(Tensor self, float p, bool train)"
#define RUSHLIGHT_SLOPES \
  "float lower=0.125, float upper=0.3333333333333333, bool training=False, generator generator=None)"

const Define dropouts[] = {
    {"dropout" RUSHLIGHT_DROPOUT, &dropout, Function, "Zero with probability p, else x / (1 - p)."},
    {"dropout_" RUSHLIGHT_DROPOUT, &dropout_, Function, "dropout in place."},
    {"native_dropout(Tensor self, float p, bool? train)", &native_dropout, Function,
     "dropout, and the mask of what was kept."},
    {"feature_dropout" RUSHLIGHT_DROPOUT, &dropout_by_noise<true, false>, Function,
     "Drops whole channels, the second dimension."},
    {"feature_dropout_" RUSHLIGHT_DROPOUT, &dropout_by_noise_<true, false>, Function, "feature_dropout in place."},
    {"alpha_dropout" RUSHLIGHT_DROPOUT, &dropout_by_noise<false, true>, Function,
     "Drops to the floor of SELU, keeping mean 0 and variance 1."},
    {"alpha_dropout_" RUSHLIGHT_DROPOUT, &dropout_by_noise_<false, true>, Function, "alpha_dropout in place."},
    {"feature_alpha_dropout" RUSHLIGHT_DROPOUT, &dropout_by_noise<true, true>, Function,
     "alpha_dropout of whole channels."},
    {"feature_alpha_dropout_" RUSHLIGHT_DROPOUT, &dropout_by_noise_<true, true>, Function,
     "feature_alpha_dropout in place."},
    {"rrelu(Tensor self, " RUSHLIGHT_SLOPES, &rrelu, Function,
     "x where positive, else x times a slope drawn from [lower, upper)."},
    {"rrelu_(Tensor self, " RUSHLIGHT_SLOPES, &rrelu_, Function, "rrelu in place."},
    {"rrelu_with_noise(Tensor self, Tensor noise, " RUSHLIGHT_SLOPES, &with_noise<&rrelu_given>, NnFunction,
     "rrelu with its slopes written to noise."},
    {"rrelu_with_noise_(Tensor self, Tensor noise, " RUSHLIGHT_SLOPES, &with_noise<&rrelu_with_>, NnFunction,
     "rrelu_with_noise in place."},
};

}  // namespace
}  // namespace rushlight
