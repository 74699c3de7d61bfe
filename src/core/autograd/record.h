// Recording of an operation together with its derivative, as a lambda beside the forward computation:
//
//     return record("SumBackward1", out, {&x}, {}, [sizes = Dims(x.sizes())](Vjp& v) { v.set(0, expand(v.grad(),
//     sizes)); });
//
// The lambda keeps plain values only; tensors go through the saved list, so that their versions are checked and the
// collector sees them. It is written in differentiable operators: with create_graph they are recorded in turn.
#pragma once

#include <initializer_list>
#include <span>

#include "autograd/variable.h"

namespace rushlight {

/// What a derivative sees while it runs.
class Vjp {
 public:
  Vjp(Node* node, TensorRef* grads, TensorRef* results, std::int64_t rows = -1)
      : node_(node), grads_(grads), results_(results), rows_(rows) {}
  /// The gradient of forward output `i`; null where nothing reached it (possible only with several outputs).
  const TensorRef& grad(int i = 0) const { return grads_[i]; }
  bool needs(int input) const { return node_->needs(input); }
  /// Saved tensor `i`, in the order of the saved list.
  TensorRef saved(int i) const { return unpack(node_, i); }
  void set(int input, TensorRef gradient) { results_[input] = std::move(gradient); }
  Node* node() const { return node_; }

  // for derivatives that are declared by_rows

  /// Gradients are those for many cotangents, which a leading dimension counts.
  bool has_rows() const { return rows_ >= 0; }
  std::int64_t rows() const { return rows_; }
  /// Where a dimension of the operation's tensors is in gradients.
  int dim(int d) const { return d + int(has_rows()); }
  /// The sizes of gradients of a tensor of these sizes; until the next call.
  IntSpan shape(IntSpan sizes) {
    if (!has_rows()) return sizes;
    wide_ = Dims(sizes);
    wide_.insert(0, rows_);
    return wide_;
  }

