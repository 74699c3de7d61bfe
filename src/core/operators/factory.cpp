#include "operators/factory.h"

#include <cmath>
#include <cstring>

#include "kernels/nest.h"
#include "kernels/parallel.h"

namespace rushlight {

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

}  // namespace rushlight
