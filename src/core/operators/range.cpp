// Evenly spaced numbers.
#include <cmath>

#include "kernels/multiply_add.h"
#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

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

// ---- the operators

namespace {

using OptionalType = std::optional<DType>;

TensorRef linspace_op(const Scalar& start, const Scalar& end, std::int64_t steps, OptionalType dtype, Layout, Device,
                      bool requires_grad, bool) {
  return as_leaf(linspace(start, end, steps, spaced_type("torch.linspace", start, end, dtype)), requires_grad);
}

const Define ranges[] = {
    {"linspace(Scalar start, Scalar end, int steps, *, " RUSHLIGHT_FACTORY ")", &linspace_op,
     Function | Out | NoGradient, "Numbers evenly spaced from start to end, both included."},
};

}  // namespace

}  // namespace rushlight
