// Evenly spaced numbers.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/multiply_add.h"
#include "operators/arrange.h"
#include "operators/operators.h"
#include "operators/registry.h"
#include "operators/scan.h"

namespace rushlight {
namespace {

template <class T>
constexpr bool is_half_type = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// The type of a range between two numbers: the default floating or complex type.
DType spaced_type(const char* name, const Scalar& start, const Scalar& end, std::optional<DType> dtype) {
  bool complex = start.kind == Scalar::Complex || end.kind == Scalar::Complex;
  if (!dtype) return complex ? complex_of(default_dtype) : default_dtype;
  check(!complex || is_complex(*dtype), name, "(): inferred dtype ", info(complex_of(default_dtype)).scalar_name,
        " can't be safely cast to passed dtype ", info(*dtype).scalar_name);
  return *dtype;
}

/// The type that the points are computed in: the result's own (halves as floats that are rounded after each operation),
/// double for integers.
template <class T>
using Compute =
    std::conditional_t<std::is_integral_v<T>, double,
                       std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>>;

/// Calls to(i, point) for n points from start to end: the first half counted from the start, the rest from the end.
template <class T, class C, class F>
void spaced(C start, C end, std::int64_t n, F&& to) {
  if (n == 0) return;
  if (n == 1) return to(0, start);
  if constexpr (is_complex_type<T>) {
    using Real = typename C::value_type;
    const C step = (end - start) / Real(n - 1);
    with_pytorch_arithmetic([&](auto arithmetic) RUSHLIGHT_INLINE_LAMBDA {
      for (std::int64_t i = 0; i < n; ++i) {
        const C from = i < n / 2 ? start : end, by = i < n / 2 ? step : -step;
        const Real way = Real(i < n / 2 ? i : n - 1 - i);
        to(i, C(arithmetic.multiply_add(by.real(), way, from.real()),
                arithmetic.multiply_add(by.imag(), way, from.imag())));
      }
    });
  } else if constexpr (std::is_same_v<C, float> && !std::is_same_v<T, float>) {
    auto round = [](float x) { return float(T(x)); };
    const float step = round(round(end - start) / round(float(n - 1)));
    for (std::int64_t i = 0; i < n; ++i) {
      const float way = round(step * round(float(i < n / 2 ? i : n - 1 - i)));
      to(i, i < n / 2 ? start + way : end - way);
    }
  } else {
    const C step = (end - start) / C(n - 1);
    with_pytorch_arithmetic([&](auto arithmetic) RUSHLIGHT_INLINE_LAMBDA {
      for (std::int64_t i = 0; i < n; ++i)
        to(i,
           i < n / 2 ? arithmetic.multiply_add(step, C(i), start) : arithmetic.multiply_add(-step, C(n - 1 - i), end));
    });
  }
}

}  // namespace

TensorRef linspace(const Scalar& start, const Scalar& end, std::int64_t steps, DType dtype) {
  check(steps >= 0, "number of steps must be non-negative");
  if (dtype == DType::Bool && steps > 1) fail(ErrorKind::NotImplemented, "\"linspace_cpu\" not implemented for 'Bool'");
  TensorRef out = empty(Dims{steps}, dtype);
  visit_dtype(dtype, [&]<class T>() {
    T* p = out->write_as<T>();
    using C = Compute<T>;
    spaced<T>(C(start.to<T>()), C(end.to<T>()), steps, [&](std::int64_t i, C point) {
      if constexpr (std::is_integral_v<T>)
        p[i] = T(std::int64_t(point));
      else
        p[i] = T(point);
    });
  });
  return out;
}

namespace {

/// Type in which PyTorch computes the numbers of a range.
template <class T>
using Accumulate =
    std::conditional_t<std::is_integral_v<T>, std::int64_t, std::conditional_t<is_half_type<T>, float, double>>;

/// start + i * step for i < n. PyTorch computes whole pairs of its vectors (of 32 bytes) from each vector's first
/// number, and the rest one by one; the bits follow.
template <class T, class C>
void progression(T* to, std::int64_t n, C start, C step) {
  if constexpr (std::is_integral_v<T>) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = T(std::uint64_t(start) + std::uint64_t(i) * std::uint64_t(step));
  } else {
    constexpr std::int64_t lanes = 32 / std::int64_t(sizeof(T));
    std::int64_t whole = n / (2 * lanes) * (2 * lanes);
    with_pytorch_arithmetic([&](auto arithmetic) RUSHLIGHT_INLINE_LAMBDA {
      for (std::int64_t i = 0; i < whole; i += lanes) {
        C first = C(T(arithmetic.multiply_add(step, C(i), start)));
        for (std::int64_t k = 0; k < lanes; ++k) to[i + k] = T(arithmetic.multiply_add(step, C(k), first));
      }
      for (std::int64_t i = whole; i < n; ++i) to[i] = T(arithmetic.multiply_add(step, C(i), start));
    });
  }
}

void check_direction(double start, double end, double step) {
  check(step > 0 || step < 0, "step must be nonzero");
  check(std::isfinite(start) && std::isfinite(end), "unsupported range: ", start, " -> ", end);
  check((step > 0 && end >= start) || (step < 0 && end <= start),
        "upper bound and lower bound inconsistent with step sign");
}

std::int64_t checked_count(double count) {
  check(count >= 0 && count <= 9.2e18, "invalid size, possible overflow?");
  return std::int64_t(count);
}

/// How many numbers from start lie before end; of integers counted in integers, which doubles do not all hold.
std::int64_t count_before(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype) {
  bool whole = dtype == DType::Int64 || (start.is_integral() && end.is_integral() && step.is_integral());
  if (!whole) return checked_count(std::ceil((end.to_double() - start.to_double()) / step.to_double()));
  std::int64_t d = step.to_int();
  check_value(d != 0, "step must be nonzero");
  auto distance = d > 0 ? std::uint64_t(end.to_int()) - std::uint64_t(start.to_int())
                        : std::uint64_t(start.to_int()) - std::uint64_t(end.to_int());
  std::uint64_t stride = d > 0 ? std::uint64_t(d) : -std::uint64_t(d);
  std::uint64_t count = distance / stride + (distance % stride != 0);
  check(count <= std::uint64_t(std::numeric_limits<std::int64_t>::max()), "invalid size, possible overflow?");
  return std::int64_t(count);
}

/// n numbers start, start + step, ...
TensorRef progression_of(const char* kernel, const Scalar& start, const Scalar& step, std::int64_t n, DType dtype) {
  if (dtype == DType::Bool || is_complex(dtype))
    fail(ErrorKind::NotImplemented, '"', kernel, "\" not implemented for '", info(dtype).scalar_name, "'");
  TensorRef out = empty(Dims{n}, dtype);
  visit_dtype(dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, bool> && !is_complex_type<T>)
      progression(out->write_as<T>(), n, start.to<Accumulate<T>>(), step.to<Accumulate<T>>());
  });
  return out;
}

}  // namespace

