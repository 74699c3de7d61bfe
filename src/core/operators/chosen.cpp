// Functions whose arguments choose among the declared pointwise operators (src/rushlight/operators/pointwise.py):
// bounds that are numbers, tensors or absent, approximations by name, factors. Each has a function and an in-place
// form.
#include <cmath>
#include <limits>

#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

/// A pointwise operator and its operands, as the arguments of a call chose them.
struct Choice {
  PointwiseOp* op;
  Operand in[4];
};

/// The forms of a function f(self, rest...) that makes a choice; `name` for messages about the in-place form.
template <auto f>
struct Forms;
template <class... A, Choice (*f)(const Tensor&, A...)>
struct Forms<f> {
  static TensorRef plain(const Tensor& t, A... rest) {
    Choice c = f(t, rest...);
    return pointwise(*c.op, c.in);
  }
  static TensorRef inplace(Tensor& t, A... rest) {
    Choice c = f(t, rest...);
    std::string name = c.op->name + "_";
    pointwise_inplace(*c.op, t, c.in, name.c_str());
    return TensorRef(&t);
  }
};

// ---- bounds

Choice clamp_numbers(const Tensor& t, std::optional<Scalar> min, std::optional<Scalar> max) {
  static PointwiseOp &between = pointwise_op("clamp_between_numbers"), &above = pointwise_op("clamp_above"),
                     &below = pointwise_op("clamp_below");
  check(min || max, "torch.clamp: At least one of 'min' or 'max' must not be None");
  if (min && max) return {&between, {t, *min, *max}};
  return min ? Choice{&above, {t, *min}} : Choice{&below, {t, *max}};
}

Choice clamp_tensors(const Tensor& t, const Tensor* min, const Tensor* max) {
  static PointwiseOp &between = pointwise_op("clamp_between"), &above = pointwise_op("clamp_above_tensor"),
                     &below = pointwise_op("clamp_below_tensor");
  check(min || max, "torch.clamp: At least one of 'min' or 'max' must not be None");
  if (min && max) return {&between, {t, *min, *max}};
  return min ? Choice{&above, {t, *min}} : Choice{&below, {t, *max}};
}

template <bool above>
Choice clamp_number(const Tensor& t, Scalar bound) {
  static PointwiseOp& op = pointwise_op(above ? "clamp_min_number" : "clamp_max_number");
  return {&op, {t, bound}};
}
template <bool above>
Choice clamp_tensor(const Tensor& t, const Tensor& bound) {
  static PointwiseOp& op = pointwise_op(above ? "clamp_min" : "clamp_max");
  return {&op, {t, bound}};
}

// ---- factors

/// A factor of an operator on integers is cut to an integer, as PyTorch cuts it.
Scalar factor(const Scalar& value, const Operand* in, int n) {
  return category(result_type(in, n)) < 2 && value.kind == Scalar::Float ? Scalar(value.to_int()) : value;
}

Choice addcmul(const Tensor& t, const Tensor& a, const Tensor& b, Scalar value) {
  static PointwiseOp& op = pointwise_op("addcmul_scaled");
  Operand in[] = {t, a, b};
  if (result_type(in, 3) == DType::Bool) fail(ErrorKind::NotImplemented, "\"addcmul\" not implemented for 'Bool'");
  return {&op, {t, a, b, factor(value, in, 3)}};
}

Choice addcdiv(const Tensor& t, const Tensor& a, const Tensor& b, Scalar value) {
  static PointwiseOp& op = pointwise_op("addcdiv_scaled");
  check(category(a.dtype) >= 2 || category(b.dtype) >= 2,
        "Integer division with addcdiv is no longer supported. Write (input + value * torch.trunc(tensor1 / "
        "tensor2)).to(input.dtype) for integers, or "
        "(input + value * tensor1 / tensor2) with a floating point type.");
  return {&op, {t, a, b, value}};
}

// ---- variants

Choice gelu(const Tensor& t, const std::string& approximate) {
  static PointwiseOp &exact = pointwise_op("gelu_none"), &by_tanh = pointwise_op("gelu_tanh");
  check(approximate == "none" || approximate == "tanh", "approximate argument must be either none or tanh, got '",
        approximate, "'.");
  return {approximate == "none" ? &exact : &by_tanh, {t}};
}

Choice logit(const Tensor& t, std::optional<double> eps) {
  static PointwiseOp &plain = pointwise_op("logit_plain"), &bounded = pointwise_op("logit_bounded");
  return eps ? Choice{&bounded, {t, Scalar(*eps)}} : Choice{&plain, {t}};
}

