// Choosing elements by masks.
#include "kernels/mask.h"

#include "operators/operators.h"
#include "operators/partial.h"
#include "operators/registry.h"

namespace rushlight {

namespace {

TensorRef as_mask(const Tensor& condition) {
  if (condition.dtype == DType::Bool) return TensorRef(const_cast<Tensor*>(&condition));
  check(condition.dtype == DType::UInt8,
        "where expected condition to be a boolean tensor, but got a tensor with dtype ",
        info(condition.dtype).scalar_name);
  warn(
      "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future version of "
      "PyTorch. Use a boolean condition instead.");
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

/// C++'s name of the type, which this message shows.
const char* cpp_name(DType d) {
  static const char* names[dtype_count] = {"bool",  "unsigned char", "signed char",         "short int",
                                           "int",   "long int",      "c10::Half",           "c10::BFloat16",
                                           "float", "double",        "c10::complex<float>", "c10::complex<double>"};
  return names[int(d)];
}

void check_mask(const Tensor& mask) {
  check(mask.dtype == DType::Bool, "masked_fill_ only supports boolean masks, but got mask with dtype ",
        cpp_name(mask.dtype));
}

PointwiseOp& fill_operator() {
  static PointwiseOp& op = pointwise_op("masked_fill");
  return op;
}

TensorRef checked_fill(const Tensor& value, DType dtype) {
  check(value.ndim == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
        int(value.ndim), " dimension(s).");
  return cast(value, dtype);
}

}  // namespace

TensorRef masked_fill(const Tensor& t, const Tensor& mask, const Scalar& value) {
  check_mask(mask);
  return pointwise(fill_operator(), {Operand(t), Operand(mask), Operand(as_kind_of(value, t.dtype))});
}

namespace {

TensorRef expanded(const Tensor& t, IntSpan sizes) {
  return equal(t.sizes(), sizes)
             ? TensorRef(const_cast<Tensor*>(&t))
             : make_tensor(Ref<Storage>(t.storage), t.dtype, sizes, broadcast_strides(t, sizes), t.offset);
}

void check_masked_scatter(const Tensor& t, const Tensor& mask, const Tensor& source) {
  check(t.dtype == source.dtype, "masked_scatter: expected self and source to have same dtypes but got",
        info(t.dtype).scalar_name, " and ", info(source.dtype).scalar_name);
  check(mask.dtype == DType::Bool, "masked_scatter_ only supports boolean masks, but got mask with dtype ",
        info(mask.dtype).scalar_name);
}

/// The gradient of masked_scatter's source: what went to its first elements, zeros for the others.
TensorRef scattered_part(const Tensor& g, const Tensor& mask, IntSpan sizes) {
  TensorRef part = masked_select(g, mask);
  std::int64_t numel = count_elements(sizes);
  if (part->numel < numel) part = slice_backward(*part, Dims{numel}, 0, 0, part->numel, 1);
  return view(*part, sizes);
}

const std::uint8_t* mask_bytes(const Tensor& packed_mask) { return packed_mask.read_as<std::uint8_t>(); }
Choice chosen_by(const Tensor& packed_mask) { return {mask_bytes(packed_mask), packed_mask.numel}; }

/// Elements of `to` where the mask is True = those of `source` in order.
void scatter_into(Tensor& to, const Choice& choice, const Tensor& packed_mask, const Tensor& source) {
  TensorRef rows = packed(to), plain = packed(source);
  scatter_masked(choice, mask_bytes(packed_mask), plain->read(), rows->write(), to.item_size());
  if (rows.get() != &to) copy_numbers(to, *rows);
}

}  // namespace

std::int64_t count_true(const Tensor& mask) { return chosen_by(*packed(mask)).count(); }

void put_masked(Tensor& to, const Tensor& mask, const Tensor& values) {
  TensorRef plain_mask = packed(mask);
  scatter_into(to, chosen_by(*plain_mask), *plain_mask, values);
}

TensorRef masked_select(const Tensor& t, const Tensor& mask) {
  check(mask.dtype == DType::Bool, "masked_select: expected BoolTensor for mask");
  Dims sizes = broadcast_sizes(mask.sizes(), t.sizes());
  TensorRef plain_mask = packed(*expanded(mask, sizes)), x = packed(*expanded(t, sizes));
  Choice choice = chosen_by(*plain_mask);
  TensorRef out = empty(Dims{choice.count()}, t.dtype);
  select_masked(choice, mask_bytes(*plain_mask), x->read(), out->write(), t.item_size());
  if (!is_differentiable(t.dtype)) return out;
  return record("MaskedSelectBackward0", out, {&t}, {save_other(mask)}, [sizes, from = Dims(t.sizes())](Vjp& v) {
    TensorRef mask = v.saved(0);
    v.set(0, sum_to_size(*masked_scatter(*zeros(sizes, v.grad()->dtype), *mask, *v.grad()), from));
  });
}

namespace {
template <class Derivative>
TensorRef recorded_scatter(TensorRef out, const Tensor& t, const Tensor& mask, const Tensor& source,
                           Derivative&& derivative) {
  return is_differentiable(t.dtype) ? record("MaskedScatterBackward0", std::move(out), {&t, &source},
                                             {save_other(mask)}, std::forward<Derivative>(derivative))
                                    : out;
}
}  // namespace

TensorRef masked_scatter(const Tensor& t, const Tensor& mask, const Tensor& source) {
  check_masked_scatter(t, mask, source);
  Dims sizes = broadcast_sizes(mask.sizes(), t.sizes());
  TensorRef plain_mask = packed(*expanded(mask, sizes));
  Choice choice = chosen_by(*plain_mask);
  check(source.numel >= choice.count(), "Number of elements of source < number of ones in mask");
  TensorRef out = empty(sizes, t.dtype);
  copy_numbers(*out, t);
  scatter_into(*out, choice, *plain_mask, source);
  return recorded_scatter(out, t, mask, source, [from = Dims(t.sizes()), its = Dims(source.sizes())](Vjp& v) {
    TensorRef mask = v.saved(0);
    if (v.needs(0)) v.set(0, sum_to_size(*masked_fill(*v.grad(), *mask, 0), from));
    if (v.needs(1)) v.set(1, scattered_part(*v.grad(), *mask, its));
  });
}

// ---- the operators

namespace {

TensorRef masked_scatter_(Tensor& t, const Tensor& mask, const Tensor& source) {
  check_masked_scatter(t, mask, source);
  check(mask.ndim <= t.ndim, "expand(CPUBoolType{", to_string(mask.sizes()), "}, size=", to_string(t.sizes()),
        "): the number of sizes provided (", int(t.ndim),
        ") must be greater or equal to the number of dimensions in the tensor (", int(mask.ndim), ")");
  TensorRef wide;
  {
    GradScope off(false);
    wide = expand(mask, t.sizes());
  }
  TensorRef plain_mask = packed(*wide);
  Choice choice = chosen_by(*plain_mask);
  check(source.numel >= choice.count(), "Number of elements of source < number of ones in mask");
  return write_part(
      "MaskedScatterBackward0", {t, "masked_scatter_"}, {&t, &source}, {save_other(mask)},
      [&](Tensor& to) { scatter_into(to, choice, *plain_mask, source); },
      [its = Dims(source.sizes())](Vjp& v) {
        TensorRef mask = v.saved(0);
        if (v.needs(0)) v.set(0, masked_fill(*v.grad(), *mask, 0));
        if (v.needs(1)) v.set(1, scattered_part(*v.grad(), *mask, its));
      });
}

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
TensorRef where_number_tensor(const Tensor& condition, const Scalar& a, const Tensor& b) {
  return where(condition, a, b);
}
TensorRef where_tensor_number(const Tensor& condition, const Tensor& a, const Scalar& b) {
  return where(condition, a, b);
}
TensorRef where_numbers(const Tensor& condition, const Scalar& a, const Scalar& b) { return where(condition, a, b); }
TensorList where_positions(const Tensor& condition) { return nonzero_positions(condition); }

const Define masks[] = {
    {"masked_fill(Tensor self, Tensor mask, Scalar value)", &masked_fill, Both,
     "A number, or a 0-d tensor, where the mask is True."},
    {"masked_fill(Tensor self, Tensor mask, Tensor value)", &masked_fill_tensor, Both},
    {"masked_fill_(Tensor self, Tensor mask, Scalar value)", &masked_fill_inplace, Method, "masked_fill in place."},
    {"masked_fill_(Tensor self, Tensor mask, Tensor value)", &masked_fill_inplace_tensor, Method},
    {"masked_select(Tensor self, Tensor mask)", &masked_select, Both | Out,
     "The elements where the mask is True, as a vector."},
    {"masked_scatter(Tensor self, Tensor mask, Tensor source)", &masked_scatter, Both | Out,
     "Writes the elements of source, in order, where the mask is True."},
    {"masked_scatter_(Tensor self, Tensor mask, Tensor source)", &masked_scatter_, Method, "masked_scatter in place."},
    {"where(Tensor condition)", &where_positions, Function | Out,
     "Elements of one operand where the condition is True, of the other elsewhere; alone: nonzero(as_tuple=True)."},
    {"where(Tensor condition, Tensor input, Tensor other)", &where_tensors, Function | Out},
    {"where(Tensor condition, Scalar self, Tensor other)", &where_number_tensor, Function | Out},
    {"where(Tensor condition, Tensor self, Scalar other)", &where_tensor_number, Function | Out},
    {"where(Tensor condition, Scalar self, Scalar other)", &where_numbers, Function | Out},
};

}  // namespace

}  // namespace rushlight