TensorRef arange(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype) {
  check_direction(start.to_double(), end.to_double(), step.to_double());
  return progression_of("arange_cpu", start, step, count_before(start, end, step, dtype), dtype);
}

// ---- the operators

namespace {

using OptionalType = std::optional<DType>;

DType range_type(const Scalar& a, const Scalar& b, const Scalar& c, OptionalType dtype) {
  if (dtype) return *dtype;
  return a.is_integral() && b.is_integral() && c.is_integral() ? DType::Int64 : default_dtype;
}
TensorRef arange_end(const Scalar& end, OptionalType dtype, Layout, Device, bool requires_grad, bool) {
  DType type = range_type(0, end, 1, dtype);
  check_requires_grad(type, requires_grad);
  return as_leaf(arange(0, end, 1, type), requires_grad);
}
TensorRef arange_op(const Scalar& start, const Scalar& end, const Scalar& step, OptionalType dtype, Layout, Device,
                    bool requires_grad, bool) {
  DType type = range_type(start, end, step, dtype);
  check_requires_grad(type, requires_grad);
  return as_leaf(arange(start, end, step, type), requires_grad);
}

TensorRef range_op(const Scalar& start, const Scalar& end, const Scalar& step, OptionalType dtype, Layout, Device,
                   bool requires_grad, bool) {
  warn(
      "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
      "Python's range builtin. Instead, use "
      "torch.arange, which produces values in [start, end).");
  double a = start.to_double(), b = end.to_double(), s = step.to_double();
  check_direction(a, b, s);
  DType type = dtype.value_or(default_dtype);
  check(category(type) != 1 || step.to_int() != 0, "step must be nonzero");
  return as_leaf(progression_of("range_cpu", start, step, checked_count(std::floor((b - a) / s)) + 1, type),
                 requires_grad);
}

TensorRef linspace_op(const Scalar& start, const Scalar& end, std::int64_t steps, OptionalType dtype, Layout, Device,
                      bool requires_grad, bool) {
  return as_leaf(linspace(start, end, steps, spaced_type("torch.linspace", start, end, dtype)), requires_grad);
}

TensorRef logspace_op(const Scalar& start, const Scalar& end, std::int64_t steps, double base, OptionalType dtype,
                      Layout, Device, bool requires_grad, bool) {
  check(steps >= 0, "number of steps must be non-negative");
  DType type = spaced_type("torch.logspace", start, end, dtype);
  if (type == DType::Bool) fail(ErrorKind::NotImplemented, "\"logspace_cpu\" not implemented for 'Bool'");
  TensorRef out = empty(Dims{steps}, type);
  visit_dtype(type, [&]<class T>() {
    T* p = out->write_as<T>();
    using C = Compute<T>;
    spaced<T>(C(start.to<T>()), C(end.to<T>()), steps, [&](std::int64_t i, C exponent) {
      if constexpr (std::is_integral_v<T>)
        p[i] = T(std::int64_t(std::pow(base, exponent)));
      else
        p[i] = T(std::pow(C(base), exponent));
    });
  });
  return as_leaf(out, requires_grad);
}

/// Ends given as tensors: their numbers.
Scalar end_of(const char* name, const char* which, const Tensor& t) {
  check(t.ndim == 0, name, " only supports 0-dimensional start and end tensors, but got ", which, " with ", int(t.ndim),
        " dimension(s).");
  return item(t);
}
TensorRef linspace_tensors(const Tensor& start, const Tensor& end, std::int64_t steps, OptionalType dtype, Layout l,
                           Device d, bool requires_grad, bool pin) {
  return linspace_op(end_of("linspace", "start", start), end_of("linspace", "end", end), steps, dtype, l, d,
                     requires_grad, pin);
}
TensorRef linspace_tensor_number(const Tensor& start, const Scalar& end, std::int64_t steps, OptionalType dtype,
                                 Layout l, Device d, bool requires_grad, bool pin) {
  return linspace_op(end_of("linspace", "start", start), end, steps, dtype, l, d, requires_grad, pin);
}
TensorRef linspace_number_tensor(const Scalar& start, const Tensor& end, std::int64_t steps, OptionalType dtype,
                                 Layout l, Device d, bool requires_grad, bool pin) {
  return linspace_op(start, end_of("linspace", "end", end), steps, dtype, l, d, requires_grad, pin);
}
TensorRef logspace_tensors(const Tensor& start, const Tensor& end, std::int64_t steps, double base, OptionalType dtype,
                           Layout l, Device d, bool requires_grad, bool pin) {
  return logspace_op(end_of("logspace", "start", start), end_of("logspace", "end", end), steps, base, dtype, l, d,
                     requires_grad, pin);
}
TensorRef logspace_tensor_number(const Tensor& start, const Scalar& end, std::int64_t steps, double base,
                                 OptionalType dtype, Layout l, Device d, bool requires_grad, bool pin) {
  return logspace_op(end_of("logspace", "start", start), end, steps, base, dtype, l, d, requires_grad, pin);
}
TensorRef logspace_number_tensor(const Scalar& start, const Tensor& end, std::int64_t steps, double base,
                                 OptionalType dtype, Layout l, Device d, bool requires_grad, bool pin) {
  return logspace_op(start, end_of("logspace", "end", end), steps, base, dtype, l, d, requires_grad, pin);
}

using Wide = __int128;  // products and sums of sizes that int64 cannot hold

/// How many places of a matrix lie on and below a diagonal.
Wide places_below(Wide rows, Wide columns, Wide offset) {
  Wide first = std::clamp<Wide>(-offset, 0, rows);              // rows above have none
  Wide full = std::clamp<Wide>(columns - offset, first, rows);  // rows from here have all
  Wide ramp = full - first;
  return ramp * (first + offset + 1) + ramp * (ramp - 1) / 2 + (rows - full) * columns;
}

/// Row and column of every place on and below (`lower`) or above a diagonal of a matrix, row by row.
TensorRef triangle_indices(const char* name, std::int64_t rows, std::int64_t columns, std::int64_t offset, bool lower,
                           OptionalType dtype) {
  check(rows >= 0, "row must be non-negative, got", rows);
  check(columns >= 0, "col must be non-negative, got", columns);
  DType type = dtype.value_or(DType::Int64);
  if (type != DType::Int32 && type != DType::Int64)
    fail(ErrorKind::NotImplemented, '"', name, "\" not implemented for '", info(type).scalar_name, "'");
  Wide total = lower ? places_below(rows, columns, offset)
                     : Wide(rows) * columns - places_below(rows, columns, Wide(offset) - 1);
  check(total <= std::numeric_limits<std::int64_t>::max() / 16, name, "(): ", rows, " rows of ", columns,
        " columns have more places than a tensor can hold");
  auto n = std::int64_t(total);
  TensorRef out = empty(Dims{2, n}, DType::Int64);
  auto* p = out->write_as<std::int64_t>();
  std::int64_t k = 0;
  for (std::int64_t i = lower ? std::int64_t(std::clamp<Wide>(-Wide(offset), 0, rows)) : 0; k < n; ++i) {
    auto edge = std::int64_t(std::clamp<Wide>(Wide(i) + offset + (lower ? 1 : 0), 0, columns));
    for (std::int64_t j = lower ? 0 : edge; j < (lower ? edge : columns); ++j, ++k) {
      p[k] = i;
      p[n + k] = j;
    }
  }
  return cast(*out, type);
}
TensorRef tril_indices(std::int64_t row, std::int64_t col, std::int64_t offset, OptionalType dtype, Layout, Device,
                       bool, bool) {
  return triangle_indices("tril_indices", row, col, offset, true, dtype);
}
TensorRef triu_indices(std::int64_t row, std::int64_t col, std::int64_t offset, OptionalType dtype, Layout, Device,
                       bool, bool) {
  return triangle_indices("triu_indices", row, col, offset, false, dtype);
}

TensorRef vander(const Tensor& x, std::optional<std::int64_t> N, bool increasing) {
  check(x.ndim == 1, "x must be a one-dimensional tensor.");
  std::int64_t n = N.value_or(x.size(0));
  check(n >= 0, "N must be non-negative.");
  DType dtype = promote(x.dtype, DType::Int64);
  if (n == 0) return empty(Dims{x.size(0), 0}, dtype);
  TensorRef base = cast(x, dtype), first = ones(Dims{x.size(0), 1}, dtype);
  TensorRef others = cumprod(*expand(*unsqueeze(*base, 1), Dims{x.size(0), n - 1}), 1);
  TensorRef powers = cat({first.get(), others.get()}, 1);
  return increasing ? powers : flip(*powers, Dims{1});
}

const Define ranges[] = {
    {"arange(Scalar end, *, " RUSHLIGHT_FACTORY ")", &arange_end, Function | Out | NoGradient,
     "start, start + step, ... below end."},
    {"arange(Scalar start, Scalar end, Scalar step=1, *, " RUSHLIGHT_FACTORY ")", &arange_op,
     Function | Out | NoGradient},
    {"range(Scalar start, Scalar end, Scalar step=1, *, " RUSHLIGHT_FACTORY ")", &range_op, Function | Out | NoGradient,
     "arange with the end included. Deprecated."},
    {"linspace(Scalar start, Scalar end, int steps, *, " RUSHLIGHT_FACTORY ")", &linspace_op,
     Function | Out | NoGradient, "Numbers evenly spaced from start to end, both included."},
    {"linspace(Tensor start, Tensor end, int steps, *, " RUSHLIGHT_FACTORY ")", &linspace_tensors,
     Function | Out | NoGradient},
    {"linspace(Tensor start, Scalar end, int steps, *, " RUSHLIGHT_FACTORY ")", &linspace_tensor_number,
     Function | Out | NoGradient},
    {"linspace(Scalar start, Tensor end, int steps, *, " RUSHLIGHT_FACTORY ")", &linspace_number_tensor,
     Function | Out | NoGradient},
    {"logspace(Scalar start, Scalar end, int steps, float base=10.0, *, " RUSHLIGHT_FACTORY ")", &logspace_op,
     Function | Out | NoGradient, "Powers of a base with evenly spaced exponents."},
    {"logspace(Tensor start, Tensor end, int steps, float base=10.0, *, " RUSHLIGHT_FACTORY ")", &logspace_tensors,
     Function | Out | NoGradient},
    {"logspace(Tensor start, Scalar end, int steps, float base=10.0, *, " RUSHLIGHT_FACTORY ")",
     &logspace_tensor_number, Function | Out | NoGradient},
    {"logspace(Scalar start, Tensor end, int steps, float base=10.0, *, " RUSHLIGHT_FACTORY ")",
     &logspace_number_tensor, Function | Out | NoGradient},
    {"tril_indices(int row, int col, int offset=0, *, " RUSHLIGHT_FACTORY ")", &tril_indices, Function | NoGradient,
     "Places on and below a diagonal: a row of rows and one of columns."},
    {"triu_indices(int row, int col, int offset=0, *, " RUSHLIGHT_FACTORY ")", &triu_indices, Function | NoGradient,
     "Places on and above a diagonal: a row of rows and one of columns."},
    {"vander(Tensor x, int? N=None, bool increasing=False)", &vander, Function,
     "Powers of a vector's elements, falling from left to right or increasing."},
};

}  // namespace

}  // namespace rushlight