Choice round_whole(const Tensor& t) {
  static PointwiseOp& op = pointwise_op("round");
  return {&op, {t}};
}
Choice round_decimals(const Tensor& t, std::int64_t decimals) {
  static PointwiseOp &finer = pointwise_op("round_finer"), &coarser = pointwise_op("round_coarser");
  if (category(t.dtype) < 2)
    fail(ErrorKind::NotImplemented, "\"round\" with decimals not implemented for '", info(t.dtype).scalar_name, "'");
  if (decimals == 0) return {&pointwise_op("round_whole"), {t}};
  double power = std::pow(10.0, double(decimals < 0 ? -decimals : decimals));
  return {decimals > 0 ? &finer : &coarser, {t, Scalar(power)}};
}

/// What NaN and infinities become: the type's own bounds where infinities are not told.
Choice nan_to_num(const Tensor& t, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  static PointwiseOp &op = pointwise_op("nan_to_num_values"), &same = pointwise_op("nan_to_num_integer");
  if (category(t.dtype) < 2) return {&same, {t}};
  double largest = t.dtype == DType::Float64    ? std::numeric_limits<double>::max()
                   : t.dtype == DType::Float16  ? 65504.0
                   : t.dtype == DType::BFloat16 ? 0x1.fep127
                                                : double(std::numeric_limits<float>::max());
  return {&op, {t, Scalar(nan.value_or(0.0)), Scalar(posinf.value_or(largest)), Scalar(neginf.value_or(-largest))}};
}

/// Of complex numbers, the same of each part.
TensorRef nan_to_num_op(const Tensor& t, std::optional<double> nan, std::optional<double> posinf,
                        std::optional<double> neginf) {
  if (is_complex(t.dtype)) return view_as_complex(*nan_to_num_op(*view_as_real(t), nan, posinf, neginf));
  return Forms<&nan_to_num>::plain(t, nan, posinf, neginf);
}
TensorRef nan_to_num_(Tensor& t, std::optional<double> nan, std::optional<double> posinf,
                      std::optional<double> neginf) {
  TensorRef numbers = as_real_numbers(t);
  Forms<&nan_to_num>::inplace(*numbers, nan, posinf, neginf);
  return TensorRef(&t);
}

// ---- near equality

TensorRef isclose(const Tensor& t, const Tensor& other, double rtol, double atol, bool equal_nan) {
  static PointwiseOp &near = pointwise_op("near"), &near_nan = pointwise_op("near_or_nan");
  check(t.dtype == other.dtype, info(t.dtype).scalar_name, " did not match ", info(other.dtype).scalar_name);
  check(rtol >= 0, "rtol must be greater than or equal to zero, but got ", rtol);
  check(atol >= 0, "atol must be greater than or equal to zero, but got ", atol);
  GradScope off(false);
  if (is_half(t.dtype)) {  // PyTorch rounds what is allowed to the type, too
    static PointwiseOp& plus = pointwise_op("add");
    TensorRef difference = absolute(sub(t, other)),
              allowed = pointwise(plus, {Operand(absolute(mul(other, Scalar(rtol)))), Operand(Scalar(atol))});
    TensorRef same = logical_or(eq(t, other), logical_and(lt(difference, Scalar(HUGE_VAL)), le(difference, allowed)));
    return equal_nan ? logical_or(same, logical_and(isnan_of(t), isnan_of(other))) : same;
  }
  if (category(t.dtype) >= 2) return pointwise(equal_nan ? near_nan : near, {t, other, Scalar(rtol), Scalar(atol)});
  TensorRef same = eq(t, other);
  if (rtol == 0 && atol == 0) return same;
  return logical_or(
      same, pointwise(near, {cast(t, DType::Float64), cast(other, DType::Float64), Scalar(rtol), Scalar(atol)}));
}

bool allclose(const Tensor& t, const Tensor& other, double rtol, double atol, bool equal_nan) {
  return all_true(*isclose(t, other, rtol, atol, equal_nan));
}

// ---- with a dimension

TensorRef glu(const Tensor& t, std::int64_t dim_) {
  static PointwiseOp& op = pointwise_op("glu_halves");
  check(t.ndim > 0, "glu does not support 0-dimensional tensors");
  int dim = wrap_dim(dim_, t.ndim);
  check(t.size(dim) % 2 == 0, "Halving dimension must be even, but dimension ", dim, " is size ", t.size(dim));
  std::int64_t half = t.size(dim) / 2;
  return pointwise(op, {narrow(t, dim, 0, half), narrow(t, dim, half, half)});
}

