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
  check(!complex || is_complex(*dtype), name, "(): inferred dtype ", info(complex_of(default_dtype)).scalar_name, " can't be safely cast to passed dtype ", info(*dtype).scalar_name);
  return *dtype;
}

/// The type that the points are computed in: the result's own where it is floating, wider for halves and integers.
template <class T>
using Compute = std::conditional_t<is_complex_type<T> || std::is_same_v<T, double>, T, std::conditional_t<std::is_integral_v<T>, double, float>>;

/// Calls to(i, point) for n points from start to end: the first half counted from the start, the rest from the end.
template <class C, class F>
void spaced(C start, C end, std::int64_t n, F&& to) {
  if (n == 0) return;
  if (n == 1) return to(0, start);
  C step = (end - start) / C(float(n - 1));
  if constexpr (is_complex_type<C>) {
    for (std::int64_t i = 0; i < n; ++i) to(i, i < n / 2 ? start + step * C(float(i)) : end - step * C(float(n - 1 - i)));
  } else {
    with_pytorch_arithmetic([&](auto arithmetic) RUSHLIGHT_INLINE_LAMBDA {
      for (std::int64_t i = 0; i < n; ++i)
        to(i, i < n / 2 ? arithmetic.multiply_add(step, C(i), start) : arithmetic.multiply_add(-step, C(n - 1 - i), end));
    });
  }
}

}  // namespace

TensorRef linspace(const Scalar& start, const Scalar& end, std::int64_t steps, DType dtype) {
  check(steps >= 0, "number of steps must be non-negative");
  TensorRef out = empty(Dims{steps}, dtype);
  visit_dtype(dtype, [&]<class T>() {
    T* p = out->write_as<T>();
    using C = Compute<T>;
    spaced(start.to<C>(), end.to<C>(), steps, [&](std::int64_t i, C point) {
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

TensorRef linspace_op(const Scalar& start, const Scalar& end, std::int64_t steps, OptionalType dtype, Layout, Device, bool requires_grad, bool) {
  return as_leaf(linspace(start, end, steps, spaced_type("torch.linspace", start, end, dtype)), requires_grad);
}

const Define ranges[] = {
    {"linspace(Scalar start, Scalar end, int steps, *, " RUSHLIGHT_FACTORY ")", &linspace_op, Function | Out | NoGradient, "Numbers evenly spaced from start to end, both included."},
};

}  // namespace

}  // namespace rushlight
