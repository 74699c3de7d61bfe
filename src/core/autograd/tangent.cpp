#include "autograd/tangent.h"

#include "autograd/engine.h"
#include "operators/operators.h"

namespace rushlight {

struct TangentLevels {
  Tangent* first[max_tangent_levels] = {};            ///< a level's tangents
  std::uint8_t seen_before[max_tangent_levels] = {};  ///< modes.dual when the level was opened
};

namespace {

thread_local TangentLevels* open_levels = nullptr;  // made when first needed; tangents may outlive the thread

void unlink_level(Tangent* t) noexcept {
  *t->link = t->after;
  if (t->after) t->after->link = t->link;
}

Tangent* entry(const AutogradMeta& meta, int level) {
  Tangent* at = meta.tangents;
  while (at && at->level != level) at = at->next;
  return at;
}

void set_entry(AutogradMeta& meta, int level, TensorRef value) {
  if (Tangent* at = entry(meta, level)) return drop(std::exchange(at->value, value.detach()));
  Tangent*& head = tangent_levels()->first[level];
  auto* made = new Tangent{value.detach(), meta.tangents, head, &head, &meta, level};
  if (head) head->link = &made->after;
  head = made;
  meta.tangents = made;
}

/// The view of which `t`'s tangent is a window, or null.
Tensor* tangent_base(const Tensor& t) {
  if (!t.meta || t.meta->own_tangent) return nullptr;
  return t.meta->tangent_base ? t.meta->tangent_base : t.meta->base;
}

bool same_strides(const Tensor& a, IntSpan strides) {
  for (int i = 0; i < a.ndim; ++i)
    if (a.size(i) > 1 && a.stride(i) != strides[std::size_t(i)]) return false;
  return true;
}

/// The window of `tangent` that `view` is of `base`, of which it is the tangent; null where they are laid out
/// differently.
TensorRef same_window(const Tensor& tangent, const Tensor& base, const Tensor& view) {
  if (tangent.dtype != base.dtype || !same_strides(tangent, base.strides())) return nullptr;
  if (base.dtype == view.dtype)
    return as_strided(tangent, view.sizes(), view.strides(), tangent.offset + view.offset - base.offset);
  if (real_of(base.dtype) != real_of(view.dtype)) return nullptr;
  if (is_complex(view.dtype) && tangent.offset % 2) return nullptr;
  RealWindow whole(is_complex(base.dtype), base.sizes(), base.strides(), base.offset);
  RealWindow part(is_complex(view.dtype), view.sizes(), view.strides(), view.offset);
  TensorRef real = as_real_numbers(tangent);
  return as_numbers_of(view.dtype,
                       *as_strided(*real, part.sizes, part.strides, real->offset + part.offset - whole.offset));
}

bool shares_storage(const Tensor& t, const TensorList& others) {
  for (auto& other : others)
    if (other && other->storage == t.storage) return true;
  return false;
}

bool any_of(const TensorList& tensors) {
  for (auto& t : tensors)
    if (t) return true;
  return false;
}

TensorList tangents_of(std::span<const Tensor* const> inputs, int level) {
  TensorList out(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] && is_differentiable(inputs[i]->dtype)) out[i] = TensorRef(find_tangent(*inputs[i], level));
  return out;
}

bool requires_grad(const TensorList& tensors) {
  for (auto& t : tensors)
    if (t && t->requires_grad()) return true;
  return false;
}

bool has_edges(const Node* node) {
  for (int i = 0; i < node->n_edges; ++i)
    if (node->edges[i].node) return true;
  return false;
}

/// Lets a node run for a tangent: some inputs want their gradient, and saved tensors come with their own history.
class Lent {
 public:
  Lent(Node* node, const TensorList& tangents, bool recorded) : node_(node) {
    static Node wanted{};  // any address that is not null
    for (int i = 0; i < node->n_edges; ++i) {
      edges_.push_back(node->edges[i].node);
      node->edges[i].node = tangents[std::size_t(i)] ? &wanted : nullptr;
    }
    node->lending = recorded ? Lending::ToRecorded : Lending::ToUnrecorded;
  }
  Lent(const Lent&) = delete;
  ~Lent() {
    for (int i = 0; i < node_->n_edges; ++i) node_->edges[i].node = edges_[std::size_t(i)];
    node_->lending = Lending::None;
  }