 private:
  Node* node_;
  TensorRef* grads_;
  TensorRef* results_;
  std::int64_t rows_;
  Dims wide_;
};

/// A derivative that takes gradients with rows, too (Vjp::has_rows): record(..., by_rows([](Vjp& v) { ... })).
template <class F>
struct ByRows : F {};
template <class F>
ByRows<std::decay_t<F>> by_rows(F&& f) {
  return {std::forward<F>(f)};
}
template <class F>
constexpr bool takes_rows = false;
template <class F>
constexpr bool takes_rows<ByRows<F>> = true;

/// One tensor to keep: the input or the output of the operation of that number.
struct Save {
  Tensor* tensor;
  int input = -1, output = -1;
};
inline Save save_in(const Tensor& t, int input) { return {const_cast<Tensor*>(&t), input, -1}; }
inline Save save_out(const TensorRef& t, int output = 0) { return {t.get(), -1, output}; }
/// Neither: a constant such as an index, or a buffer that forward made.
inline Save save_other(const Tensor& t) { return {const_cast<Tensor*>(&t), -1, -1}; }
inline Save save_other(const TensorRef& t) { return {t.get(), -1, -1}; }

template <class F>
struct LambdaNode : Node {
  F f;
  static void apply(Node* node, TensorRef* grads, TensorRef* results) {
    if (node->released && node->n_saved) fail_released(node);
    Vjp vjp(node, grads, results);
    static_cast<LambdaNode*>(node)->f(vjp);
  }
  static void apply_rows(Node* node, TensorRef* grads, TensorRef* results, std::int64_t rows) {
    if (node->released && node->n_saved) fail_released(node);
    Vjp vjp(node, grads, results, rows);
    static_cast<LambdaNode*>(node)->f(vjp);
  }
  static NodeKind kind(const char* name) {
    NodeKind kind{name, &apply, &destroy};
    if (takes_rows<F>) kind.apply_rows = &apply_rows;
    return kind;
  }
  static void destroy(Node* node) noexcept { static_cast<LambdaNode*>(node)->f.~F(); }
};

void fill_edges(Node* node, std::span<const Tensor* const> inputs);
void note_output(Node* node, const Tensor& out);
/// Of outputs 1, 2, ..., after output 0: keeps what gradients need to know of its type.
void note_type(Node* node, std::uint32_t output, DType type);
/// A gradient as the output that it is of wants it: the real part where that is real, complex where that is complex.
inline bool suits(const Tensor& g, const Edge& edge) { return is_complex(g.dtype) == is_complex(edge.node->dtype); }
TensorRef suited(TensorRef g, const Edge& edge);

/// The kind of nodes with the derivative L that bear this name: one L may serve several (SumBackward0, SumBackward1).
template <class L>
NodeKind& lambda_kind(const char* name) {
  struct Named {
    const char* name;
    NodeKind kind;
    Named* next;
  };
  static Named first{name, L::kind(name), nullptr};
  Named* at = &first;
  while (at->name != name && at->next) at = at->next;
  if (at->name != name) at = at->next = new Named{name, L::kind(name), nullptr};  // lives as long as the library
  return at->kind;
}

template <class F>
Ref<Node> make_lambda_node(const char* name, std::span<const Tensor* const> inputs, std::span<const Save> saves,
                           int n_outputs, F&& f) {
  using L = LambdaNode<std::decay_t<F>>;
  Node* node = new_node(&lambda_kind<L>(name), sizeof(L), int(inputs.size()), int(saves.size()), n_outputs);
  new (&static_cast<L*>(node)->f) std::decay_t<F>(std::forward<F>(f));
  auto owned = Ref<Node>::adopt(node);  // saving may raise: hooks of saved tensors do
  fill_edges(node, inputs);
  for (std::size_t i = 0; i < saves.size(); ++i) {
    const Save& s = saves[i];
    if (s.output >= 0)
      save_output(node, int(i), s.tensor, s.output);
    else if (s.tensor)
      save_input(node, int(i), s.tensor, s.input);
  }
  return owned;
}

inline bool any_wants_gradients(std::span<const Tensor* const> inputs) {
  if (!modes.grad) return false;
  bool any = false;
  for (const Tensor* t : inputs) {
    if (!t) continue;
    if (t->flags & Volatile) return false;
    any = any || t->requires_grad();
  }
  return any;
}

inline bool any_needs_record(std::span<const Tensor* const> inputs) {
  if (modes.dual) [[unlikely]]
    for (const Tensor* t : inputs)
      if (t && carries_tangent(*t)) return true;
  return any_wants_gradients(inputs);
}

/// What is computed from a volatile tensor is volatile.
inline void spread_volatile(std::span<const Tensor* const> inputs, Tensor& out) {
  for (const Tensor* t : inputs)
    if (t && t->has(Volatile)) out.set(Volatile, true);
}

void give_dual_history(Node* node, std::span<const TensorRef> outs);  // tangent.h

/// Records `out = op(inputs)` where any input requires grad; gives `out` back. Inputs may be null (absent).
template <class F>
TensorRef record(const char* name, TensorRef out, std::initializer_list<const Tensor*> inputs,
                 std::initializer_list<Save> saves, F&& f) {
  std::span<const Tensor* const> in(inputs.begin(), inputs.size());
  if (any_needs_record(in)) {
    Ref<Node> node =
        make_lambda_node(name, in, std::span<const Save>(saves.begin(), saves.size()), 1, std::forward<F>(f));
    note_output(node.get(), *out);
    if (modes.dual) [[unlikely]]
      give_dual_history(node.get(), {&out, 1});
    else
      set_history(*out, node.get());
  } else {
    spread_volatile(in, *out);
  }
  return out;
}

/// The same for several outputs; outputs of types without derivatives stay without history.
template <class F>
void record_many(const char* name, std::span<const TensorRef> outs, std::span<const Tensor* const> inputs,
                 std::span<const Save> saves, F&& f) {
  if (!any_needs_record(inputs)) {
    for (auto& out : outs)
      if (out) spread_volatile(inputs, *out);
    return;
  }
  Ref<Node> owned = make_lambda_node(name, inputs, saves, int(outs.size()), std::forward<F>(f));
  Node* node = owned.get();
  note_output(node, *outs[0]);
  for (std::size_t i = 1; i < outs.size(); ++i)
    node->extras().more_sizes.push_back(outs[i] ? Dims(outs[i]->sizes()) : Dims());
  for (std::size_t i = 1; i < outs.size(); ++i)
    if (outs[i]) note_type(node, std::uint32_t(i), outs[i]->dtype);
  if (modes.dual) [[unlikely]] {
    give_dual_history(node, outs);
  } else {
    for (std::size_t i = 0; i < outs.size(); ++i)
      if (outs[i] && is_differentiable(outs[i]->dtype)) set_history(*outs[i], node, std::uint32_t(i));
  }
}

}  // namespace rushlight
