#include "operators/pointwise.h"

#include <map>

#include "autograd/tangent.h"
#include "operators/deferred.h"
#include "operators/expression.h"
#include "operators/layout.h"
#include "operators/operators.h"

namespace rushlight {
namespace {

auto& table() {
  static auto* ops = new std::map<std::string, std::unique_ptr<PointwiseOp>, std::less<>>;
  return *ops;
}

const Program& forward_program(PointwiseOp& op) {
  if (op.program) return *op.program;
  auto p = std::make_unique<Program>();
  p->n_inputs = op.n_in;
  Flattener flat(*p);
  std::uint16_t in[4] = {0, 1, 2, 3};
  flat.finish(flat.add(op, in));
  op.program = std::move(p);
  return *op.program;
}

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

/// The one layout of these tensors, each of the sizes of the first; Rows where they have none in common. Null ones and
/// single elements are left aside, and these are brought into rows now: later, they might move the others' numbers.
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

char* laid_address(const Tensor& t) { return reinterpret_cast<char*>(t.storage->read_laid()); }

std::uint64_t key_of(const DType* in, int n, DType compute, DType out) {
  std::uint64_t key = 1;
  for (int i = 0; i < n; ++i) key = key << 4 | std::uint64_t(in[i]);
  return (key << 4 | std::uint64_t(compute)) << 5 | std::uint64_t(out);
}
constexpr DType natural = DType(31);

DType natural_output(DType compute, const Kernel& k) {
  // a half computation writes halves unless the result is of another category (a comparison)
  DType out = k.outputs[0];
  return is_half(compute) && out == DType::Float32 ? compute : out;
}

/// The kernel for these input types. `out`: the type to write, or `natural`.
Kernel& forward_kernel(PointwiseOp& op, const DType* in, DType compute, DType out) {
  auto& slot = op.kernels[key_of(in, op.n_in, compute, out)];
  if (!slot) {
    const Program& p = forward_program(op);
    if (out != natural) {
      slot = compile(p, in, op.promoted, compute, &out, op.name.c_str());
    } else {
      auto k = compile(p, in, op.promoted, compute, nullptr, op.name.c_str());
      DType to = natural_output(compute, *k);
      slot = to == k->outputs[0] ? std::move(k) : compile(p, in, op.promoted, compute, &to, op.name.c_str());
    }
  }
  return *slot;
}

[[noreturn]] void refuse(const PointwiseOp& op, DType d) {
  const std::string& text = op.refusals[category(d)];
  if (!text.empty()) fail(is_complex(d) ? ErrorKind::NotImplemented : ErrorKind::Runtime, text);
  fail(ErrorKind::NotImplemented, '"', op.name, "\" not implemented for '", info(d).scalar_name, "'");
}

/// The factor of a scaled form must be of a kind that the result's type holds.
void check_alpha(const Scalar& alpha, DType d) {
  check(alpha.kind != Scalar::Bool || d == DType::Bool, "Boolean alpha only supported for Boolean results.");
  check(category(d) >= 2 || alpha.is_integral(),
        "For integral input tensors, argument alpha must not be a floating point number.");
  check(alpha.kind != Scalar::Complex || is_complex(d),
        "For non-complex input tensors, argument alpha must not be a complex number.");
}

DType compute_type(const PointwiseOp& op, const Operand* in) {
  DType d = result_type(in, op.n_in, op.promoted & ~op.numbers);
  if ((op.refused >> category(d)) & 1) refuse(op, d);
  for (int i = 0; i < op.n_in; ++i) {
    if ((op.numbers >> i) & 1) {
      if (op.params[i] == "alpha") check_alpha(in[i].number, d);
    } else if (!op.bool_operand.empty()) {
      check((in[i].tensor ? in[i].tensor->dtype : in[i].number.dtype()) != DType::Bool, op.bool_operand);
    }
  }
  return op.rule == TypeRule::Float && category(d) < 2 ? default_dtype : d;
}

/// The operator's node: saved tensors as the derivative expressions ask, numbers beside them.
struct PointwiseNode : Node {
  PointwiseOp* op;
  Derivatives* derivatives;  ///< of the operator, for the type of the computation
  DType compute;
  DType in_dtype[4];
  std::uint8_t n_in;
  std::int8_t slot[5];  ///< where input j (n_in: the result) is saved; -1: not
  Scalar numbers[4];    ///< operands that are numbers
  bool is_number[4];
  Dims* sizes_of[4];  ///< owned: sizes of an input that was broadcast, else null
};

void pointwise_destroy(Node* node) noexcept {
  auto& self = *static_cast<PointwiseNode*>(node);
  for (int i = 0; i < self.n_in; ++i) delete self.sizes_of[i];
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

void pointwise_apply(Node* node, TensorRef* grads, TensorRef* results) { apply_to(node, grads, results, false); }
void pointwise_apply_rows(Node* node, TensorRef* grads, TensorRef* results, std::int64_t) {
  apply_to(node, grads, results, true);
}

/// The node of `out = op(in)`, before `out` is changed in place if it is an input.
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

/// What is computed from a volatile tensor is volatile.
void spread_volatile(const PointwiseOp& op, const Operand* in, Tensor& out) {
  for (int i = 0; i < op.n_in; ++i)
    if (in[i].tensor && in[i].tensor->has(Volatile)) out.set(Volatile, true);
}

bool wants_record(const PointwiseOp& op, const Operand* in) {
  if (!modes.grad || !op.differentiable) return false;
  bool any = false;
  for (int i = 0; i < op.n_in; ++i)
    if (const Tensor* t = in[i].tensor) {
      if (t->flags & Volatile) return false;
      any = any || t->requires_grad();
    }
  return any;
}

/// What attach does while tangents are carried: hooks on saved tensors wait for them.
void attach_dual(PointwiseOp& op, const Operand* in, DType compute, Tensor& out) {
  if (wants_record(op, in)) {
    HooksLater later(true);
    if (Ref<Node> node = make_node(op, in, compute, &out, out.sizes())) out.grad_fn_ = node.detach();
  } else if (modes.grad) {
    spread_volatile(op, in, out);
  }
  carry_tangents(op, in, compute, out);
  if (out.grad_fn_) pack_late(out.grad_fn_);
}

/// Gives the fresh result its history, and its tangents.
void attach(PointwiseOp& op, const Operand* in, DType compute, Tensor& out) {
  if (modes.dual) [[unlikely]]
    return attach_dual(op, in, compute, out);
  if (!wants_record(op, in)) {
    if (modes.grad) spread_volatile(op, in, out);
  } else if (Ref<Node> node = make_node(op, in, compute, &out, out.sizes())) {
    out.grad_fn_ = node.detach();
  }
}

/// The kernel over numbers, single elements and tensors that lie as `out` does. The lock is kept: a reader would move
/// the numbers.
void run_kernel_laid(const Kernel& kernel, int n, const Operand* in, const DType* types, Tensor& out) {
  char* address[5];
  std::int64_t steps[5];
  alignas(16) std::byte numbers[4][16];
  for (int i = 0; i < n; ++i) {
    const Tensor* t = in[i].tensor;
    bool whole = t && t->numel != 1;
    steps[i] = whole ? t->item_size() : 0;
    if (!t) in[i].number.store(types[i], numbers[i]);
    address[i] = whole ? laid_address(*t)
                 : t   ? const_cast<char*>(reinterpret_cast<const char*>(t->read()))
                       : reinterpret_cast<char*>(numbers[i]);
  }
  address[n] = reinterpret_cast<char*>(out.storage->write_laid());
  steps[n] = out.item_size();
  run_kernel_flat(kernel, out.numel, address, steps, true);
}

/// Writes over numbers in a layout; false where the operands do not lie so.
bool run_laid(PointwiseOp& op, const Operand* in, DType compute, Tensor& out, bool natural_type) {
  const Tensor* whole[5] = {};
  DType types[4];
  for (int i = 0; i < op.n_in; ++i) {
    const Tensor* t = in[i].tensor;
    types[i] = t ? t->dtype : is_half(compute) ? DType::Float32 : compute;
    whole[i] = t;
  }
  whole[op.n_in] = &out;
  if (!common_layout(whole, op.n_in + 1)) return false;
  run_kernel_laid(forward_kernel(op, types, compute, natural_type ? natural : out.dtype), op.n_in, in, types, out);
  return true;
}

void run_forward(PointwiseOp& op, const Operand* in, DType compute, Tensor& out, bool natural_type) {
  if (out.storage->layout && run_laid(op, in, compute, out, natural_type)) return;
  DType types[4];
  alignas(16) std::byte numbers[4][16];
  RunOperand run[5];
  Dims strides[4];
  static const std::int64_t none[64] = {};
  for (int i = 0; i < op.n_in; ++i) {
    if (const Tensor* t = in[i].tensor) {
      types[i] = t->dtype;
      strides[i] = broadcast_strides(*t, out.sizes());
      run[i] = {const_cast<char*>(reinterpret_cast<const char*>(t->read())), strides[i].data(), t->item_size()};
    } else {
      types[i] = is_half(compute) ? DType::Float32 : compute;
      in[i].number.store(types[i], numbers[i]);
      run[i] = {reinterpret_cast<char*>(numbers[i]), none, 1};
    }
  }
  Kernel& k = forward_kernel(op, types, compute, natural_type ? natural : out.dtype);
  run[op.n_in] = {reinterpret_cast<char*>(out.write()), out.strides().data(), out.item_size()};
  run_kernel(k, out.sizes(), run, op.n_in + 1);
}

DType natural_type(PointwiseOp& op, const Operand* in, DType compute) {
  DType types[4];
  for (int i = 0; i < op.n_in; ++i)
    types[i] = in[i].tensor ? in[i].tensor->dtype : is_half(compute) ? DType::Float32 : compute;
  return forward_kernel(op, types, compute, natural).outputs[0];
}

/// A new result over operands of one layout and type; null where they do not lie so.
TensorRef try_laid(PointwiseOp& op, const Operand* in, const Tensor& lead, const Kernel& k) {
  const Tensor* tensors[4] = {};
  for (int i = 0; i < op.n_in; ++i) tensors[i] = in[i].tensor;
  Arrangement layout = common_layout(tensors, op.n_in);
  if (!layout) return nullptr;
  layout.item = std::uint8_t(item_size(k.outputs[0]));
  TensorRef out = empty_laid(lead.sizes(), k.outputs[0], layout);
  DType types[4] = {lead.dtype, lead.dtype, lead.dtype, lead.dtype};
  run_kernel_laid(k, op.n_in, in, types, *out);
  attach(op, in, lead.dtype, *out);
  return out;
}

/// Whether the numbers among the operands leave the type of the tensors.
bool keeps_type(const PointwiseOp& op, const Operand* in, DType d) {
  for (int i = 0; i < op.n_in; ++i)
    if (!in[i].tensor && int(in[i].number.kind) > category(d)) return false;
  return true;
}

/// The path of most calls: operands of one type, contiguous and of one shape, numbers beside them.
TensorRef try_fast(PointwiseOp& op, const Operand* in) {
  const Tensor* lead = nullptr;
  for (int i = 0; i < op.n_in; ++i) {
    const Tensor* t = in[i].tensor;
    if (!t) continue;
    if (!t->is_contiguous()) return nullptr;
    if (!lead)
      lead = t;
    else if (t->dtype != lead->dtype || !same_sizes(*t, *lead))
      return nullptr;
  }
  if (!lead) return nullptr;
  DType d = lead->dtype;
  Kernel* k = fast_kernel(op, d);
  if (!k || !keeps_type(op, in, d)) return nullptr;
  if (lead->numel >= deferral_limits.elements && k->outputs[0] == d)
    if (TensorRef out = defer(forward_program(op), d, in, op.n_in, lead->sizes())) {
      attach(op, in, d, *out);
      return out;
    }
  if (lead->storage->layout) [[unlikely]]
    if (TensorRef out = try_laid(op, in, *lead, *k)) return out;
  char* address[5];
  std::int64_t steps[5];
  alignas(16) std::byte numbers[4][16];
  std::int64_t item = lead->item_size();
  for (int i = 0; i < op.n_in; ++i) {
    if (const Tensor* t = in[i].tensor) {
      address[i] = const_cast<char*>(reinterpret_cast<const char*>(t->read()));
      steps[i] = item;
    } else {
      in[i].number.store(d, numbers[i]);
      address[i] = reinterpret_cast<char*>(numbers[i]);
      steps[i] = 0;
    }
  }
  TensorRef out = empty(lead->sizes(), k->outputs[0]);
  address[op.n_in] = reinterpret_cast<char*>(out->storage->bytes);
  steps[op.n_in] = out->item_size();
  run_kernel_flat(*k, out->numel, address, steps);
  attach(op, in, d, *out);
  return out;
}

/// A change in place of a pending tensor as one more step of its work, where that is possible.
bool run_inplace_deferred(PointwiseOp& op, Tensor& self, const Operand* in) {
  if (!self.storage->deferred() || !self.is_contiguous()) return false;
  DType d = self.dtype;
  Kernel* k = fast_kernel(op, d);
  if (!k || k->outputs[0] != d || !keeps_type(op, in, d)) return false;
  for (int i = 0; i < op.n_in; ++i)
    if (const Tensor* t = in[i].tensor)
      if (t->dtype != d || !same_sizes(*t, self)) return false;
  return defer_inplace(forward_program(op), d, in, op.n_in, self);
}

/// The same for an unrecorded change in place. Operands that share memory with self are self.
bool run_inplace_fast(PointwiseOp& op, Tensor& self, const Operand* in) {
  if (!self.is_contiguous() || in[0].tensor != &self || self.storage->layout) return false;
  Kernel* k = fast_kernel(op, self.dtype);
  if (!k || k->outputs[0] != self.dtype || !keeps_type(op, in, self.dtype)) return false;
  char* address[5];
  std::int64_t steps[5];
  alignas(16) std::byte numbers[4][16];
  std::int64_t item = self.item_size();
  for (int i = 0; i < op.n_in; ++i) {
    if (const Tensor* t = in[i].tensor) {
      if (t->dtype != self.dtype || !t->is_contiguous() || !same_sizes(*t, self) ||
          (t != &self && t->storage == self.storage))
        return false;
      address[i] = const_cast<char*>(reinterpret_cast<const char*>(t->read()));
      steps[i] = item;
    } else {
      in[i].number.store(self.dtype, numbers[i]);
      address[i] = reinterpret_cast<char*>(numbers[i]);
      steps[i] = 0;
    }
  }
  address[op.n_in] = reinterpret_cast<char*>(self.write());
  steps[op.n_in] = item;
  run_kernel_flat(*k, self.numel, address, steps);
  return true;
}

/// The result as pending work, where operands are repeated over it.
TensorRef defer_broadcast(PointwiseOp& op, const Operand* in, DType compute, DType type, IntSpan sizes) {
  Kernel* k = fast_kernel(op, compute);
  if (!k || type != compute || k->outputs[0] != compute || !keeps_type(op, in, compute)) return nullptr;
  TensorRef out = defer(forward_program(op), compute, in, op.n_in, sizes);
  if (out) attach(op, in, compute, *out);
  return out;
}

Dims common_sizes(const PointwiseOp& op, const Operand* in) {
  Dims sizes;
  bool first = true;
  for (int i = 0; i < op.n_in; ++i)
    if (const Tensor* t = in[i].tensor) {
      sizes = first ? Dims(t->sizes()) : broadcast_sizes(sizes, t->sizes());
      first = false;
    }
  return sizes;
}

/// A result laid out like the inputs where they agree, else row-major.
TensorRef result_like(const PointwiseOp& op, const Operand* in, IntSpan sizes, DType dtype) {
  const Tensor* like = nullptr;
  for (int i = 0; i < op.n_in; ++i) {
    const Tensor* t = in[i].tensor;
    if (t && equal(t->sizes(), sizes)) {
      if (t->is_contiguous()) return empty(sizes, dtype);
      if (!like) like = t;
    }
  }
  return like ? empty_like(*like, dtype) : empty(sizes, dtype);
}

/// Copies of inputs that partly overlap what will be written.
void separate(const PointwiseOp& op, Operand* in, const Tensor& out, TensorRef* copies) {
  for (int i = 0; i < op.n_in; ++i)
    if (const Tensor* t = in[i].tensor) {
      Overlap o = memory_overlap(*t, out);
      if (o == Overlap::None) continue;
      if (o == Overlap::Partial && t->storage == out.storage && t != &out) fail_shared_memory();
      bool resized = !equal(t->sizes(), out.sizes()) || t->item_size() != out.item_size();
      if (o == Overlap::Partial || resized) {
        copies[i] = copy_of(*t);
        in[i].tensor = copies[i].get();
      }
    }
}

}  // namespace

PointwiseOp& define_pointwise(std::string name, int n_in) {
  auto& slot = table()[name];
  check(!slot, "the pointwise operator '", name, "' is declared twice");
  check(n_in >= 1 && n_in <= 4, "a pointwise operator takes one to four operands, '", name, "' has ", n_in);
  slot = std::make_unique<PointwiseOp>();
  slot->name = std::move(name);
  slot->n_in = n_in;
  slot->kind = NodeKind{"", &pointwise_apply, &pointwise_destroy};
  slot->kind.apply_rows = &pointwise_apply_rows;
  return *slot;
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

Kernel* fast_kernel(PointwiseOp& op, DType d) {
  Kernel*& k = op.fast[int(d)];
  if (k || op.promoted != ~0u || is_half(d)) return k;
  bool keeps = !((op.refused >> category(d)) & 1) && (op.rule == TypeRule::Promote || category(d) >= 2);
  if (!keeps) return nullptr;
  DType same[4] = {d, d, d, d};
  k = &forward_kernel(op, same, d, natural);
  return k;
}

PointwiseOp& pointwise_op(std::string_view name) {
  auto it = table().find(name);
  check(it != table().end(), "there is no pointwise operator '", name, "'");
  return *it->second;
}

namespace {
DType combine(int higher, int lower) {  // -1: nothing of that class took part
  if (higher < 0) return DType(lower);
  if (lower < 0) return DType(higher);
  DType h = DType(higher), l = DType(lower);
  if (is_complex(h)) return h;
  if (is_floating(h)) return is_complex(l) ? complex_of(h) : h;
  if (h == DType::Bool || category(l) >= 2) return promote(h, l);
  return h;
}
}  // namespace

DType result_type(const Operand* operands, int n, unsigned mask) {
  int dimensioned = -1, zero_dim = -1, numbers = -1;
  auto join = [](int& into, DType d) { into = into < 0 ? int(d) : int(promote(DType(into), d)); };
  for (int i = 0; i < n; ++i) {
    if (!((mask >> i) & 1)) continue;
    if (const Tensor* t = operands[i].tensor)
      join(t->has(WrappedNumber) ? numbers : t->ndim ? dimensioned : zero_dim, t->dtype);
    else
      join(numbers, operands[i].number.dtype());
  }
  int rest = zero_dim < 0 && numbers < 0 ? -1 : int(combine(zero_dim, numbers));
  return combine(dimensioned, rest);
}

bool can_cast(DType from, DType to) {
  return category(from) <= category(to) || (category(from) == 1 && category(to) == 1);
}

TensorRef pointwise(PointwiseOp& op, const Operand* in, Tensor* out) {
  if (!out)
    if (TensorRef r = try_fast(op, in)) return r;
  DType compute = compute_type(op, in);
  Dims sizes = common_sizes(op, in);
  DType type = natural_type(op, in, compute);
  if (!out && count_elements(sizes) >= deferral_limits.elements)
    if (TensorRef r = defer_broadcast(op, in, compute, type, sizes)) return r;
  if (!out) {
    TensorRef r = result_like(op, in, sizes, type);
    run_forward(op, in, compute, *r, true);
    attach(op, in, compute, *r);
    return r;
  }
  check_out(*out, type, in, op.n_in, op.name.c_str());
  if (modes.dual) [[unlikely]]
    refuse_tangents(op.name, *out, in, op.n_in);
  resize_out(*out, sizes);
  refuse_overlapping_write(*out);
  Operand parts[4];
  TensorRef copies[4];
  std::copy(in, in + op.n_in, parts);
  separate(op, parts, *out, copies);
  run_forward(op, parts, compute, *out, false);
  finish_inplace(*out, nullptr, op.name.c_str());
  return TensorRef(out);
}

void pointwise_inplace(PointwiseOp& op, Tensor& self, const Operand* in, const char* operation) {
  bool records = wants_record(op, in);
  check_inplace(self, records);
  if (modes.grad) spread_volatile(op, in, self);
  if (self.has(Volatile)) [[unlikely]]
    set_history(self, nullptr);
  bool dual = modes.dual && (carries_tangent(self) || carries_tangent(op, in));
  if (!records && !dual && (run_inplace_deferred(op, self, in) || run_inplace_fast(op, self, in)))
    return finish_inplace(self, nullptr, operation);
  refuse_overlapping_write(self);
  DType compute = compute_type(op, in);
  Dims sizes = common_sizes(op, in);
  check(equal(sizes, self.sizes()), "output with shape ", to_string(self.sizes()),
        " doesn't match the broadcast shape ", to_string(sizes));
  DType type = natural_type(op, in, compute);
  check(can_cast(type, self.dtype), "result type ", info(type).scalar_name,
        " can't be cast to the desired output type ", info(self.dtype).scalar_name);
  check(!is_complex(self.dtype) || !is_floating(type), "In-place ", op.name, " is not supported for complex tensors.");
  Operand parts[4];
  TensorRef copies[4];
  std::copy(in, in + op.n_in, parts);
  if (dual) [[unlikely]] {
    TensorRef old = old_numbers(self);
    for (int i = 0; i < op.n_in; ++i)
      if (in[i].tensor == &self) parts[i] = Operand(old);
    return overwrite(self, *old, *pointwise(op, parts), records, operation);
  }
  separate(op, parts, self, copies);
  Ref<Node> node;
  if (records) {
    const Derivatives& derivatives = op.derivatives(compute);
    // where the derivative of another input reads the old numbers of self, they are kept
    TensorRef old;
    for (int i = 0; i < op.n_in; ++i) {
      if (in[i].tensor != &self) continue;
      for (int k = 0; k < op.n_in && !old; ++k)
        if (in[k].tensor && in[k].tensor->requires_grad() && derivatives.reads(k, i)) {
          old = copy_of(self);
          if (Node* fn = self.grad_fn()) set_history(*old, fn, self.output_nr);
        }
      if (old) parts[i].tensor = old.get();
    }
    node = make_node(op, parts, compute, nullptr, self.sizes());
    // the copy stands for self: its history is self's
    if (!run_inplace_deferred(op, self, parts)) run_forward(op, parts, compute, self, false);
    finish_inplace(self, node, operation);
    auto* p = static_cast<PointwiseNode*>(node.get());
    if (p && p->slot[op.n_in] >= 0) save_output(p, p->slot[op.n_in], &self, 0);
    return;
  }
  run_forward(op, parts, compute, self, false);
  finish_inplace(self, nullptr, operation);
}

}  // namespace rushlight
