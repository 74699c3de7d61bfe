#include "operators/along.h"

#include "kernels/nest.h"
#include "kernels/parallel.h"
#include "operators/operators.h"

namespace rushlight {
namespace {

/// Calls f(at, index, line, n) for each line along `dim`: `at` runs with the index, `line` is the other operand's line.
template <class T, class F>
void for_lines(const Tensor& index, const Tensor& with, const Tensor& lines, int dim, F&& f) {
  if (index.numel == 0) return;
  Dims sizes(index.sizes());
  std::int64_t n = 1;
  if (index.ndim) {
    n = sizes[dim];
    sizes[dim] = 1;
  }
  const std::int64_t* strides[3] = {with.strides().data(), index.strides().data(), lines.strides().data()};
  std::int64_t items[3] = {sizeof(T), sizeof(std::int64_t), sizeof(T)};
  Nest nest(sizes, strides, items, 3);
  char* base[3];
  const Tensor* operands[3] = {&with, &index, &lines};
  for (int k = 0; k < 3; ++k) base[k] = const_cast<char*>(reinterpret_cast<const char*>(operands[k]->read()));
  std::int64_t step[3] = {};
  for (int k = 0; k < 3 && index.ndim; ++k) step[k] = operands[k]->stride(dim);
  parallel_for(nest.numel, std::max<std::int64_t>(1, (1 << 14) / n), [&](std::int64_t begin, std::int64_t end) {
    nest.run(base, begin, end, [&](char** p, std::int64_t count, const std::int64_t* steps) {
      for (std::int64_t k = 0; k < count; ++k) {
        auto* at = reinterpret_cast<T*>(p[0] + k * steps[0]);
        auto* place = reinterpret_cast<const std::int64_t*>(p[1] + k * steps[1]);
        auto* line = reinterpret_cast<T*>(p[2] + k * steps[2]);
        for (std::int64_t i = 0; i < n; ++i) f(at[i * step[0]], line[place[i * step[1]] * step[2]]);
      }
    });
  });
}

}  // namespace

TensorRef gather_along(const Tensor& t, int dim, const Tensor& index) {
  TensorRef out = empty(index.sizes(), t.dtype);
  out->write();
  visit_width(t.item_size(), [&]<class T>() { for_lines<T>(index, *out, t, dim, [](T& at, T& element) { at = element; }); });
  return record("GatherBackward0", std::move(out), {&t}, {save_other(index)},
                [dim, from = Dims(t.sizes())](Vjp& v) { v.set(0, scatter_along(*v.grad(), from, dim, *v.saved(0))); });
}

TensorRef scatter_along(const Tensor& g, IntSpan sizes, int dim, const Tensor& index) {
  TensorRef out = zeros(sizes, g.dtype);
  out->write();
  visit_dtype(g.dtype, [&]<class T>() { for_lines<T>(index, g, *out, dim, [](T& at, T& element) { element = T(element + at); }); });
  return record("ScatterAddBackward0", std::move(out), {&g}, {save_other(index)},
                [dim](Vjp& v) { v.set(0, gather_along(*v.grad(), dim, *v.saved(0))); });
}

TensorRef choice_vjp(const Tensor& g, IntSpan sizes, int dim, const Tensor& index, bool keepdim) {
  if (keepdim || sizes.empty()) return scatter_along(g, sizes, dim, index);
  return scatter_along(*unsqueeze(g, dim), sizes, dim, *unsqueeze(index, dim));
}

}  // namespace rushlight
