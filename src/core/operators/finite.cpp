#include "operators/finite.h"

#include <cmath>

#include "operators/operators.h"

namespace rushlight {
namespace {

/// From so many elements on the sum, whose kernel is fast, decides most cases: a NaN or infinity does not vanish in it.
constexpr std::int64_t worth_a_sum = 2048;

bool has_finite_sum(const Tensor& t) {
  GradScope off(false);
  Scalar s = item(*sum(t, {}));
  return std::isfinite(s.real) && (s.kind != Scalar::Complex || std::isfinite(s.imag));
}

/// Does `test` hold for any element, or either part of a complex one?
template <class Test>
bool any_element(const Tensor& t, Test test) {
  return visit_dtype(t.dtype, [&]<class T>() {
    const T* x = t.read_as<T>();
    bool found = false;
    for (std::int64_t i = 0; i < t.numel; ++i) {
      if constexpr (is_complex_type<T>)
        found |= test(x[i].real()) || test(x[i].imag());
      else if constexpr (std::is_same_v<T, double>)
        found |= test(x[i]);
      else
        found |= test(float(x[i]));
    }
    return found;
  });
}

}  // namespace

Fault fault_in(const Tensor& t, bool nans, bool infinities) {
  if (!is_differentiable(t.dtype) || !(nans || infinities)) return Fault::None;
  if (t.numel >= worth_a_sum && has_finite_sum(t)) return Fault::None;
  TensorRef p = packed(t);
  if (nans && any_element(*p, [](auto v) { return v != v; })) return Fault::Nan;
  if (infinities && any_element(*p, [](auto v) { return std::isinf(v); })) return Fault::Infinity;
  return Fault::None;
}

}  // namespace rushlight
