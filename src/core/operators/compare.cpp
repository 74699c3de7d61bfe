// Questions about two tensors, or one, that a bool answers.
#include <cstring>

#include "operators/operators.h"
#include "operators/registry.h"

namespace rushlight {
namespace {

bool equal_numbers(const Tensor& a, const Tensor& b) {
  if (category(a.dtype) < 2) return std::memcmp(a.read(), b.read(), std::size_t(a.numel * a.item_size())) == 0;
  return visit_dtype(a.dtype, [&]<class T>() {
    const T *x = a.read_as<T>(), *y = b.read_as<T>();
    constexpr std::int64_t block = 1024;  // a difference is looked for after each
    for (std::int64_t begin = 0; begin < a.numel; begin += block) {
      std::int64_t end = std::min(begin + block, a.numel);
      bool same = true;
      for (std::int64_t i = begin; i < end; ++i) same &= x[i] == y[i];
      if (!same) return false;
    }
    return true;
  });
}

bool equal_op(const Tensor& a, const Tensor& b) {
  if (!equal(a.sizes(), b.sizes())) return false;
  if (a.numel == 0) return true;
  GradScope off(false);
  DType common = promote(a.dtype, b.dtype);
  return equal_numbers(*packed(*cast(a, common)), *packed(*cast(b, common)));
}

bool is_same_size(const Tensor& a, const Tensor& b) { return equal(a.sizes(), b.sizes()); }

bool is_nonzero(const Tensor& t) {
  check(t.numel != 0, "Boolean value of Tensor with no values is ambiguous");
  check(t.numel == 1, "Boolean value of Tensor with more than one value is ambiguous");
  return !item(t).is(0);
}

const Define comparisons[] = {
    {"equal(Tensor self, Tensor other)", &equal_op, Both | NoGradient,
     "True where two tensors have one shape and equal elements (a NaN equals nothing)."},
    {"is_same_size(Tensor self, Tensor other)", &is_same_size, Both | NoGradient,
     "True where two tensors have one shape."},
    {"is_nonzero(Tensor self)", &is_nonzero, Both | NoGradient, "True where the only element is not zero."},
};

}  // namespace

}  // namespace rushlight
