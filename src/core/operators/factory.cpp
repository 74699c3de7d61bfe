#include "operators/factory.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/nest.h"
#include "kernels/parallel.h"
#include "operators/operators.h"
#include "operators/registry.h"
#include "tensor/format.h"

namespace rushlight {

namespace {

const char* type_name(DType d) {
  static const char* names[dtype_count] = {"bool",
                                           "uint8_t",
                                           "int8_t",
                                           "int16_t",
                                           "int",
                                           "int64_t",
                                           "c10::Half",
                                           "c10::BFloat16",
                                           "float",
                                           "double",
                                           "c10::complex<float>",
                                           "c10::complex<double>"};
  return names[int(d)];
}

template <class T>
bool holds(const Scalar& v) {
  if constexpr (is_complex_type<T>) {
    return true;
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (v.is_integral()) {
      // unsigned types take negative numbers of their magnitude, which wrap
      std::int64_t low = std::is_signed_v<T> ? std::int64_t(Limits::lowest()) : -std::int64_t(Limits::max());
      return v.integer >= low && v.integer <= std::int64_t(Limits::max());
    }
    double low = std::is_signed_v<T> ? double(Limits::lowest()) : -double(Limits::max());
    return v.real >= low && v.real <= double(Limits::max());
  } else {
    double x = v.to_double();
    double greatest = std::is_same_v<T, double>     ? HUGE_VAL
                      : std::is_same_v<T, Half>     ? 65504.0
                      : std::is_same_v<T, BFloat16> ? 0x1.fep127
                                                    : double(std::numeric_limits<float>::max());
    return !std::isfinite(x) || std::fabs(x) <= greatest;
  }
}

}  // namespace

void check_fits(const Scalar& value, DType dtype) {
  if (dtype == DType::Bool) return;
  bool fits = visit_dtype(dtype, [&]<class T>() { return holds<T>(value); }) &&
              (value.kind != Scalar::Complex || value.imag == 0 || is_complex(dtype));
  check(fits, "value cannot be converted to type ", type_name(dtype), " without overflow");
}

void fill_numbers(Tensor& t, const Scalar& value) {
  if (t.numel == 0) return;
  std::byte element[16];
  value.store(t.dtype, element);
  char* base = reinterpret_cast<char*>(t.write());
  std::int64_t item = t.item_size();
  const std::int64_t* strides[] = {t.strides().data()};
  Nest nest(t.sizes(), strides, &item, 1);
  visit_width(item, [&]<class T>() {
    T v;
    std::memcpy(&v, element, sizeof v);
    parallel_for(nest.numel, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      nest.run(&base, begin, end, [&](char** p, std::int64_t n, const std::int64_t* steps) {
        if (steps[0] == std::int64_t(sizeof(T)))
          std::fill_n(reinterpret_cast<T*>(p[0]), n, v);
        else
          for (std::int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(p[0] + i * steps[0]) = v;
      });
    });
  });
}

TensorRef full(IntSpan sizes, const Scalar& value, DType dtype) {
  TensorRef t = empty(sizes, dtype);
  fill_numbers(*t, value);
  return t;
}

TensorRef zeros(IntSpan sizes, DType dtype) {
  TensorRef t = empty(sizes, dtype);
  if (t->numel * t->item_size() <= 4096)
    std::memset(t->write(), 0, std::size_t(t->numel * t->item_size()));
  else
    fill_numbers(*t, 0);
  return t;
}

TensorRef ones(IntSpan sizes, DType dtype) { return full(sizes, 1, dtype); }

TensorRef empty_in(IntSpan sizes, DType dtype, MemoryFormat format) {
  if (format == MemoryFormat::ChannelsLast || format == MemoryFormat::ChannelsLast3d)
    return empty_strided(sizes, format_strides(sizes, format), dtype);
  return empty(sizes, dtype);
}

TensorRef empty_like_in(const Tensor& t, DType dtype, MemoryFormat format) {
  return format == MemoryFormat::Absent || format == MemoryFormat::Preserve ? empty_like(t, dtype)
                                                                            : empty_in(t.sizes(), dtype, format);
}

TensorRef zeros_like(const Tensor& t) {
  TensorRef out = empty_like(t, t.dtype);
  fill_numbers(*out, 0);
  return out;
}

TensorRef ones_like(const Tensor& t) {
  TensorRef out = empty_like(t, t.dtype);
  fill_numbers(*out, 1);
  return out;
}

TensorRef scalar_tensor(const Scalar& value, DType dtype) { return full({}, value, dtype); }

TensorRef arange(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype) {
  check(!step.is(0), "step must be nonzero");
  bool integral = start.is_integral() && end.is_integral() && step.is_integral();
  double a = start.to_double(), b = end.to_double(), s = step.to_double();
  check(std::isfinite(a) && std::isfinite(b), "unsupported range: ", a, " -> ", b);
  check(!std::isnan(s), "step must be a number, got nan");
  check((s > 0 && b >= a) || (s < 0 && b <= a), "upper bound and lower bound inconsistent with step sign");
  std::int64_t n;
  if (integral) {
    std::int64_t i = start.to_int(), e = end.to_int(), d = step.to_int();
    n = d > 0 ? (e - i + d - 1) / d : (i - e - d - 1) / -d;
  } else {
    double size = std::ceil((b - a) / s);
    check(size >= 0 && size <= 9.2e18, "invalid size, possible overflow?");
    n = std::int64_t(size);
  }
  TensorRef out = empty(Dims{n}, dtype);
  visit_dtype(dtype, [&]<class T>() {
    T* p = out->write_as<T>();
    for (std::int64_t i = 0; i < n; ++i) {
      if (integral)
        p[i] = Scalar(start.to_int() + i * step.to_int()).to<T>();
      else if constexpr (std::is_same_v<T, float>)
        p[i] = float(a + s * double(i));
      else
        p[i] = Scalar(a + s * double(i)).to<T>();
    }
  });
  return out;
}

void check_requires_grad(DType dtype, bool requires_grad) {
  check(!requires_grad || is_differentiable(dtype),
        "Only Tensors of floating point and complex dtype can require gradients");
}

TensorRef as_leaf(TensorRef t, bool requires_grad) {
  check_requires_grad(t->dtype, requires_grad);
  if (!requires_grad) return t;
  t->set(RequiresGrad, true);
  return t;
}

// ---- the operators

namespace {

using OptionalType = std::optional<DType>;

TensorRef empty_op(const Dims& size, OptionalType dtype, Layout, Device, bool requires_grad, bool,
                   MemoryFormat format) {
  check(format != MemoryFormat::Preserve,
        "empty(): the memory format torch.preserve_format is for operators that have an input to follow");
  return as_leaf(empty_in(size, dtype.value_or(default_dtype), format), requires_grad);
}
TensorRef zeros_op(const Dims& size, OptionalType dtype, Layout, Device, bool requires_grad, bool) {
  return as_leaf(zeros(size, dtype.value_or(default_dtype)), requires_grad);
}
TensorRef ones_op(const Dims& size, OptionalType dtype, Layout, Device, bool requires_grad, bool) {
  return as_leaf(ones(size, dtype.value_or(default_dtype)), requires_grad);
}

TensorRef filled(TensorRef t, const Scalar& value, bool requires_grad) {
  check_fits(value, t->dtype);
  fill_numbers(*t, value);
  return as_leaf(std::move(t), requires_grad);
}
TensorRef full_op(const Dims& size, const Scalar& value, OptionalType dtype, Layout, Device, bool requires_grad, bool) {
  return filled(empty(size, dtype.value_or(value.dtype())), value, requires_grad);
}
TensorRef empty_like_op(const Tensor& t, OptionalType dtype, Layout, Device, bool requires_grad, bool,
                        MemoryFormat format) {
  return as_leaf(empty_like_in(t, dtype.value_or(t.dtype), format), requires_grad);
}
TensorRef zeros_like_op(const Tensor& t, OptionalType dtype, Layout, Device, bool requires_grad, bool,
                        MemoryFormat format) {
  return filled(empty_like_in(t, dtype.value_or(t.dtype), format), 0, requires_grad);
}
TensorRef ones_like_op(const Tensor& t, OptionalType dtype, Layout, Device, bool requires_grad, bool,
                       MemoryFormat format) {
  return filled(empty_like_in(t, dtype.value_or(t.dtype), format), 1, requires_grad);
}
TensorRef full_like_op(const Tensor& t, const Scalar& value, OptionalType dtype, Layout, Device, bool requires_grad,
                       bool, MemoryFormat format) {
  return filled(empty_like_in(t, dtype.value_or(t.dtype), format), value, requires_grad);
}

TensorRef new_empty_op(const Tensor& t, const Dims& size, OptionalType dtype, Layout, Device, bool requires_grad,
                       bool) {
  return as_leaf(empty(size, dtype.value_or(t.dtype)), requires_grad);
}
TensorRef new_zeros_op(const Tensor& t, const Dims& size, OptionalType dtype, Layout, Device, bool requires_grad,
                       bool) {
  return as_leaf(zeros(size, dtype.value_or(t.dtype)), requires_grad);
}
TensorRef new_ones_op(const Tensor& t, const Dims& size, OptionalType dtype, Layout, Device, bool requires_grad, bool) {
  return as_leaf(ones(size, dtype.value_or(t.dtype)), requires_grad);
}
TensorRef new_full_op(const Tensor& t, const Dims& size, const Scalar& value, OptionalType dtype, Layout, Device,
                      bool requires_grad, bool) {
  return filled(empty(size, dtype.value_or(t.dtype)), value, requires_grad);
}
TensorRef empty_strided_op(const Dims& size, const Dims& stride, OptionalType dtype, Layout, Device, bool requires_grad,
                           bool) {
  check(size.size() == stride.size(), "mismatch in length of strides and shape");
  return as_leaf(empty_strided(size, stride, dtype.value_or(default_dtype)), requires_grad);
}
TensorRef new_empty_strided_op(const Tensor& t, const Dims& size, const Dims& stride, OptionalType dtype, Layout,
                               Device, bool requires_grad, bool) {
  check(size.size() == stride.size(), "mismatch in length of strides and shape");
  return as_leaf(empty_strided(size, stride, dtype.value_or(t.dtype)), requires_grad);
}

DType range_type(const Scalar& a, const Scalar& b, const Scalar& c, OptionalType dtype) {
  if (dtype) return *dtype;
  return a.is_integral() && b.is_integral() && c.is_integral() ? DType::Int64 : default_dtype;
}
TensorRef arange_end(const Scalar& end, OptionalType dtype, Layout, Device, bool requires_grad, bool) {
  return as_leaf(arange(0, end, 1, range_type(0, end, 1, dtype)), requires_grad);
}
TensorRef arange_op(const Scalar& start, const Scalar& end, const Scalar& step, OptionalType dtype, Layout, Device,
                    bool requires_grad, bool) {
  return as_leaf(arange(start, end, step, range_type(start, end, step, dtype)), requires_grad);
}

TensorRef fill_op(Tensor& t, const Scalar& value) {
  check_inplace(t, false);
  Ref<Node> node;
  if (needs_record(t)) {
    const Tensor* inputs[] = {&t};
    node = Ref<Node>::adopt(
        make_lambda_node("FillBackward0", inputs, {}, 1, [](Vjp& v) { v.set(0, zeros_like(*v.grad())); }));
  }
  fill_numbers(t, value);
  finish_inplace(t, std::move(node), "fill_");
  return TensorRef(&t);
}
TensorRef zero_op(Tensor& t) { return fill_op(t, 0); }

const Define factories[] = {
    {"empty(int[] size, *, " RUSHLIGHT_FACTORY ", memory_format memory_format=None)", &empty_op,
     Function | Out | NoGradient, "Uninitialised numbers."},
    {"zeros(int[] size, *, " RUSHLIGHT_FACTORY ")", &zeros_op, Function | Out | NoGradient, "Zeros."},
    {"ones(int[] size, *, " RUSHLIGHT_FACTORY ")", &ones_op, Function | Out | NoGradient, "Ones."},
    {"full(int[] size, Scalar fill_value, *, " RUSHLIGHT_FACTORY ")", &full_op, Function | Out | NoGradient,
     "One number everywhere."},
    {"empty_like(Tensor self, *, " RUSHLIGHT_FACTORY ", memory_format memory_format=None)", &empty_like_op,
     Function | NoGradient, "Uninitialised, shaped like another tensor."},
    {"zeros_like(Tensor self, *, " RUSHLIGHT_FACTORY ", memory_format memory_format=None)", &zeros_like_op,
     Function | NoGradient, "Zeros, shaped like another tensor."},
    {"ones_like(Tensor self, *, " RUSHLIGHT_FACTORY ", memory_format memory_format=None)", &ones_like_op,
     Function | NoGradient, "Ones, shaped like another tensor."},
    {"full_like(Tensor self, Scalar fill_value, *, " RUSHLIGHT_FACTORY ", memory_format memory_format=None)",
     &full_like_op, Function | NoGradient, "One number, shaped like another tensor."},
    {"new_empty(Tensor self, int[] size, *, " RUSHLIGHT_FACTORY ")", &new_empty_op, Method | NoGradient,
     "Uninitialised, of this tensor's type."},
    {"new_zeros(Tensor self, int[] size, *, " RUSHLIGHT_FACTORY ")", &new_zeros_op, Method | NoGradient,
     "Zeros of this tensor's type."},
    {"new_ones(Tensor self, int[] size, *, " RUSHLIGHT_FACTORY ")", &new_ones_op, Method | NoGradient,
     "Ones of this tensor's type."},
    {"new_full(Tensor self, int[] size, Scalar fill_value, *, " RUSHLIGHT_FACTORY ")", &new_full_op,
     Method | NoGradient, "One number everywhere, of this tensor's type."},
    {"empty_strided(int[] size, int[] stride, *, " RUSHLIGHT_FACTORY ")", &empty_strided_op, Function | NoGradient,
     "Uninitialised numbers with these strides."},
    {"new_empty_strided(Tensor self, int[] size, int[] stride, *, " RUSHLIGHT_FACTORY ")", &new_empty_strided_op,
     Method | NoGradient, "Uninitialised, of this tensor's type, with these strides."},
    {"arange(Scalar end, *, " RUSHLIGHT_FACTORY ")", &arange_end, Function | Out | NoGradient,
     "start, start + step, ... below end."},
    {"arange(Scalar start, Scalar end, Scalar step=1, *, " RUSHLIGHT_FACTORY ")", &arange_op,
     Function | Out | NoGradient},
    {"fill_(Tensor self, Scalar value)", &fill_op, Both, "Sets every element."},
    {"zero_(Tensor self)", &zero_op, Both, "Sets every element to 0."},
};

}  // namespace

}  // namespace rushlight
