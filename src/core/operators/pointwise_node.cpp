#include "operators/pointwise_node.h"

#include "autograd/tangent.h"
#include "operators/deferred.h"
#include "operators/expression.h"
#include "operators/layout.h"
#include "operators/operators.h"

namespace rushlight {

Arrangement common_layout(const Tensor* const* tensors, int n) {
  const Tensor* first = nullptr;
  Arrangement layout;
  for (int i = 0; i < n; ++i)
    if (tensors[i] && tensors[i]->numel == 1) tensors[i]->read();
  for (int i = 0; i < n; ++i) {
    const Tensor* t = tensors[i];
    if (!t || t->numel == 1) continue;
    Arrangement own = layout_of(*t);
    if (!own || (first && (own != layout || !same_sizes(*t, *first)))) return {};
    first = t, layout = own;
  }
  return layout;
}

void pointwise_destroy(Node* node) noexcept {
  auto& self = *static_cast<PointwiseNode*>(node);
  for (int i = 0; i < self.n_in; ++i) delete self.sizes_of[i];
}

namespace {

const Program& vjp_program(Derivatives& derivatives, int i, int n_in) {
  auto& program = derivatives.programs[i];
  if (program) return *program;
  auto p = std::make_unique<Program>();
  p->n_inputs = n_in + 2;
  Flattener flat(*p);
  std::uint16_t in[6] = {0, 1, 2, 3, 4, 5};
  flat.finish(flat.add(derivatives.of[i], in));
  program = std::move(p);
  return *program;
}

/// What one derivative reads: the inputs, the result and the gradient, by slot.
struct VjpOperands {
  const Tensor* tensors[6] = {};
  alignas(16) std::byte numbers[4][16];
};

Kernel& vjp_kernel(PointwiseNode& self, int i, const Tensor& g) {
  PointwiseOp& op = *self.op;
  int n = self.n_in;
  DType d = self.compute, out_type = self.in_dtype[i];
  DType in[6];
  bool same = g.dtype == d && out_type == d && self.dtype == d;
  for (int j = 0; j < n; ++j) {
    in[j] = self.is_number[j] ? d : self.in_dtype[j];
    same = same && in[j] == d;
  }
  if (same && op.fast_vjp[i][int(d)]) return *op.fast_vjp[i][int(d)];
  in[n] = self.dtype;
  in[n + 1] = g.dtype;
  auto& slot = op.vjp_kernels[i][key_of(in, n + 2, d, out_type)];
  if (!slot) {
    unsigned promoted = op.promoted & ((1u << n) - 1);
    if (is_differentiable(self.dtype)) promoted |= 1u << n;
    promoted |= 1u << (n + 1);
    slot = compile(vjp_program(*self.derivatives, i, n), in, promoted, d, &out_type, self.kind->name.c_str());
  }
  if (same) op.fast_vjp[i][int(d)] = slot.get();
  return *slot;
}

/// The strided form of run_vjp: operands that are broadcast or not row-major.
void run_vjp_strided(PointwiseNode& self, Kernel& kernel, const VjpOperands& o, Tensor& out) {
  int n = self.n_in;
  static const std::int64_t none[64] = {};
  RunOperand run[8];
  Dims strides[6];
  for (int j = 0; j < n + 2; ++j) {
    run[j] = {nullptr, none, 1};
    if (const Tensor* t = o.tensors[j]) {
      strides[j] = broadcast_strides(*t, out.sizes());
      run[j] = {const_cast<char*>(reinterpret_cast<const char*>(t->read())), strides[j].data(), t->item_size()};
    } else if (j < n && self.is_number[j]) {
      run[j].address = const_cast<char*>(reinterpret_cast<const char*>(o.numbers[j]));
    }
  }
  run[n + 2] = {reinterpret_cast<char*>(out.write()), out.strides().data(), out.item_size()};
  run_kernel(kernel, out.sizes(), run, n + 3);
}

/// The derivative as pending work, where its operands are whole or single numbers.
TensorRef defer_vjp(PointwiseNode& self, int i, const VjpOperands& o) {
  Operand in[6];
  for (int j = 0; j < self.n_in + 2; ++j) {
    if (o.tensors[j])
      in[j] = Operand(*o.tensors[j]);
    else if (j < self.n_in && self.is_number[j])
      in[j] = Operand(self.numbers[j]);
  }
  return defer(vjp_program(*self.derivatives, i, self.n_in), self.compute, in, self.n_in + 2,
               o.tensors[self.n_in + 1]->sizes());
}

/// A gradient that does not lie as the saved tensors do is brought into their layout: what follows then stays in it.
void follow_layout(const TensorRef* saved, int n_saved, TensorRef& g) {
  bool one = g->numel >= deferral_limits.elements;  // a number for all places takes part in deferred work as it is
  for (int i = 0; i < g->ndim; ++i) one = one && (g->size(i) == 1 || g->stride(i) == 0);
  if (one) return;
  for (int s = 0; s < n_saved; ++s) {
    const Tensor& t = *saved[s];
    if (!t.storage->layout || t.dtype != g->dtype || !same_sizes(t, *g)) continue;
    Arrangement layout = layout_of(t);
    if (layout && layout_of(*g) != layout) g = laid_copy(*packed(*g), layout);
    return;
  }
}

/// One derivative, fused: one pass over memory. The last one may write over the gradient, if nobody else holds it.
TensorRef run_vjp(PointwiseNode& self, int i, const TensorRef* saved, TensorRef& g, bool last) {
  PointwiseOp& op = *self.op;
  int n = self.n_in;
  VjpOperands o;
  const Tensor& grad = *g;
  bool flat = grad.is_contiguous();
  for (int j = 0; j <= n; ++j) {
    if (j < n && self.is_number[j]) self.numbers[j].store(self.compute, o.numbers[j]);
    if (self.slot[j] < 0 || !self.derivatives->reads(i, j)) continue;
    const Tensor* t = o.tensors[j] = saved[self.slot[j]].get();
    flat = flat && (t->numel == 1 ? grad.numel >= 1 : t->is_contiguous() && same_sizes(*t, grad));
  }
  o.tensors[n + 1] = &grad;
  Kernel& kernel = vjp_kernel(self, i, grad);
  DType out_type = self.in_dtype[i];
  if (grad.numel >= deferral_limits.elements && op.fast_vjp[i][int(self.compute)] == &kernel)
    if (TensorRef out = defer_vjp(self, i, o)) return out;
  if (!flat) {
    TensorRef out = empty_like(grad, out_type);
    run_vjp_strided(self, kernel, o, *out);
    return out;
  }
  Arrangement layout = grad.storage->layout ? common_layout(o.tensors, n + 2) : Arrangement();
  bool reuse = last && !g->storage->deferred() && g->refcount == 1 && g->storage->refcount == 1 && !g->meta &&
               !g->grad_fn_ && g->dtype == out_type && !g->storage->free_owner;
  TensorRef out = reuse ? g : layout ? empty_laid(grad.sizes(), out_type, layout) : empty(grad.sizes(), out_type);
  char* address[8];
  std::int64_t steps[8];
  for (int j = 0; j < n + 2; ++j) {
    steps[j] = 0;
    if (const Tensor* t = o.tensors[j]) {
      bool whole = t->numel != 1 || grad.numel == 1;
      address[j] = layout && whole ? laid_address(*t) : const_cast<char*>(reinterpret_cast<const char*>(t->read()));
      if (whole) steps[j] = t->item_size();
    } else {
      address[j] = reinterpret_cast<char*>(o.numbers[j < 4 ? j : 0]);
    }
  }
  address[n + 2] = reinterpret_cast<char*>(layout ? out->storage->write_laid() : out->write());
  steps[n + 2] = out->item_size();
  run_kernel_flat(kernel, out->numel, address, steps, bool(layout));
  return out;
}

void apply_to(Node* node, TensorRef* grads, TensorRef* results, bool has_rows) {
  auto& self = *static_cast<PointwiseNode*>(node);
  if (node->released && node->n_saved) fail_released(node);
  TensorRef saved[5];
  for (int s = 0; s < node->n_saved; ++s) saved[s] = unpack(node, s);
  int last = -1;
  for (int i = 0; i < self.n_in; ++i)
    if (node->needs(i)) last = i;
  TensorRef g = std::move(grads[0]);
  bool interpreted = grad_enabled();
  if (modes.dual) [[unlikely]] {
    interpreted = interpreted || carries_tangent(*g);
    for (int s = 0; s < node->n_saved; ++s) interpreted = interpreted || carries_tangent(*saved[s]);
  }
  if (!interpreted) follow_layout(saved, node->n_saved, g);
  for (int i = 0; i < self.n_in; ++i) {
    if (!node->needs(i)) continue;
    const Expression& e = self.derivatives->of[i];
    TensorRef r;
    if (e.code.empty() && e.output == self.n_in + 1) {
      r = g->dtype == self.in_dtype[i] ? g : cast(*g, self.in_dtype[i]);  // the gradient itself (add)
    } else if (interpreted) {
      std::vector<Slot> slots;
      for (int j = 0; j <= self.n_in; ++j)
        slots.push_back(
            {self.slot[j] >= 0 ? saved[self.slot[j]] : nullptr, j < self.n_in ? self.numbers[j] : Scalar(0)});
      slots.push_back({g, {}});
      r = interpret(e, std::move(slots), self.compute);
      r = cast(*r, self.in_dtype[i]);
      if (!equal(r->sizes(), g->sizes())) r = expand(*r, g->sizes());
    } else {
      r = run_vjp(self, i, saved, g, i == last);
    }
    if (self.sizes_of[i]) {
      CallersOperand last_use(r.get());
      r = sum_to_size(*r, *self.sizes_of[i], has_rows);
    }
    results[i] = std::move(r);
  }
}

}  // namespace

void pointwise_apply(Node* node, TensorRef* grads, TensorRef* results) { apply_to(node, grads, results, false); }
void pointwise_apply_rows(Node* node, TensorRef* grads, TensorRef* results, std::int64_t) {
  apply_to(node, grads, results, true);
}

Ref<Node> make_node(PointwiseOp& op, const Operand* in, DType compute, const Tensor* out, IntSpan out_sizes) {
  Derivatives& derivatives = op.derivatives(compute);
  bool keep[5] = {};
  bool any = false;
  for (int i = 0; i < op.n_in; ++i) {
    const Tensor* t = in[i].tensor;
    if (!t || !derivatives.has[i] || !is_differentiable(t->dtype) || !t->requires_grad()) continue;
    any = true;
    for (int j = 0; j <= op.n_in; ++j) keep[j] = keep[j] || derivatives.reads(i, j);
  }
  if (!any) return nullptr;
  int n_saved = 0;
  for (int j = 0; j <= op.n_in; ++j) n_saved += keep[j] && (j == op.n_in || in[j].tensor);
  auto* node = static_cast<PointwiseNode*>(new_node(&op.kind, sizeof(PointwiseNode), op.n_in, n_saved, 1));
  node->op = &op;
  node->derivatives = &derivatives;
  node->compute = compute;
  node->n_in = std::uint8_t(op.n_in);
  int s = 0;
  for (int j = 0; j < op.n_in; ++j) {
    const Tensor* t = in[j].tensor;
    node->is_number[j] = !t;
    node->sizes_of[j] = nullptr;
    node->slot[j] = -1;
    node->in_dtype[j] = t ? t->dtype : compute;
    if (!t) {
      node->numbers[j] = in[j].number;
      continue;
    }
    if (derivatives.has[j] && is_differentiable(t->dtype)) {
      node->edges[j] = gradient_edge(*const_cast<Tensor*>(t));
      if (node->edges[j].node && !equal(t->sizes(), out_sizes)) node->sizes_of[j] = new Dims(t->sizes());
    }
    if (keep[j]) node->slot[j] = std::int8_t(s++);
  }
  node->slot[op.n_in] = keep[op.n_in] ? std::int8_t(s) : std::int8_t(-1);
  if (diagnosis.anomaly || diagnosis.record_locations) [[unlikely]]
    trace_node(node);
  object_track(node);
  auto owned = Ref<Node>::adopt(node);  // saving may raise: hooks of saved tensors do
  for (int j = 0; j < op.n_in; ++j)
    if (node->slot[j] >= 0) save_input(node, node->slot[j], const_cast<Tensor*>(in[j].tensor), j);
  if (out) {
    if (keep[op.n_in]) save_output(node, s, const_cast<Tensor*>(out), 0);
    note_output(node, *out);
  }
  return owned;
}

namespace {
/// The exponent of an operator that is a power of its own: x ** 2 and others.
std::optional<Scalar> fixed_exponent(const PointwiseOp& op) {
  if (op.name == "square" || op.name == "pow_2") return Scalar(2);
  if (op.name == "pow_3") return Scalar(3);
  if (op.name == "pow_half") return Scalar(0.5);
  if (op.name == "pow_minus_1") return Scalar(-1);
  return std::nullopt;
}

/// What PyTorch calls an operand in its graph: its parameter's name, but for the one that functions call input.
std::string_view operand_name(const PointwiseOp& op, int i) {
  return op.params[i] == "input" ? std::string_view("self") : op.params[i];
}

/// Which operand of a pointwise node goes by that name (n_in: the result), or -1.
int named_operand(const PointwiseNode& node, std::string_view name) {
  if (name == "result") return node.n_in;
  for (int i = 0; i < node.n_in; ++i)
    if (name == operand_name(*node.op, i)) return i;
  return -1;
}
}  // namespace

std::vector<std::string> operand_names(const Node* node) {
  if (node->kind->apply != &pointwise_apply) return {};
  auto& self = *static_cast<const PointwiseNode*>(node);
  std::vector<std::string> names;
  for (int i = 0; i < self.n_in; ++i) names.emplace_back(operand_name(*self.op, i));
  if (fixed_exponent(*self.op)) names.emplace_back("exponent");
  names.emplace_back("result");
  return names;
}

int saved_slot(const Node* node, std::string_view name) {
  if (node->kind->apply != &pointwise_apply) return -1;
  auto& self = *static_cast<const PointwiseNode*>(node);
  int i = named_operand(self, name);
  return i < 0 ? -1 : self.slot[i];
}

std::optional<Scalar> saved_number(const Node* node, std::string_view name) {
  if (node->kind->apply != &pointwise_apply) return std::nullopt;
  auto& self = *static_cast<const PointwiseNode*>(node);
  if (name == "exponent")
    if (auto fixed = fixed_exponent(*self.op)) return fixed;
  int i = named_operand(self, name);
  if (i < 0 || i == self.n_in || !self.is_number[i]) return std::nullopt;
  return self.numbers[i];
}

}  // namespace rushlight
