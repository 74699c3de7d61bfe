#include "operators/factory.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/fill.h"
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
  visit_width(item, [&]<class T>() {
    T v;
    std::memcpy(&v, element, sizeof v);
    if (t.numel * item <= 4096 && t.is_contiguous()) return fill_run(base, std::size_t(t.numel), v);
    const std::int64_t* strides[] = {t.strides().data()};
    Nest nest(t.sizes(), strides, &item, 1);
    parallel_for(nest.numel, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      nest.run(&base, begin, end, [&](char** p, std::int64_t n, const std::int64_t* steps) {
        if (steps[0] == std::int64_t(sizeof(T)))
          fill_run(p[0], std::size_t(n), v);
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
  if (format != MemoryFormat::Absent && format != MemoryFormat::Preserve) return empty_in(t.sizes(), dtype, format);
  return t.numel ? empty_like(t, dtype) : empty_strided(t.sizes(), t.strides(), dtype);
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
  check(format != MemoryFormat::Preserve, "unsupported memory format Preserve");
  return as_leaf(empty_in(size, dtype.value_or(default_dtype), format), requires_grad);
}
TensorRef zeros_op(const Dims& size, OptionalType dtype, Layout, Device, bool requires_grad, bool) {
  for (auto s : size) check(s >= 0, "zeros: Dimension size must be non-negative.");
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
  check(size.size() == stride.size(), "dimensionality of sizes (", size.size(),
        ") must match dimensionality of strides (", stride.size(), ")");
  return as_leaf(empty_strided(size, stride, dtype.value_or(default_dtype)), requires_grad);
}
TensorRef new_empty_strided_op(const Tensor& t, const Dims& size, const Dims& stride, OptionalType dtype, Layout,
                               Device, bool requires_grad, bool) {
  check(size.size() == stride.size(), "dimensionality of sizes (", size.size(),
        ") must match dimensionality of strides (", stride.size(), ")");
  return as_leaf(empty_strided(size, stride, dtype.value_or(t.dtype)), requires_grad);
}

TensorRef scalar_tensor_op(const Scalar& value, OptionalType dtype, Layout, Device, bool requires_grad, bool) {
  return filled(empty({}, dtype.value_or(default_dtype)), value, requires_grad);
}

TensorRef eye_op(std::int64_t n, std::optional<std::int64_t> m_, OptionalType dtype, Layout, Device, bool requires_grad,
                 bool) {
  std::int64_t m = m_.value_or(n);
  check(n >= 0, "n must be greater or equal to 0, got ", n);
  check(m >= 0, "m must be greater or equal to 0, got ", m);
  TensorRef out = zeros(Dims{n, m}, dtype.value_or(default_dtype));
  if (out->numel)
    fill_numbers(*make_tensor(Ref<Storage>(out->storage), out->dtype, Dims{std::min(n, m)}, Dims{m + 1}, 0), 1);
  return as_leaf(out, requires_grad);
}

TensorRef empty_permuted_op(const Dims& size, const Dims& physical_layout, OptionalType dtype, Layout, Device,
                            bool requires_grad, bool) {
  int n = size.size();
  check(physical_layout.size() == n,
        "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = ", n,
        " is not equal to len(physical_layout) = ", physical_layout.size());
  Dims strides(n);
  std::uint64_t seen = 0;
  std::int64_t step = 1;
  for (int k = n - 1; k >= 0; --k) {
    std::int64_t d = physical_layout[k];
    check(d >= 0 && d < n, "Dimension out of range (expected to be between 0 and ", n - 1, ", but got ", d,
          " at index ", k, "). NB: negative dims not currently supported; file an issue if you want it.");
    check(!((seen >> d) & 1), "Duplicate dim not allowed");
    seen |= std::uint64_t(1) << d;
    strides[int(d)] = step;
    step *= std::max<std::int64_t>(size[int(d)], 1);
  }
  return as_leaf(empty_strided(size, strides, dtype.value_or(default_dtype)), requires_grad);
}

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
    {"scalar_tensor(Scalar s, *, " RUSHLIGHT_FACTORY ")", &scalar_tensor_op, Function | NoGradient,
     "A 0-d tensor of the default type."},
    {"eye(int n, int? m=None, *, " RUSHLIGHT_FACTORY ")", &eye_op, Function | Out | NoGradient,
     "Ones on the diagonal, zeros elsewhere."},
    {"empty_permuted(int[] size, int[] physical_layout, *, " RUSHLIGHT_FACTORY ")", &empty_permuted_op,
     Function | Out | NoGradient, "Uninitialised numbers, dimensions in memory in this order."},
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
};

}  // namespace

}  // namespace rushlight
