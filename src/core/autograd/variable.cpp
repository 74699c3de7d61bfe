#include "autograd/variable.h"

#include "autograd/tangent.h"
#include "operators/operators.h"

namespace rushlight {

void set_grad(Tensor& t, TensorRef grad) {
  if (!grad && !t.meta) return;
  Tensor* old = std::exchange(meta_of(t).grad, grad.detach());
  if (old) drop(old);
}

namespace {

/// Adds into the leaf's .grad: takes the gradient over where nobody else holds it, else adds in place.
void accumulate(Node* node, TensorRef* grads, TensorRef*) {
  TensorRef g = std::move(grads[0]);
  if (!g) return;
  Tensor& leaf = *static_cast<AccumulateGrad*>(node)->variable;
  Tensor* old = grad_of(leaf);
  bool record = grad_enabled() && g->requires_grad();
  if (!old) {
    bool sole = modes.dual == 0 && g->refcount == 1 && g->storage->refcount == 1 && is_dense(*g) &&
                equal(g->strides(), leaf.strides());
    if (!sole && !record && !modes.dual && g->storage->layout && leaf.is_contiguous()) {
      g = copy_of(*g);
    } else if (!sole || record) {
      if (record || modes.dual) {
        g = clone(*g);
      } else {
        TensorRef copy = empty_strided(
            leaf.sizes(), is_dense(leaf) ? IntSpan(leaf.strides()) : IntSpan(contiguous_strides(leaf.sizes())),
            g->dtype);
        copy_numbers(*copy, *g);
        g = copy;
      }
    }
    set_grad(leaf, std::move(g));
  } else if (grad_enabled() && (record || old->requires_grad())) {
    set_grad(leaf, add(*old, *g));
  } else {
    add_numbers(*old, *g);
  }
  grad_of(leaf)->storage->read_laid();  // what backward promised is there when it ends, not when somebody looks
  meta_of(leaf).leaf_hooks.each([&](LeafHook& hook) { hook.call(&leaf); });
}

void accumulate_destroy(Node* node) noexcept {
  Tensor* leaf = std::exchange(static_cast<AccumulateGrad*>(node)->variable, nullptr);
  if (!leaf) return;
  if (leaf->meta && leaf->meta->accumulator == node) leaf->meta->accumulator = nullptr;
  drop(leaf);
}

int accumulate_visit(Node* node, Visitor v) { return v(static_cast<AccumulateGrad*>(node)->variable); }

}  // namespace

NodeKind AccumulateGrad::kind{"torch::autograd::AccumulateGrad", &accumulate, &accumulate_destroy, &accumulate_visit};

Edge gradient_edge(Tensor& t) {
  if (t.meta && t.meta->base) [[unlikely]]
    check_history(t);
  if (Node* fn = t.grad_fn()) {
    retain(static_cast<Object*>(fn));
    return {fn, t.output_nr};
  }
  if (!t.requires_grad()) return {};
  AutogradMeta& meta = meta_of(t);
  if (meta.accumulator) {
    retain(static_cast<Object*>(meta.accumulator));
    return {meta.accumulator, 0};
  }
  auto* node = static_cast<AccumulateGrad*>(new_node(&AccumulateGrad::kind, sizeof(AccumulateGrad), 0, 0, 1));
  node->sequence = ~std::uint64_t(0);
  retain(static_cast<Object*>(&t));
  node->variable = &t;
  note_output(node, t);
  object_track(node);
  meta.accumulator = node;
  return {node, 0};
}

namespace {
void forget_retained(Tensor& t) noexcept {
  if (!t.grad_fn_ || !t.grad_fn_->extra) return;
  auto& retained = t.grad_fn_->extra->retained;
  std::erase_if(retained, [&](auto& entry) { return entry.second == &t; });
}
}  // namespace

void retain_grad(Tensor& t) {
  check(t.requires_grad(), "can't retain_grad on Tensor that has requires_grad=False");
  if (t.is_leaf() || t.has(RetainsGrad)) return;
  t.set(RetainsGrad, true);
  t.grad_fn()->extras().retained.emplace_back(t.output_nr, &t);
}

void set_history(Tensor& t, Node* node, std::uint32_t nr) {
  Node* old = t.grad_fn_;
  if (t.has(RetainsGrad)) [[unlikely]] {
    forget_retained(t);
    if (node) node->extras().retained.emplace_back(nr, &t);
  }
  if (node) retain(static_cast<Object*>(node));
  t.grad_fn_ = node;
  t.output_nr = nr;
  if (old) drop(old);
}

void mark_view(Tensor& view, Tensor& base, Creation creation) {
  if (base.has(Inference)) return;
  Tensor* root = is_view(base) ? base.meta->base : &base;
  AutogradMeta& meta = meta_of(view);
  retain(static_cast<Object*>(root));
  meta.base = root;
  meta.view_version = view.version();
  if (is_view(base)) {
    if (creation == Creation::Default) creation = base.meta->creation;
    if (Tensor* own = base.meta->own_tangent ? &base : base.meta->tangent_base) {
      retain(static_cast<Object*>(own));
      meta.tangent_base = own;
    }
  }
  if (creation == Creation::Default && !modes.grad) creation = modes.inference ? Creation::Inference : Creation::NoGrad;
  meta.creation = creation;
}

Node* Tensor::slow_grad_fn() const {
  if (!meta || !meta->base || meta->view_version == storage->version) return grad_fn_;
  Tensor& base = *meta->base;
  Node* producer = base.grad_fn_;
  if (!producer && !base.has(RequiresGrad)) return grad_fn_;
  if (meta->creation != Creation::Default) return grad_fn_;  // lost: check_history says so
  GradScope record_it(true);
  TangentsBelow none(0);  // a view's tangent is a window of its base's already
  DType base_type = base.dtype, own = dtype;
  bool turned = base_type != own;  // a view of the parts of complex numbers, or the other way
  RealWindow whole(turned && is_complex(base_type), base.sizes(), base.strides(), base.offset);
  RealWindow part(turned && is_complex(own), sizes(), strides(), offset);
  const Tensor* inputs[] = {&base};
  Ref<Node> node = make_lambda_node("AsStridedBackward0", inputs, {}, 1, [=](Vjp& v) {
    TensorRef g = turned ? as_real_numbers(*cast(*v.grad(), own)) : v.grad();
    g = as_strided_backward(*g, whole.sizes, whole.strides, whole.offset, part.sizes, part.strides, part.offset);
    v.set(0, turned ? as_numbers_of(base_type, *g) : g);
  });
  note_output(node.get(), *this);
  set_history(const_cast<Tensor&>(*this), node.get());
  meta->view_version = storage->version;
  return grad_fn_;
}

bool Tensor::slow_requires_grad() const { return slow_grad_fn() || (meta->base && meta->base->requires_grad()); }

void tensor_clear(Tensor* t) noexcept {
  if (t->has(RetainsGrad)) [[unlikely]]
    forget_retained(*t);
  if (Node* fn = std::exchange(t->grad_fn_, nullptr)) drop(fn);
  if (AutogradMeta* meta = std::exchange(t->meta, nullptr)) {
    if (meta->grad) drop(meta->grad);
    if (meta->base) drop(meta->base);
    if (meta->tangent_base) drop(meta->tangent_base);
    drop_tangents(*meta);
    delete meta;
  }
  if (Storage* s = std::exchange(t->storage, nullptr)) release(s);
  if (t->dims && t->dims != t->inline_dims) delete[] t->dims;
  t->dims = nullptr;
}

int tensor_visit(Tensor* t, Visitor v) {
  if (int stop = v(t->grad_fn_)) return stop;
  if (AutogradMeta* meta = t->meta) {
    if (int stop = v(meta->grad)) return stop;
    if (int stop = v(meta->base)) return stop;
    if (int stop = v(meta->tangent_base)) return stop;
    for (const Tangent* at = meta->tangents; at; at = at->next)
      if (int stop = v(at->value)) return stop;
    if (int stop = meta->hooks.visit(v)) return stop;
    if (int stop = meta->leaf_hooks.visit(v)) return stop;
  }
  return 0;
}

}  // namespace rushlight
