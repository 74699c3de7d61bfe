// Operators composed of special functions and powers, and the parts of floating numbers.
#include <cmath>
#include <numbers>

#include "operators/line.h"
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

TensorRef polygamma(std::int64_t n, const Tensor& t) {
  static PointwiseOp &first = pointwise_op("digamma"), &further = pointwise_op("polygamma_of");
  check(n >= 0, "polygamma(n, x) does not support negative n.");
  return n == 0 ? pointwise(first, {Operand(t)}) : pointwise(further, {Operand(t), Operand(double(n))});
}

/// log pi^(p(p-1)/4) + sum over j < p of log gamma(x - j/2)
TensorRef mvlgamma(const Tensor& t, std::int64_t p) {
  static PointwiseOp &log_gamma = pointwise_op("lgamma"), &minus = pointwise_op("sub"), &plus = pointwise_op("add");
  check(t.dtype != DType::Bool, "The input tensor may not be a boolean tensor.");
  check(p >= 1, "p has to be greater than or equal to 1");
  TensorRef sum = pointwise(log_gamma, {Operand(t)});
  for (std::int64_t j = 1; j < p; ++j) {
    TensorRef shifted = pointwise(minus, {Operand(t), Operand(0.5 * double(j))});
    sum = pointwise(plus, {Operand(sum), Operand(pointwise(log_gamma, {Operand(shifted)}))});
  }
  double constant = 0.25 * double(p) * double(p - 1) * std::log(std::numbers::pi);
  return p > 1 ? pointwise(plus, {Operand(sum), Operand(constant)}) : sum;
}

/// The power in double precision (complex128 of complex numbers).
DType precise_type(const Operand& base, const Operand& exponent) {
  Operand both[2] = {base, exponent};
  return is_complex(result_type(both, 2)) ? DType::Complex128 : DType::Float64;
}
Operand precise(const Operand& a, DType dtype, TensorRef& kept) {
  if (!a.tensor) return a;
  kept = cast(*a.tensor, dtype);
  return kept;
}
TensorRef float_power_of(const Operand& base, const Operand& exponent) {
  DType dtype = precise_type(base, exponent);
  TensorRef a, b;
  return power(precise(base, dtype, a), precise(exponent, dtype, b));
}
TensorRef float_power(const Tensor& t, const Tensor& exponent) { return float_power_of(t, exponent); }
TensorRef float_power_number(const Tensor& t, const Scalar& exponent) { return float_power_of(t, exponent); }
TensorRef float_power_of_number(const Scalar& base, const Tensor& exponent) { return float_power_of(base, exponent); }

void check_precise(const Tensor& t, const Operand& exponent) {
  DType needed = precise_type(t, exponent);
  check(t.dtype == needed, "the base given to float_power_ has dtype ", info(t.dtype).scalar_name,
        " but the operation's result requires dtype ", info(needed).scalar_name);
}
TensorRef float_power_inplace(Tensor& t, const Tensor& exponent) {
  check_precise(t, exponent);
  power_inplace(t, exponent);
  return TensorRef(&t);
}
TensorRef float_power_number_inplace(Tensor& t, const Scalar& exponent) {
  check_precise(t, exponent);
  power_inplace(t, exponent);
  return TensorRef(&t);
}

/// In the promoted type of both, of half types computed in float.
TensorRef ldexp(const Tensor& t, const Tensor& other) {
  Operand both[2] = {t, other};
  DType d = result_type(both, 2);
  if (category(d) < 2) d = default_dtype;
  DType wide = is_half(d) ? DType::Float32 : d;
  return cast(*mul(cast(t, wide), power(Scalar(2.0), cast(other, wide))), d);
}

std::tuple<TensorRef, TensorRef> frexp(const Tensor& t) {
  check(is_floating(t.dtype), "torch.frexp() only supports floating-point dtypes");
  TensorRef x = packed(t), mantissa = empty(t.sizes(), t.dtype), exponent = empty(t.sizes(), DType::Int32);
  visit_floating(t.dtype, "frexp", [&]<class T>() {
    auto* from = x->read_as<T>();
    auto* fraction = mantissa->write_as<T>();
    auto* power_of_two = exponent->write_as<std::int32_t>();
    for (std::int64_t i = 0; i < t.numel; ++i) {
      int e = 0;
      if constexpr (std::is_same_v<T, double>)
        fraction[i] = std::frexp(from[i], &e);
      else
        fraction[i] = T(std::frexp(float(from[i]), &e));
      power_of_two[i] = e;
    }
  });
  TensorRef out = record("FrexpBackward0", mantissa, {&t}, {save_other(*exponent)}, [](Vjp& v) {
    v.set(0, div(v.grad(), power(Scalar(2.0), cast(*v.saved(0), v.grad()->dtype))));
  });
  return {out, exponent};
}

const Define specials[] = {
    {"polygamma(int n, Tensor self)", &polygamma, Function | Out,
     "The derivative of order n of digamma, itself of order 0."},
    {"mvlgamma(Tensor self, int p)", &mvlgamma, Both | Out | Inplace,
     "The logarithm of the multivariate gamma function of dimension p."},
    {"float_power(Tensor self, Tensor exponent)", &float_power, Both | Out,
     "The power computed in double precision, whatever the operands' types."},
    {"float_power(Tensor self, Scalar exponent)", &float_power_number, Both | Out, ""},
    {"float_power(Scalar self, Tensor exponent)", &float_power_of_number, Function | Out, ""},
    {"float_power_(Tensor self, Tensor exponent)", &float_power_inplace, Method,
     "The power in place; the tensor is of double precision already."},
    {"float_power_(Tensor self, Scalar exponent)", &float_power_number_inplace, Method, ""},
    {"ldexp(Tensor self, Tensor other)", &ldexp, Both | Out | Inplace, "self times 2 to the power other."},
    {"frexp(Tensor self)",
     &frexp,
     Both | Out,
     "The fraction, of size in [1/2, 1), and the whole exponent of 2 of floating numbers.",
     {"mantissa", "exponent"}},
};

}  // namespace
}  // namespace rushlight
