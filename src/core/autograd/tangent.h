// Forward mode: tangents that tensors carry, and how operations carry them on.
//
// While a level is open (modes.levels), a tensor may carry a tangent of that level. Levels nest: what is computed for a
// tangent of level k sees the tangents of the levels below k alone (TangentsBelow), so that a tangent may carry
// tangents of lower levels itself, which are second derivatives. When a level ends, all its tangents go.
//
// No operation has a second formula. With w = pullback(g) its derivative at a cotangent g, w is linear in g, and the
// pullback of g -> w at the tangent of an input is the tangent of the result: the transpose of the transpose. Record()
// hands the node that it made anyway to give_dual_history, which runs it at a g whose numbers do not matter. Pointwise
// operations have one program instead (operators/pointwise_tangent.cpp), and a view's tangent is the same window of its
// base's, so that changes in place reach the tangents of everybody who looks at that memory.
//
// Tangents are computed with recording as it is: what depends on tensors that require grad is recorded (reverse over
// forward), and derivatives that run in backward are operations on saved tensors, which have kept their tangents
// (forward over reverse).
#pragma once

#include <functional>

#include "autograd/record.h"

namespace rushlight {

constexpr int max_tangent_levels = 64;

struct Tangent {
  Tensor* value;           ///< owned
  Tangent* next;           ///< of the same tensor
  Tangent *after, **link;  ///< of the same level, and what points here among them
  AutogradMeta* owner;
  int level;
};

/// Opens a level and gives its number: 0, 1, ...
int enter_tangent_level();
/// Closes the innermost level, which has to be that one.
void exit_tangent_level(int level);
/// The levels that are open on this thread; a thread that works for this one takes them over.
struct TangentLevels;
TangentLevels* tangent_levels();
void take_tangent_levels(TangentLevels* levels);
/// Turns forward mode off and on for this thread; gives the former state.
bool set_forward_enabled(bool on);

/// The tangent of `t`, borrowed, or null. A view of a tensor that has one has one.
Tensor* find_tangent(const Tensor& t, int level);
/// Gives `t` a tangent of its shape, in its memory order.
void set_tangent(Tensor& t, int level, TensorRef tangent);
void drop_tangents(AutogradMeta& meta) noexcept;
/// Lets `to`, an alias or a copy of `from`, carry the same tangents.
void share_tangents(const Tensor& from, Tensor& to);

/// An alias of `t` that carries `tangent`.
TensorRef make_dual(const Tensor& t, const Tensor& tangent, int level);
struct Dual {
  TensorRef primal;   ///< an alias without tangents of the level and those above
  TensorRef tangent;  ///< null: none
};
Dual unpack_dual(const Tensor& t, int level);

// what recording calls while levels are open

/// Keeps the inputs with the node until its tangents are computed, where one of them carries a tangent.
void note_inputs(Node* node, std::span<const Tensor* const> inputs);
/// The same as the plain give_history where something is recorded, and the tangents.
void give_dual_history(Node* node, std::span<const TensorRef> outs);
/// Carries tangents through a change of `t` in place, just done; gives the node back where it is to be recorded.
Ref<Node> give_dual_change(Ref<Node> node, Tensor& t);
/// Gives `self`, whose numbers were overwritten by those of `result`, its tangents.
void overwrite_tangents(Tensor& self, const Tensor& result);
/// A saved tensor for the node's use by give_dual_history: with its history as it is.
TensorRef lend_saved(Node* node, const SavedTensor& s);
/// Lets hooks on saved tensors wait, within a scope, for tangents to be computed: pack_late gives them the tensors
/// then.
struct HooksLater {
  explicit HooksLater(bool wait) : before(saved_hooks_active) { saved_hooks_active = before && !wait; }
  HooksLater(const HooksLater&) = delete;
  ~HooksLater() { saved_hooks_active = before; }
  bool before;
};
void pack_late(Node* node);
/// Lets outputs that the node has saved carry a tangent, too.
void note_output_tangent(Node* node, int output, int level, Tensor& tangent);

/// Gradients of inputs for cotangents of outputs (owned by the callee's caller; null: not wanted).
using Pullback = std::function<void(TensorRef* cotangents, TensorRef* gradients)>;
/// The tangents of `outs` for tangents of the inputs (null: none) by transposing the pullback. `records`: they are to
/// be differentiable.
TensorList transpose_pullback(std::span<const TensorRef> outs, const TensorList& tangents, bool records,
                              const Pullback& pullback);

}  // namespace rushlight
