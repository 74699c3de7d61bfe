#include "operators/arithmetic.h"

#include "operators/operators.h"

namespace rushlight {
namespace {

void refuse_negative_power(const Operand& base, const Operand& exponent) {
  if (!base.tensor || exponent.tensor || category(base.tensor->dtype) >= 2) return;
  check(!exponent.number.is_integral() || exponent.number.integer >= 0,
        "Integers to negative integer powers are not allowed.");
}

/// The operator for a number as exponent, or null where the general one serves.
PointwiseOp* special_power(const Operand& base, const Operand& exponent) {
  static PointwiseOp &square = pointwise_op("pow_2"), &cube = pointwise_op("pow_3"), &root = pointwise_op("pow_half"),
                     &inverse = pointwise_op("pow_minus_1");
  if (!base.tensor || exponent.tensor) return nullptr;
  const Scalar& e = exponent.number;
  bool keeps_type = e.kind != Scalar::Complex && int(e.kind) <= category(base.tensor->dtype);
  if (!keeps_type || base.tensor->dtype == DType::Bool) return nullptr;
  if (e.is(2)) return &square;
  if (e.is(3)) return &cube;
  if (!is_differentiable(base.tensor->dtype)) return nullptr;
  if (e.is(0.5)) return &root;
  if (e.is(-1)) return &inverse;
  return nullptr;
}

PointwiseOp& general_power(const Operand& base, const Operand& exponent) {
  static PointwiseOp &both = pointwise_op("pow"), &number = pointwise_op("pow_number"),
                     &of_number = pointwise_op("pow_of_number");
  return !exponent.tensor ? number : !base.tensor ? of_number : both;
}

}  // namespace

TensorRef power(const Operand& base, const Operand& exponent, Tensor* out) {
  refuse_negative_power(base, exponent);
  if (PointwiseOp* op = special_power(base, exponent)) return pointwise(*op, &base, out);
  Operand in[2] = {base, exponent};
  return pointwise(general_power(base, exponent), in, out);
}

void power_inplace(Tensor& self, const Operand& exponent) {
  Operand in[2] = {Operand(self), exponent};
  refuse_negative_power(in[0], exponent);
  if (PointwiseOp* op = special_power(in[0], exponent)) return pointwise_inplace(*op, self, in, "pow_");
  pointwise_inplace(general_power(in[0], exponent), self, in, "pow_");
}

}  // namespace rushlight
