#include "operators/complex.h"

#include "operators/operators.h"
#include "operators/registry.h"
#include "operators/view_form.h"

namespace rushlight {
namespace {

Dims doubled(IntSpan strides) {
  Dims out(strides);
  for (auto& s : out) s *= 2;
  return out;
}

/// A window of the same memory in numbers of another type.
TensorRef retyped(const Tensor& t, DType dtype, IntSpan sizes, IntSpan strides, std::int64_t offset) {
  TensorRef out = make_tensor(Ref<Storage>(t.storage), dtype, sizes, strides, offset);
  mark_view(*out, const_cast<Tensor&>(t));
  return out;
}

/// A complex tensor of a real one with a last dimension of two, copied where it does not lie as such.
TensorRef paired(const Tensor& t) {
  bool fits = t.stride(t.ndim - 1) == 1 && t.offset % 2 == 0;
  for (int i = 0; i + 1 < t.ndim && fits; ++i) fits = t.stride(i) % 2 == 0;
  return view_as_complex(fits ? t : *contiguous(*clone(t)));
}

}  // namespace

RealWindow::RealWindow(bool pairs, IntSpan sizes_, IntSpan strides_, std::int64_t offset_)
    : sizes(sizes_), strides(strides_), offset(offset_) {
  if (!pairs) return;
  sizes.push_back(2);
  strides = doubled(strides);
  strides.push_back(1);
  offset *= 2;
}

TensorRef view_as_real(const Tensor& t) {
  check(is_complex(t.dtype), "view_as_real is only supported for complex tensors");
  RealWindow w(true, t.sizes(), t.strides(), t.offset);
  return record("ViewAsRealBackward0", retyped(t, real_of(t.dtype), w.sizes, w.strides, w.offset), {&t}, {},
                [](Vjp& v) { v.set(0, paired(*v.grad())); });
}

TensorRef view_as_complex(const Tensor& t) {
  check(is_floating(t.dtype) && t.dtype != DType::BFloat16,
        "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: ",
        info(t.dtype).scalar_name);
  if (t.dtype == DType::Float16)
    fail(ErrorKind::NotImplemented, "rushlight has no complex numbers of half precision (torch.complex32)");
  check(t.ndim > 0, "Input tensor must have one or more dimensions");
  int last = t.ndim - 1;
  check(t.size(last) == 2, "Tensor must have a last dimension of size 2");
  check(t.stride(last) == 1, "Tensor must have a last dimension with stride 1");
  Dims sizes(t.sizes()), strides(t.strides());
  sizes.pop_back();
  strides.pop_back();
  for (auto& s : strides) {
    check(s % 2 == 0, "Tensor must have a stride divisible by 2 for all but last dimension");
    s /= 2;
  }
  check(t.offset % 2 == 0, "Tensor must have a storage_offset divisible by 2");
  return record("ViewAsComplexBackward0", retyped(t, complex_of(t.dtype), sizes, strides, t.offset / 2), {&t}, {},
                [](Vjp& v) { v.set(0, view_as_real(*v.grad())); });
}

TensorRef as_real_numbers(const Tensor& t) {
  return is_complex(t.dtype) ? view_as_real(t) : TensorRef(const_cast<Tensor*>(&t));
}
TensorRef as_numbers_of(DType dtype, const Tensor& real) {
  return is_complex(dtype) ? paired(real) : TensorRef(const_cast<Tensor*>(&real));
}

TensorRef real_part(const Tensor& t) {
  return is_complex(t.dtype) ? select(*view_as_real(t), -1, 0) : TensorRef(const_cast<Tensor*>(&t));
}
TensorRef imaginary_part(const Tensor& t) {
  check(is_complex(t.dtype), "imag is not implemented for tensors with non-complex dtypes.");
  return select(*view_as_real(t), -1, 1);
}

namespace {

void check_parts(const Tensor& a, const Tensor& b) {
  auto fits = [](const Tensor& t) { return is_floating(t.dtype) && t.dtype != DType::BFloat16; };
  check(fits(a) && fits(b), "Expected both inputs to be Half, Float or Double tensors but got ",
        info(a.dtype).scalar_name, " and ", info(b.dtype).scalar_name);
  check(a.dtype == b.dtype, "Expected object of scalar type ", info(a.dtype).scalar_name, " but got scalar type ",
        info(b.dtype).scalar_name, " for second argument");
  if (a.dtype == DType::Float16)
    fail(ErrorKind::NotImplemented, "rushlight has no complex numbers of half precision (torch.complex32)");
}

/// real + i imag without history.
TensorRef of_parts(const Tensor& real, const Tensor& imag) {
  GradScope off(false);
  TensorRef out = empty(broadcast_sizes(real.sizes(), imag.sizes()), complex_of(real.dtype));
  copy_numbers(*real_part(*out), real);
  copy_numbers(*imaginary_part(*out), imag);
  return out;
}

}  // namespace

TensorRef complex_of_parts(const Tensor& real, const Tensor& imag) {
  check_parts(real, imag);
  return record("ComplexBackward0", of_parts(real, imag), {&real, &imag}, {},
                [a = Dims(real.sizes()), b = Dims(imag.sizes())](Vjp& v) {
                  if (v.needs(0)) v.set(0, sum_to_size(*real_part(*v.grad()), a));
                  if (v.needs(1)) v.set(1, sum_to_size(*imaginary_part(*v.grad()), b));
                });
}

namespace {

TensorRef cosine(const Tensor& t) {
  static PointwiseOp& op = pointwise_op("cos");
  return pointwise(op, {Operand(t)});
}
TensorRef sine(const Tensor& t) {
  static PointwiseOp& op = pointwise_op("sin");
  return pointwise(op, {Operand(t)});
}

TensorRef polar(const Tensor& abs, const Tensor& angle) {
  check_parts(abs, angle);
  TensorRef out;
  {
    GradScope off(false);
    out = of_parts(*mul(abs, cosine(angle)), *mul(abs, sine(angle)));
  }
  return record("PolarBackward0", std::move(out), {&abs, &angle}, {save_in(abs, 0), save_in(angle, 1)}, [](Vjp& v) {
    TensorRef abs = v.saved(0), angle = v.saved(1), sines = sine(*angle), cosines = cosine(*angle);
    TensorRef x = real_part(*v.grad()), y = imaginary_part(*v.grad());
    if (v.needs(0)) v.set(0, sum_to_size(*add(*mul(x, cosines), *mul(y, sines)), abs->sizes()));
    if (v.needs(1)) v.set(1, sum_to_size(*mul(abs, sub(mul(y, cosines), mul(x, sines))), angle->sizes()));
  });
}

TensorRef conj(const Tensor& t) {
  if (!is_complex(t.dtype)) return TensorRef(const_cast<Tensor*>(&t));
  TensorRef out;
  {
    GradScope off(false);
    out = conjugate(t);
  }
  return record("ConjBackward0", std::move(out), {&t}, {}, [](Vjp& v) { v.set(0, conj(*v.grad())); });
}

const Define complex_numbers[] = {
    {"view_as_real(Tensor self)", &view_as_real, Function,
     "A view of complex numbers as real ones, with a last dimension of two: real and imaginary parts."},
    {"view_as_complex(Tensor self)", &view_as_complex, Function,
     "A view of real numbers as complex ones, whose parts are the last dimension, of two."},
    {"view_as_real_copy(Tensor self)", copied<&view_as_real>, Function | Out, "A copy of view_as_real."},
    {"view_as_complex_copy(Tensor self)", copied<&view_as_complex>, Function | Out, "A copy of view_as_complex."},
    {"real(Tensor self)", &real_part, Function, "A view of the real part: of a real tensor, itself."},
    {"imag(Tensor self)", &imaginary_part, Function, "A view of the imaginary part of a complex tensor."},
    {"complex(Tensor real, Tensor imag)", &complex_of_parts, Function | Out, "Complex numbers of their parts."},
    {"polar(Tensor abs, Tensor angle)", &polar, Function | Out, "Complex numbers of their sizes and angles."},
    {"conj(Tensor self)", &conj, Both, "The conjugates: of a real tensor, itself."},
};

}  // namespace

}  // namespace rushlight
