#include "operators/pointwise.h"

#include <map>

#include "autograd/tangent.h"
#include "operators/deferred.h"
#include "operators/expression.h"
#include "operators/layout.h"
#include "operators/operators.h"
#include "operators/pointwise_node.h"

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
