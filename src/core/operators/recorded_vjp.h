// The derivative of a fused operator where it is itself to be recorded: the forward computation is done again in
// differentiable operators, and differentiated by the engine.
#pragma once

#include "autograd/engine.h"
#include "autograd/record.h"
#include "autograd/tangent.h"
#include "operators/view.h"

namespace rushlight {

/// A view of `t` that requires grad. Forward mode asks for gradients of tensors that do not.
inline TensorRef own_variable(const Tensor& t) {
  TensorRef own = alias_view(t);
  if (own->requires_grad()) return own;
  own = alias(t);
  own->set(RequiresGrad, true);
  if (modes.dual) share_tangents(t, *own);
  return own;
}

/// Sets in `v` the gradients of those `inputs` (some may be null) that want one. `forward` gives from them the outputs
/// in the node's order. Each input is met through a view of its own, so that inputs computed from each other count
/// apart.
template <class Forward>
void recorded_vjp(Vjp& v, TensorList inputs, Forward&& forward) {
  auto point = [](Tensor& t) {
    Edge edge = gradient_edge(t);
    return GraphPoint{Ref<Node>::adopt(edge.node), edge.output};
  };
  bool records = modes.grad;
  BackwardOptions options{records, records, false, {}};
  std::vector<int> wanted;
  TensorList grads;
  std::vector<GraphPoint> roots;
  {
    GradScope on(true);
    for (int i = 0; i < int(inputs.size()); ++i) {
      if (!inputs[std::size_t(i)] || !v.needs(i)) continue;
      auto& input = inputs[std::size_t(i)];
      input = own_variable(*input);
      options.inputs.push_back(point(*input));
      wanted.push_back(i);
    }
    TensorList outputs = forward(inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i] || !v.grad(int(i)) || !outputs[i]->requires_grad()) continue;
      roots.push_back(point(*outputs[i]));
      grads.push_back(v.grad(int(i)));
    }
  }
  if (roots.empty()) return;
  TensorList found = run_backward(std::move(roots), std::move(grads), options);
  for (std::size_t i = 0; i < wanted.size(); ++i) v.set(wanted[i], found[i]);
}

}  // namespace rushlight