 private:
  Node* node_;
  std::vector<Node*> edges_;
};

/// The tangents of `outs` for those of the inputs, with the levels below to be seen.
TensorList carried(Node* node, std::span<const Tensor* const> inputs, const TensorList& tangents,
                   std::span<const TensorRef> outs, bool recorded) {
  TensorList windows(outs.size());
  if (const Tensor* base = inputs[0]; base && tangents[0]) {
    bool all = true;
    for (std::size_t i = 0; i < outs.size() && all; ++i)
      all = outs[i] && outs[i].get() != base && is_view(*outs[i]) && outs[i]->storage == base->storage &&
            (windows[i] = same_window(*tangents[0], *base, *outs[i]));
    if (all) return windows;
  }
  bool records = modes.grad && (recorded || requires_grad(tangents));
  TensorList out = transpose_pullback(outs, tangents, records, [&](TensorRef* cotangents, TensorRef* gradients) {
    Lent lent(node, tangents, recorded);
    node->kind->apply(node, cotangents, gradients);
  });
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i] && shares_storage(*out[i], tangents) && !is_view(*outs[i]) && outs[i].get() != inputs[0])
      out[i] = clone(*out[i]);
  return out;
}

std::vector<const Tensor*> take_inputs(Node* node) {
  return node->extra ? std::exchange(node->extra->dual_inputs, {}) : std::vector<const Tensor*>();
}

/// Writes `value` over the tangent of `t`, whose numbers were changed in place.
void write_tangent(Tensor& t, int level, TensorRef value) {
  if (value->dtype != t.dtype) value = cast(*value, t.dtype);
  if (Tensor* old = find_tangent(t, level)) {
    TensorRef kept(old);
    bool fixed = (modes.grad && old->requires_grad() && old->is_leaf()) || !same_sizes(*old, t);
    for (int d = 0; d < t.ndim && !fixed; ++d)
      if (t.stride(d) == 0 && t.size(d) > 1) {  // one place for all: what was written there is the same for all
        kept = narrow(*kept, d, 0, 1);
        value = narrow(*value, d, 0, 1);
      }
    if (!fixed && !has_internal_overlap(*kept)) return copy_into(*kept, *value);
    value = expand(*value, t.sizes());
  } else if (Tensor* base = tangent_base(t); base && base->dtype == t.dtype) {
    TensorRef whole = empty_strided(base->sizes(), base->strides(), base->dtype);
    fill_numbers(*whole, 0);
    set_tangent(*base, level, whole);
    TensorRef part(find_tangent(t, level));
    return copy_into(*part, *value);
  }
  set_tangent(t, level, std::move(value));
}

}  // namespace

TangentLevels* tangent_levels() {
  if (!open_levels) open_levels = new TangentLevels;
  return open_levels;
}
void take_tangent_levels(TangentLevels* levels) { open_levels = levels; }

int enter_tangent_level() {
  int level = modes.levels;
  check(level < max_tangent_levels, "more than ", max_tangent_levels, " levels of forward mode are open");
  tangent_levels()->seen_before[level] = modes.dual;
  ++modes.levels;
  modes.see();
  return level;
}

void exit_tangent_level(int level) {
  check(level == int(modes.levels) - 1,
        "Trying to exit a forward AD level that was not the last one that was created. This is not supported.");
  --modes.levels;
  modes.see();
  TangentLevels& levels = *tangent_levels();
  modes.dual = std::min(modes.dual, levels.seen_before[level]);
  while (Tangent* t = levels.first[level]) {
    unlink_level(t);
    Tangent** at = &t->owner->tangents;
    while (*at != t) at = &(*at)->next;
    *at = t->next;
    Tensor* value = t->value;
    delete t;
    drop(value);
  }
}

bool set_forward_enabled(bool on) {
  bool before = std::exchange(modes.forward, on);
  modes.see();
  return before;
}

Tensor* find_tangent(const Tensor& t, int level) {
  if (!t.meta) return nullptr;
  if (Tangent* own = entry(*t.meta, level)) return own->value;
  const Tensor* base = tangent_base(t);
  Tensor* whole = base ? find_tangent(*base, level) : nullptr;
  if (!whole) return nullptr;
  TangentsBelow below(level);
  TensorRef part = same_window(*whole, *base, t);
  if (!part) return nullptr;
  set_tangent(const_cast<Tensor&>(t), level, part);
  return entry(*t.meta, level)->value;
}

bool carries_tangent(const Tensor& t) {
  if (!t.meta) return false;
  for (Tangent* at = t.meta->tangents; at; at = at->next)
    if (at->level < modes.dual) return true;
  const Tensor* base = tangent_base(t);
  return base && carries_tangent(*base);
}

