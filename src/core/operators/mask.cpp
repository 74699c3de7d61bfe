// Choosing elements by masks.
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {

namespace {

TensorRef as_mask(const Tensor& condition) {
  if (condition.dtype == DType::Bool) return TensorRef(const_cast<Tensor*>(&condition));
  check(condition.dtype == DType::UInt8, "where expected condition to be a boolean tensor, but got a tensor with dtype ", info(condition.dtype).scalar_name);
  warn("where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version of PyTorch. Use a boolean condition instead.");
  return cast(condition, DType::Bool);
}

}  // namespace

TensorRef where(const Tensor& condition, const Operand& a, const Operand& b) {
  static PointwiseOp& op = pointwise_op("where");
  TensorRef mask = as_mask(condition);
  return pointwise(op, {Operand(*mask), a, b});
}

namespace {

/// The number as masked_fill writes it: of the tensor's kind.
Scalar as_kind_of(const Scalar& value, DType dtype) {
  check_fits(value, dtype);
  if (dtype == DType::Bool) return value.to<bool>();
  if (category(dtype) == 1) return value.to_int();
  return value;
}

void check_mask(const Tensor& mask) {
  check(mask.dtype == DType::Bool, "masked_fill_ only supports boolean masks, but got mask with dtype ", info(mask.dtype).scalar_name);
}

PointwiseOp& fill_operator() {
  static PointwiseOp& op = pointwise_op("masked_fill");
  return op;
}

TensorRef checked_fill(const Tensor& value, DType dtype) {
  check(value.ndim == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ", int(value.ndim), " dimension(s).");
  return cast(value, dtype);
}

}  // namespace

TensorRef masked_fill(const Tensor& t, const Tensor& mask, const Scalar& value) {
  check_mask(mask);
  return pointwise(fill_operator(), {Operand(t), Operand(mask), Operand(as_kind_of(value, t.dtype))});
}

// ---- the operators

namespace {

TensorRef masked_fill_tensor(const Tensor& t, const Tensor& mask, const Tensor& value) {
  check_mask(mask);
  TensorRef v = checked_fill(value, t.dtype);
  return pointwise(fill_operator(), {Operand(t), Operand(mask), Operand(v)});
}
TensorRef masked_fill_inplace(Tensor& t, const Tensor& mask, const Scalar& value) {
  check_mask(mask);
  Operand in[3] = {Operand(t), Operand(mask), Operand(as_kind_of(value, t.dtype))};
  pointwise_inplace(fill_operator(), t, in, "masked_fill_");
  return TensorRef(&t);
}
TensorRef masked_fill_inplace_tensor(Tensor& t, const Tensor& mask, const Tensor& value) {
  check_mask(mask);
  TensorRef v = checked_fill(value, t.dtype);
  Operand in[3] = {Operand(t), Operand(mask), Operand(v)};
  pointwise_inplace(fill_operator(), t, in, "masked_fill_");
  return TensorRef(&t);
}

TensorRef where_tensors(const Tensor& condition, const Tensor& a, const Tensor& b) { return where(condition, a, b); }
TensorRef where_number_tensor(const Tensor& condition, const Scalar& a, const Tensor& b) { return where(condition, a, b); }
TensorRef where_tensor_number(const Tensor& condition, const Tensor& a, const Scalar& b) { return where(condition, a, b); }
TensorRef where_numbers(const Tensor& condition, const Scalar& a, const Scalar& b) { return where(condition, a, b); }
TensorList where_positions(const Tensor& condition) {
  TensorRef rows = nonzero(condition);
  return unbind(*rows, 1);
}

const Define masks[] = {
    {"masked_fill(Tensor self, Tensor mask, Scalar value)", &masked_fill, Both, "A number, or a 0-d tensor, where the mask is True."},
    {"masked_fill(Tensor self, Tensor mask, Tensor value)", &masked_fill_tensor, Both},
    {"masked_fill_(Tensor self, Tensor mask, Scalar value)", &masked_fill_inplace, Method, "masked_fill in place."},
    {"masked_fill_(Tensor self, Tensor mask, Tensor value)", &masked_fill_inplace_tensor, Method},
    {"where(Tensor condition)", &where_positions, Function | Out, "Elements of one operand where the condition is True, of the other elsewhere; alone: nonzero(as_tuple=True)."},
    {"where(Tensor condition, Tensor input, Tensor other)", &where_tensors, Function | Out},
    {"where(Tensor condition, Scalar self, Tensor other)", &where_number_tensor, Function | Out},
    {"where(Tensor condition, Tensor self, Scalar other)", &where_tensor_number, Function | Out},
    {"where(Tensor condition, Scalar self, Scalar other)", &where_numbers, Function | Out},
};

}  // namespace

}  // namespace rushlight
