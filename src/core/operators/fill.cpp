// Overwriting a tensor with one number.
#include "operators/operators.h"
#include "operators/partial.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

/// The target with every element set; of a tensor `value` gets the sum of the gradient.
TensorRef filled(Target target, const Scalar& number, const Tensor* value) {
  const Tensor& self = target.self;
  target.may_overlap = true;
  if (!value) {
    check_fits(number, self.dtype);
    return write_part(
        "FillBackward0", target, {&self}, {}, [&](Tensor& to) { fill_numbers(to, number); },
        [](Vjp& v) { v.set(0, zeros_like(*v.grad())); });
  }
  return write_part(
      "FillBackward1", target, {&self, value}, {}, [&](Tensor& to) { fill_numbers(to, number); },
      [dtype = value->dtype](Vjp& v) {
        if (v.needs(0)) v.set(0, zeros_like(*v.grad()));
        if (v.needs(1)) v.set(1, cast(*sum(*v.grad(), {}), dtype));
      });
}

/// The number of a 0-d tensor; a real tensor takes the real part of a complex one.
Scalar number_of(const Tensor& value, const Tensor& target) {
  check(value.ndim == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", int(value.ndim),
        " dimensions.");
  Scalar number = item(value);
  return number.kind == Scalar::Complex && !is_complex(target.dtype) ? Scalar(number.real) : number;
}

TensorRef fill(const Tensor& t, const Scalar& value) { return filled(t, value, nullptr); }
TensorRef fill_tensor(const Tensor& t, const Tensor& value) { return filled(t, number_of(value, t), &value); }
TensorRef fill_(Tensor& t, const Scalar& value) { return filled({t, "fill_"}, value, nullptr); }
TensorRef fill_tensor_(Tensor& t, const Tensor& value) { return filled({t, "fill_"}, number_of(value, t), &value); }
TensorRef zero_(Tensor& t) {
  Target target(t, "zero_");
  target.may_overlap = true;
  return write_part(
      "ZeroBackward0", target, {&t}, {}, [](Tensor& to) { fill_numbers(to, 0); },
      [](Vjp& v) { v.set(0, zeros_like(*v.grad())); });
}

/// Sets the diagonal of a tensor whose dimensions are equal, or of a matrix; `wrap`: again below, in a tall one.
TensorRef fill_diagonal_(Tensor& t, const Scalar& value, bool wrap) {
  check(t.ndim >= 2, "dimensions must larger than 1");
  std::int64_t n = t.size(0), step = 0;
  for (int i = 0; i < t.ndim; ++i) {
    check(t.ndim == 2 || t.size(i) == n, "all dimensions of input must be of equal length");
    n = std::min(n, t.size(i));
    step += t.stride(i);
  }
  TensorRef line = as_strided(t, Dims{n}, Dims{step}, t.offset);
  filled({*line, "fill_diagonal_"}, value, nullptr);
  if (!wrap || t.ndim != 2 || t.size(0) <= t.size(1) + 1) return TensorRef(&t);
  std::int64_t columns = t.size(1), period = columns + 1;
  for (std::int64_t row = period; row < t.size(0); row += period) {
    TensorRef below = as_strided(t, Dims{std::min(columns, t.size(0) - row)}, Dims{step}, t.offset + row * t.stride(0));
    filled({*below, "fill_diagonal_"}, value, nullptr);
  }
  return TensorRef(&t);
}

const Define fills[] = {
    {"fill(Tensor self, Tensor value)", &fill_tensor, Function,
     "A copy with every element set to a number or a 0-d tensor."},
    {"fill(Tensor self, Scalar value)", &fill, Function},
    {"fill_(Tensor self, Scalar value)", &fill_, Both, "Sets every element."},
    {"fill_(Tensor self, Tensor value)", &fill_tensor_, Both},
    {"zero_(Tensor self)", &zero_, Both, "Sets every element to 0."},
    {"fill_diagonal_(Tensor self, Scalar fill_value, bool wrap=False)", &fill_diagonal_, Method,
     "Sets the main diagonal."},
};

}  // namespace

}  // namespace rushlight
