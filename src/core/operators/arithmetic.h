// Arithmetic that chooses among pointwise operators: powers, scaled sums, rounding divisions.
#pragma once

#include "operators/pointwise.h"

namespace rushlight {

/// base ** exponent; small whole and half exponents take their own operators.
TensorRef power(const Operand& base, const Operand& exponent, Tensor* out = nullptr);
void power_inplace(Tensor& self, const Operand& exponent);

}  // namespace rushlight
