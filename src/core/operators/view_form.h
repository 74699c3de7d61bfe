// How an operator makes a view: a window of the storage, followed by autograd, with the derivative beside it.
#pragma once

#include "autograd/record.h"
#include "operators/operators.h"

namespace rushlight {

/// A window of `t`'s storage, followed by autograd.
inline TensorRef window(const Tensor& t, IntSpan sizes, IntSpan strides, std::int64_t offset,
                        Creation creation = Creation::Default) {
  TensorRef out = make_tensor(Ref<Storage>(t.storage), t.dtype, sizes, strides, offset);
  mark_view(*out, const_cast<Tensor&>(t), creation);
  return out;
}

/// Views whose derivative is another arrangement of the gradient.
template <class F>
TensorRef recorded_view(const char* name, const Tensor& t, TensorRef out, F&& derivative) {
  if (!is_differentiable(t.dtype)) return out;
  return record(name, std::move(out), {&t}, {}, std::forward<F>(derivative));
}

/// Zeros of `sizes` with `g` written at a window; recorded as linear in g.
template <class Window>
TensorRef padded(const char* name, const Tensor& g, IntSpan sizes, Window window_of) {
  TensorRef out = zeros(sizes, g.dtype);
  {
    GradScope off(false);
    TensorRef at = window_of(*out);
    copy_numbers(*at, g);
  }
  return record(name, out, {&g}, {}, [window_of](Vjp& v) { v.set(0, window_of(*v.grad())); });
}

/// The numbers of a view in memory of their own, row-major.
inline TensorRef own_copy(const Tensor& view) {
  TensorRef out = empty(view.sizes(), view.dtype);
  copy_numbers(*out, view);
  return record("CloneBackward0", out, {&view}, {}, by_rows([](Vjp& v) { v.set(0, v.grad()); }));
}

template <auto operation, class Type = decltype(operation)>
struct Copied;
template <auto operation, class... A>
struct Copied<operation, TensorRef (*)(A...)> {
  static TensorRef call(A... args) { return own_copy(*operation(args...)); }
};
/// The operator that gives a copy of what a view operator shows: {"t_copy(Tensor self)", copied<&t_op>, ...}.
template <auto operation>
constexpr auto copied = &Copied<operation>::call;

}  // namespace rushlight