TensorRef prelu(const Tensor& t, const Tensor& weight) {
  static PointwiseOp& op = pointwise_op("prelu_slopes");
  check(t.dtype == weight.dtype, "prelu: Type promoting not supported. Got ", info(t.dtype).scalar_name, " and ",
        info(weight.dtype).scalar_name);
  if (weight.numel == 1)
    return pointwise(op, {t, weight.ndim ? reshape(weight, Dims(t.ndim > 0 ? t.ndim : 0, 1))
                                         : TensorRef(const_cast<Tensor*>(&weight))});
  check(t.ndim > 0, "Not allow zero-dim input tensor.");
  std::int64_t channels = t.ndim > 1 ? t.size(1) : 1;
  check(channels == weight.numel,
        "Mismatch of parameter numbers and input channel size. Found parameter numbers = ", weight.numel,
        " and channel size = ", channels, ".");
  check(weight.ndim <= 1, "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = ", int(weight.ndim));
  Dims sizes(t.ndim, 1);
  sizes[t.ndim > 1 ? 1 : 0] = weight.numel;
  return pointwise(op, {t, reshape(weight, sizes)});
}

// ---- the operators

template <auto f>
constexpr auto plain = &Forms<f>::plain;
template <auto f>
constexpr auto inplace = &Forms<f>::inplace;

#define RUSHLIGHT_CLAMP(name, text)                                                                    \
  {name "(Tensor self, Tensor? min=None, Tensor? max=None)", plain<&clamp_tensors>, Both | Out, text}, \
      {name "(Tensor self, Scalar? min=None, Scalar? max=None)", plain<&clamp_numbers>, Both | Out},   \
      {name "_(Tensor self, Tensor? min=None, Tensor? max=None)", inplace<&clamp_tensors>, Both}, {    \
    name "_(Tensor self, Scalar? min=None, Scalar? max=None)", inplace<&clamp_numbers>, Both           \
  }
#define RUSHLIGHT_CLAMP_ONE(name, bound, above, text)                                      \
  {name "(Tensor self, Tensor " bound ")", plain<&clamp_tensor<above>>, Both | Out, text}, \
      {name "(Tensor self, Scalar " bound ")", plain<&clamp_number<above>>, Both | Out},   \
      {name "_(Tensor self, Tensor " bound ")", inplace<&clamp_tensor<above>>, Both}, {    \
    name "_(Tensor self, Scalar " bound ")", inplace<&clamp_number<above>>, Both           \
  }

const Define functions[] = {
    RUSHLIGHT_CLAMP(
        "clamp", "Each element, or the bound that it lies beyond. Within [min, max] the derivative is 1, outside 0."),
    RUSHLIGHT_CLAMP("clip", "The same as clamp."),
    RUSHLIGHT_CLAMP_ONE("clamp_min", "min", true, "Each element, or the bound that it lies below."),
    RUSHLIGHT_CLAMP_ONE("clamp_max", "max", false, "Each element, or the bound that it lies above."),
    {"addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)", plain<&addcmul>, Both | Out,
     "self + value * tensor1 * tensor2"},
    {"addcmul_(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)", inplace<&addcmul>, Method},
    {"addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)", plain<&addcdiv>, Both | Out,
     "self + value * tensor1 / tensor2"},
    {"addcdiv_(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)", inplace<&addcdiv>, Method},
    {"gelu(Tensor self, *, str approximate='none')", plain<&gelu>, NnFunction | Out, "x * Phi(x), exactly or by tanh."},
    {"logit(Tensor self, float? eps=None)", plain<&logit>, Both | Out,
     "log(x / (1 - x)), of x clamped to [eps, 1 - eps] where eps is given."},
    {"logit_(Tensor self, float? eps=None)", inplace<&logit>, Both},
    {"nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None)", &nan_to_num_op, Both | Out,
     "NaN becomes 0 and infinities the type's bounds, or what is given."},
    {"nan_to_num_(Tensor self, float? nan=None, float? posinf=None, float? neginf=None)", &nan_to_num_, Both},
    {"round(Tensor self)", plain<&round_whole>, Both | Out,
     "The nearest integer, the even one of two; with decimals, the nearest multiple of 10**-decimals."},
    {"round(Tensor self, *, int decimals)", plain<&round_decimals>, Both | Out},
    {"round_(Tensor self)", inplace<&round_whole>, Both},
    {"round_(Tensor self, *, int decimals)", inplace<&round_decimals>, Both},
    {"isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)", &isclose,
     Both | NoGradient, "|self - other| <= atol + rtol * |other|, element by element."},
    {"allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)", &allclose,
     Both | NoGradient, "Are all elements close?"},
    {"glu(Tensor self, int dim=-1)", &glu, NnFunction | Out, "a * sigmoid(b) of the halves a and b along a dimension."},
    {"prelu(Tensor self, Tensor weight)", &prelu, Both,
     "x where x > 0, else weight * x, with a weight for all or one per channel."},
};
#undef RUSHLIGHT_CLAMP
#undef RUSHLIGHT_CLAMP_ONE

}  // namespace
}  // namespace rushlight
