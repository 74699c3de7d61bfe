// What the random operators share: filling in the order of memory, and the in-place form with its history.
#pragma once

#include <algorithm>

#include "autograd/record.h"
#include "operators/copy.h"
#include "operators/factory.h"
#include "operators/random.h"

namespace rushlight {

/// Calls f(T* numbers, n) on memory that becomes that of `t`: its own, or where that has gaps a buffer of the same
/// order.
template <class T, class F>
void fill_memory(Tensor& t, F&& f) {
  if (is_dense(t)) return f(t.write_as<T>(), t.numel);
  TensorRef buffer = empty_like(t, t.dtype);
  f(buffer->write_as<T>(), t.numel);
  copy_numbers(t, *buffer);
}

/// Where a call's numbers go: its out=, resized, or a new tensor. `dtype`: what the call asked for, `natural` its
/// default.
TensorRef destination(const char* name, IntSpan size, Tensor* out, std::optional<DType> dtype, DType natural,
                      bool requires_grad = false);
/// The filled destination as the call's result.
TensorRef filled(TensorRef t, const Tensor* out, const char* name, bool requires_grad = false);

/// A node's name as a template argument, so that each has a type, and with it a kind, of its own.
struct NodeName {
  template <std::size_t n>
  consteval NodeName(const char (&text)[n]) {
    static_assert(n <= sizeof(characters));
    std::copy_n(text, n, characters);
  }
  char characters[32] = {};
};

/// The derivative of what does not depend on its inputs: zeros for each.
template <NodeName name>
struct NoDependence {
  void operator()(Vjp& v) const {
    for (int i = 0; i < v.node()->n_edges; ++i)
      if (v.needs(i)) v.set(i, zeros_like(*v.grad()));
  }
};

/// The derivative of an operation that has none: its use raises.
template <NodeName operation>
struct NoDerivative {
  static constexpr const char* node = "torch::autograd::NotImplemented";
  void operator()(Vjp&) const { fail("derivative for aten::", operation.characters, " is not implemented"); }
};

/// t.operation(...): draw() overwrites the numbers, after the checks of every in-place operator and before the change
/// is noted. The old numbers get no gradient.
template <NodeName name, class F>
TensorRef redraw(Tensor& t, const char* operation, F&& draw) {
  bool records = needs_record(t);
  check_inplace(t, wants_gradients(t));
  refuse_overlapping_write(t);
  draw();
  Ref<Node> node;
  if (records) {
    const Tensor* inputs[] = {&t};
    node = make_lambda_node(name.characters, inputs, {}, 1, NoDependence<name>());
  }
  finish_inplace(t, std::move(node), operation);
  return TensorRef(&t);
}

}  // namespace rushlight