void set_tangent(Tensor& t, int level, TensorRef tangent) {
  for (Tangent* at = tangent->meta ? tangent->meta->tangents : nullptr; at; at = at->next)
    if (at->level >= level) {
      tangent = unpack_dual(*tangent, level).primal;
      break;
    }
  if (is_dense(t) && !same_strides(*tangent, t.strides())) tangent = to_geometry(*tangent, t.sizes(), t.strides());
  set_entry(meta_of(t), level, std::move(tangent));
}

void drop_tangents(AutogradMeta& meta) noexcept {
  while (Tangent* t = meta.tangents) {
    meta.tangents = t->next;
    unlink_level(t);
    Tensor* value = t->value;
    delete t;
    drop(value);
  }
}

void share_tangents(const Tensor& from, Tensor& to) {
  for (int level = 0; level < modes.levels; ++level)
    if (Tensor* t = find_tangent(from, level)) set_entry(meta_of(to), level, TensorRef(t));
}

namespace {
/// An alias of `t`, recorded, with the tangents of the levels below.
TensorRef alias_below(const Tensor& t, int level) {
  TangentsBelow below(std::min(level, int(modes.dual)));
  TensorRef out = alias_view(t);
  meta_of(*out).own_tangent = true;
  return out;
}
}  // namespace

TensorRef make_dual(const Tensor& t, const Tensor& tangent, int level) {
  check(level >= 0 && level < modes.levels, "Invalid level given to _make_dual");
  check(same_sizes(t, tangent),
        "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
        "supported. Tensor is of size ",
        to_string(t.sizes()), " while the given forward gradient is of size ", to_string(tangent.sizes()), ".");
  check(!find_tangent(t, level),
        "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
        "same level ",
        level, " is not supported.");
  check(!find_tangent(tangent, level), "Setting a forward grad that itself has a forward gradient at the same level",
        level, " is not supported.");
  TensorRef out = alias_below(t, level);
  TangentsBelow below(level);
  set_tangent(*out, level, TensorRef(const_cast<Tensor*>(&tangent)));
  return out;
}

Dual unpack_dual(const Tensor& t, int level) {
  Tensor* tangent = level < modes.dual ? find_tangent(t, level) : nullptr;
  return {alias_below(t, level), TensorRef(tangent)};
}

void note_inputs(Node* node, std::span<const Tensor* const> inputs) {
  for (const Tensor* t : inputs)
    if (t && carries_tangent(*t)) {
      node->extras().dual_inputs.assign(inputs.begin(), inputs.end());
      return;
    }
}

TensorRef lend_saved(Node* node, const SavedTensor& s) {
  if (!s.tensor || s.output < 0) return TensorRef(s.tensor);
  TensorRef out = alias(*s.tensor);
  share_tangents(*s.tensor, *out);
  if (node->lending == Lending::ToRecorded && modes.grad) set_history(*out, node, std::uint32_t(s.output));
  return out;
}

void pack_late(Node* node) {
  if (!saved_hooks_active) return;
  for (int i = 0; i < node->n_saved; ++i) {
    SavedTensor& s = node->saved[i];
    if (s.tensor && (s.hook = pack_saved(s.tensor))) drop(s.let_go());
  }
}

void note_output_tangent(Node* node, int output, int level, Tensor& tangent) {
  for (int i = 0; i < node->n_saved; ++i) {
    SavedTensor& s = node->saved[i];
    if (s.tensor && s.output == output) set_entry(meta_of(*s.tensor), level, TensorRef(&tangent));
  }
}

void give_dual_history(Node* node, std::span<const TensorRef> outs) {
  std::vector<const Tensor*> inputs = take_inputs(node);
  bool recorded = has_edges(node);
  for (std::size_t i = 0; i < outs.size() && recorded; ++i)
    if (outs[i] && is_differentiable(outs[i]->dtype)) set_history(*outs[i], node, std::uint32_t(i));
  int seen = inputs.empty() ? 0 : modes.dual;
  for (int level = 0; level < seen; ++level) {
    TensorList tangents = tangents_of(inputs, level);
    if (!any_of(tangents)) continue;
    TangentsBelow below(level);
    TensorList results = carried(node, inputs, tangents, outs, recorded);
    for (std::size_t i = 0; i < outs.size(); ++i) {
      if (!results[i]) continue;
      set_tangent(*outs[i], level, std::move(results[i]));
      note_output_tangent(node, int(i), level, *find_tangent(*outs[i], level));
    }
  }
  if (recorded && !inputs.empty()) pack_late(node);
}

