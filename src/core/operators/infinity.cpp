#include "operators/infinity.h"

#include <cmath>

#include "operators/operators.h"

namespace rushlight {

bool has_infinity(const Tensor& t) {
  if (!is_differentiable(t.dtype)) return false;
  TensorRef p = packed(t);
  return visit_dtype(t.dtype, [&]<class T>() {
    const T* x = p->read_as<T>();
    bool found = false;
    for (std::int64_t i = 0; i < p->numel; ++i) {
      if constexpr (is_complex_type<T>)
        found |= std::isinf(x[i].real()) || std::isinf(x[i].imag());
      else if constexpr (std::is_same_v<T, double>)
        found |= std::isinf(x[i]);
      else
        found |= std::isinf(float(x[i]));
    }
    return found;
  });
}

}  // namespace rushlight
