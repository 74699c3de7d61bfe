// Arithmetic in C++: pointwise operators by name for derivatives and composites, and powers, which choose among
// several.
#pragma once

#include "operators/pointwise.h"

namespace rushlight {

/// base ** exponent; small whole and half exponents take their own operators.
TensorRef power(const Operand& base, const Operand& exponent, Tensor* out = nullptr);
void power_inplace(Tensor& self, const Operand& exponent);

// clang-format off
#define RUSHLIGHT_UNARY(function, name) \
  inline TensorRef function(const Operand& a) { static PointwiseOp& op = pointwise_op(name); return pointwise(op, {a}); }
#define RUSHLIGHT_BINARY(function, name) \
  inline TensorRef function(const Operand& a, const Operand& b) { static PointwiseOp& op = pointwise_op(name); return pointwise(op, {a, b}); }
RUSHLIGHT_UNARY(neg, "neg")
RUSHLIGHT_UNARY(absolute, "abs")
RUSHLIGHT_UNARY(sign, "sgn")
RUSHLIGHT_UNARY(square, "square")
RUSHLIGHT_UNARY(exponential, "exp")
RUSHLIGHT_UNARY(logarithm, "log")
RUSHLIGHT_UNARY(square_root, "sqrt")
RUSHLIGHT_UNARY(sigmoid, "sigmoid")
RUSHLIGHT_UNARY(isnan_of, "isnan")
RUSHLIGHT_UNARY(logical_not, "logical_not")
RUSHLIGHT_BINARY(sub, "sub")
RUSHLIGHT_BINARY(mul, "mul")
RUSHLIGHT_BINARY(div, "div")
RUSHLIGHT_BINARY(eq, "eq")
RUSHLIGHT_BINARY(ne, "ne")
RUSHLIGHT_BINARY(lt, "lt")
RUSHLIGHT_BINARY(le, "le")
RUSHLIGHT_BINARY(gt, "gt")
RUSHLIGHT_BINARY(ge, "ge")
RUSHLIGHT_BINARY(logical_and, "logical_and")
RUSHLIGHT_BINARY(logical_or, "logical_or")
RUSHLIGHT_BINARY(maximum, "maximum")
RUSHLIGHT_BINARY(minimum, "minimum")
#undef RUSHLIGHT_UNARY
#undef RUSHLIGHT_BINARY
// clang-format on

/// condition (bool) ? a : b
inline TensorRef where(const Operand& condition, const Operand& a, const Operand& b) {
  static PointwiseOp& op = pointwise_op("where");
  return pointwise(op, {condition, a, b});
}

}  // namespace rushlight