Ref<Node> give_dual_change(Ref<Node> node, Tensor& t) {
  std::vector<const Tensor*> inputs = take_inputs(node.get());
  if (inputs.empty()) return node;
  bool recorded = has_edges(node.get());
  TensorRef out(&t);
  int seen = modes.dual;
  for (int level = 0; level < seen; ++level) {
    TensorList tangents = tangents_of(inputs, level);
    if (!any_of(tangents)) continue;
    TangentsBelow below(level);
    bool records = modes.grad && (recorded || requires_grad(tangents));
    for (std::size_t i = 0; i < inputs.size() && records; ++i)
      if (inputs[i] == &t && tangents[i]) tangents[i] = clone(*tangents[i]);  // which will be written over, too
    TensorList results = transpose_pullback({&out, 1}, tangents, records, [&](TensorRef* cotangents, TensorRef* grads) {
      Lent lent(node.get(), tangents, recorded);
      node->kind->apply(node.get(), cotangents, grads);
    });
    if (shares_storage(*results[0], tangents)) results[0] = clone(*results[0]);
    write_tangent(t, level, std::move(results[0]));
  }
  if (recorded) pack_late(node.get());
  return recorded ? node : nullptr;
}

void overwrite_tangents(Tensor& self, const Tensor& result) {
  int seen = modes.dual;
  for (int level = 0; level < seen; ++level) {
    TensorRef value(find_tangent(result, level));
    TangentsBelow below(level);
    if (value)
      write_tangent(self, level, clone(*value));
    else if (find_tangent(self, level))
      write_tangent(self, level, zeros(self.sizes(), self.dtype));
  }
}

TensorList transpose_pullback(std::span<const TensorRef> outs, const TensorList& tangents, bool records,
                              const Pullback& pullback) {
  struct Quiet {  // neither NaN from the numbers that do not matter nor saved tensors of this graph concern anybody
    bool anomaly = std::exchange(diagnosis.anomaly, false), hooks = std::exchange(saved_hooks_active, false);
    ~Quiet() {
      diagnosis.anomaly = anomaly;
      saved_hooks_active = hooks;
    }
  };
  TensorList variables(outs.size()), results(tangents.size()), given;
  std::vector<GraphPoint> roots;
  BackwardOptions options;
  options.accumulate = false;
  options.create_graph = options.keep_graph = records;
  auto point = [](Tensor& t) {
    Edge e = gradient_edge(t);
    return GraphPoint{Ref<Node>::adopt(e.node), e.output};
  };
  {
    Quiet quiet;
    GradScope on(true);
    for (std::size_t i = 0; i < outs.size(); ++i) {
      if (!outs[i] || !is_differentiable(outs[i]->dtype)) continue;
      TensorRef zero = zeros({}, outs[i]->dtype);  // one number for all places
      variables[i] = make_tensor(Ref<Storage>(zero->storage), zero->dtype, outs[i]->sizes(), Dims(outs[i]->ndim, 0), 0);
      variables[i]->set(RequiresGrad, true);
      options.inputs.push_back(point(*variables[i]));
    }
    TensorList cotangents = variables;
    pullback(cotangents.data(), results.data());
    for (std::size_t i = 0; i < tangents.size(); ++i) {
      TensorRef& w = results[i];
      if (!tangents[i] || !w) continue;
      if (!same_sizes(*w, *tangents[i])) w = expand(*w, tangents[i]->sizes());
      if (!w->requires_grad()) continue;
      roots.push_back(point(*w));
      given.push_back(cast(*tangents[i], w->dtype));
    }
  }
  TensorList caught(options.inputs.size()), out(outs.size());
  if (!roots.empty()) {
    bool anomaly = std::exchange(diagnosis.anomaly, false);
    struct Restore {
      bool anomaly;
      ~Restore() { diagnosis.anomaly = anomaly; }
    } restore{anomaly};
    caught = run_backward(std::move(roots), std::move(given), options);
  }
  for (std::size_t i = 0, at = 0; i < outs.size(); ++i) {
    if (!variables[i]) continue;
    out[i] = std::move(caught[at++]);
    if (!out[i]) out[i] = zeros(outs[i]->sizes(), outs[i]->dtype);
    if (!same_sizes(*out[i], *outs[i])) out[i] = expand(*out[i], outs[i]->sizes());
  }
  return out;
}

}  // namespace rushlight
