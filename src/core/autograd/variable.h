// What autograd keeps with a tensor: gradient, accumulator, hooks, and its place among views.
//
// A view that autograd follows knows its base and the version of the storage at which its own grad_fn was right. When
// base or another view is changed in place, the base's history is rebased (inplace.cpp), and the view's is made anew
// the next time somebody asks (Tensor::slow_grad_fn).
#pragma once

#include "autograd/hook.h"
#include "autograd/node.h"

namespace rushlight {

/// How a view came to be; decides what an in-place change of it may do.
enum class Creation : std::uint8_t { Default, InCustomFunction, MultiOutput, NoGrad, Inference };

struct AutogradMeta {
  Tensor* grad = nullptr;          ///< owned
  Node* accumulator = nullptr;     ///< the leaf's AccumulateGrad; not owned: it owns the leaf
  Tensor* base = nullptr;          ///< owned; of a view that autograd follows
  std::uint32_t view_version = 0;  ///< of the storage, when the view's grad_fn_ was last right
  Creation creation = Creation::Default;
  bool own_tangent = false;            ///< a view whose tangent is no window of its base's: what make_dual gives
  Tensor* tangent_base = nullptr;      ///< owned; of a view of such a view: that one
  struct Tangent* tangents = nullptr;  ///< owned (tangent.h)
  HookList<TensorHook> hooks;          ///< of a leaf; those of other tensors stand with their node
  HookList<LeafHook> leaf_hooks;       ///< register_post_accumulate_grad_hook
};

inline AutogradMeta& meta_of(Tensor& t) {
  if (!t.meta) t.meta = new AutogradMeta;
  return *t.meta;
}

inline Tensor* grad_of(const Tensor& t) { return t.meta ? t.meta->grad : nullptr; }
void set_grad(Tensor& t, TensorRef grad);

inline bool is_view(const Tensor& t) { return t.meta && t.meta->base; }

/// Where the gradient of `t` goes: its producer, its accumulator, or nowhere. The edge's node is retained.
Edge gradient_edge(Tensor& t);

/// Whether gradients are to flow through an operation on these tensors.
template <class... T>
bool wants_gradients(const T&... t) {
  return modes.grad && (t.requires_grad() || ...) && !((t.flags | ...) & Volatile);
}

/// True where an operation over these tensors is to be recorded, or needs its derivative at once for a tangent.
bool carries_tangent(const Tensor& t);  // tangent.h
template <class... T>
bool needs_record(const T&... t) {
  if (modes.dual && (carries_tangent(t) || ...)) [[unlikely]]
    return true;
  return wants_gradients(t...);
}

/// Makes `t` output `nr` of `node`.
void set_history(Tensor& t, Node* node, std::uint32_t nr = 0);

/// Lets backward put the gradient of a non-leaf into its .grad; the request follows the tensor to a new history.
void retain_grad(Tensor& t);

/// Makes `view` a followed view of `base` (of the base's base where that is a view itself).
void mark_view(Tensor& view, Tensor& base, Creation creation = Creation::Default);

/// The autograd node that adds into a leaf's .grad.
struct AccumulateGrad : Node {
  Tensor* variable;  ///< owned
  static NodeKind kind;
};

// in-place changes (autograd/inplace.cpp)

/// embedding: told of each tensor that is about to change, while somebody watches (allow_mutation_on_saved_tensors).
void before_mutation(Tensor& t);
extern bool mutations_watched;

/// Refuses a view whose history was lost by a change of its base: one of several views, or one made in no_grad.
void check_history(const Tensor& t);
/// Refuses what may not be changed in place, before anything is changed. `gradients`: gradients flow through it.
void check_inplace(Tensor& t, bool gradients);
/// After a change: bumps the version; where `node` is not null, makes it the history of `t` (through its base where `t`
/// is a view). Consumes the node.
void finish_inplace(Tensor& t, Ref<Node> node, const char* operation);

}  // namespace rushlight
