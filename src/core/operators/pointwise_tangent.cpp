// Tangents of pointwise operators: the derivatives that the table has, as one program over the operands, the result and
// the tangents. The derivative with respect to an operand is an expression linear in the gradient, element by element,
// so for real numbers the same expression of a tangent is its contribution to the tangent of the result. For complex
// ones it is the adjoint of that, and is transposed.
#include <array>
#include <bit>
#include <map>

#include "autograd/tangent.h"
#include "kernels/nest.h"
#include "operators/deferred.h"
#include "operators/expression.h"
#include "operators/operators.h"

namespace rushlight {

TensorRef interpret(const Expression& e, std::vector<Slot> slots, DType dtype) {
  for (auto& c : e.constants) slots.push_back({nullptr, c});
  for (auto& call : e.code) {
    Operand args[4];
    bool any = false;
    for (int k = 0; k < call.n_in; ++k) {
      args[k] = slots[call.in[k]].operand();
      any = any || args[k].tensor;
    }
    if (!any) args[0] = (slots[call.in[0]].tensor = full({}, args[0].number, dtype));
    slots.push_back({pointwise(*call.op, args), {}});
  }
  Slot& out = slots[e.output];
  return out.tensor ? out.tensor : full({}, out.number, dtype);
}

/// Programs and kernels of one operator, by the set of operands that carry a tangent.
struct TangentPrograms {
  std::unique_ptr<Program> programs[16];
  Kernel* plain[16][dtype_count] = {};  ///< everything of one type
  std::map<std::array<std::uint8_t, 12>, std::unique_ptr<Kernel>> kernels;
};
void TangentProgramsDeleter::operator()(TangentPrograms* p) const noexcept { delete p; }

namespace {

/// What a tangent is computed from. Slots: the operands, the result, the operands' tangents.
struct Carried {
  PointwiseOp& op;
  const Derivatives& derivatives;
  const Operand* in;
  DType compute;
  Tensor& out;
  TensorRef tangents[4];
  unsigned set = 0;  ///< which operands have one

  int slots() const { return 2 * op.n_in + 1; }
  bool has(int i) const { return (set >> i) & 1; }
  /// Some derivative that takes part reads slot j.
  bool reads(int j) const {
    for (int i = 0; i < op.n_in; ++i)
      if (has(i) && derivatives.reads(i, j)) return true;
    return false;
  }
  Operand slot(int j) const {
    if (j < op.n_in) return reads(j) ? in[j] : Operand(Scalar(0));
    if (j == op.n_in) return reads(j) ? Operand(out) : Operand(Scalar(0));
    return has(j - op.n_in - 1) ? Operand(tangents[j - op.n_in - 1]) : Operand(Scalar(0));
  }
  bool used(int j) const { return j > op.n_in ? has(j - op.n_in - 1) : reads(j); }
};

/// The tangent itself (add): nothing to compute.
bool is_identity(const Carried& c, int i) {
  const Expression& e = c.derivatives.of[i];
  return e.code.empty() && e.output == c.op.n_in + 1;
}

const Program& tangent_program(const Carried& c) {
  PointwiseOp& op = c.op;
  if (!op.tangent_programs) op.tangent_programs.reset(new TangentPrograms);
  auto& program = op.tangent_programs->programs[c.set];
  if (program) return *program;
  auto p = std::make_unique<Program>();
  p->n_inputs = c.slots();
  Flattener flat(*p);
  std::uint16_t sum = 0;
  bool first = true;
  for (int i = 0; i < op.n_in; ++i) {
    if (!c.has(i)) continue;
    std::uint16_t slots[6];
    for (int j = 0; j <= op.n_in; ++j) slots[j] = std::uint16_t(j);
    slots[op.n_in + 1] = std::uint16_t(op.n_in + 1 + i);
    std::uint16_t term = flat.add(c.derivatives.of[i], slots);
    sum = first ? term : flat.sum(sum, term);
    first = false;
  }
  flat.finish(sum);
  program = std::move(p);
  return *program;
}

Kernel& tangent_kernel(const Carried& c, const DType* types) {
  PointwiseOp& op = c.op;
  const Program& program = tangent_program(c);
  TangentPrograms& known = *op.tangent_programs;
  DType d = c.compute;
  bool same = c.out.dtype == d;
  std::array<std::uint8_t, 12> key{};
  for (int j = 0; j < c.slots(); ++j) {
    same = same && types[j] == d;
    key[std::size_t(j)] = std::uint8_t(types[j]);
  }
  if (same && known.plain[c.set][int(d)]) return *known.plain[c.set][int(d)];
  key[9] = std::uint8_t(c.set);
  key[10] = std::uint8_t(d);
  key[11] = std::uint8_t(c.out.dtype);
  auto& kernel = known.kernels[key];
  if (!kernel) {
    int n = op.n_in;
    unsigned own = op.promoted & ((1u << n) - 1);
    unsigned promoted = own | 1u << n | ((1u << n) - 1) << (n + 1);
    kernel = compile(program, types, promoted, d, &c.out.dtype, op.name.c_str());
  }
  if (same) known.plain[c.set][int(d)] = kernel.get();
  return *kernel;
}

/// In one pass, or as pending work.
TensorRef fused(const Carried& c) {
  constexpr int most = 9;
  Operand operands[most];
  DType types[most];
  alignas(16) std::byte numbers[most][16];
  bool flat = c.out.is_contiguous();
  for (int j = 0; j < c.slots(); ++j) {
    operands[j] = c.slot(j);
    const Tensor* t = operands[j].tensor;
    types[j] = t ? t->dtype : is_half(c.compute) ? DType::Float32 : c.compute;
    if (t)
      flat = flat && (t->numel == 1 ? c.out.numel >= 1 : t->is_contiguous() && same_sizes(*t, c.out));
    else
      operands[j].number.store(types[j], numbers[j]);
  }
  Kernel& kernel = tangent_kernel(c, types);
  if (c.out.numel >= deferral_limits.elements && flat && c.out.dtype == c.compute)
    if (TensorRef t = defer(tangent_program(c), c.compute, operands, c.slots(), c.out.sizes())) return t;
  TensorRef result = empty_like(c.out, c.out.dtype);
  static const std::int64_t none[64] = {};
  RunOperand run[most + 1];
  Dims strides[most];
  char* address[most + 1];
  std::int64_t steps[most + 1];
  for (int j = 0; j < c.slots(); ++j) {
    const Tensor* t = operands[j].tensor;
    address[j] = t ? const_cast<char*>(reinterpret_cast<const char*>(t->read())) : reinterpret_cast<char*>(numbers[j]);
    steps[j] = t && (t->numel != 1 || c.out.numel == 1) ? t->item_size() : 0;
    if (flat) continue;
    if (t) strides[j] = broadcast_strides(*t, c.out.sizes());
    run[j] = {address[j], t ? strides[j].data() : none, t ? t->item_size() : 1};
  }
  int last = c.slots();
  address[last] = reinterpret_cast<char*>(result->write());
  steps[last] = result->item_size();
  if (flat) {
    run_kernel_flat(kernel, result->numel, address, steps);
  } else {
    run[last] = {address[last], result->strides().data(), result->item_size()};
    run_kernel(kernel, result->sizes(), run, last + 1);
  }
  return result;
}

/// The operands as slots of a derivative; the gradient is still to come.
std::vector<Slot> slots_of(const Carried& c) {
  std::vector<Slot> slots;
  for (int j = 0; j < c.op.n_in; ++j) {
    const Operand& x = c.in[j];
    slots.push_back(c.reads(j) && x.tensor ? Slot{TensorRef(const_cast<Tensor*>(x.tensor)), {}}
                                           : Slot{nullptr, x.number});
  }
  TensorRef y;
  if (c.reads(c.op.n_in)) {  // an alias, so that the tangent does not hold what holds it
    y = alias(c.out);
    share_tangents(c.out, *y);
    if (Node* fn = c.out.grad_fn()) set_history(*y, fn, c.out.output_nr);
  }
  slots.push_back({y, Scalar(0)});
  return slots;
}

TensorRef derivative(const Carried& c, int i, std::vector<Slot> slots, TensorRef g) {
  slots.push_back({std::move(g), {}});
  return interpret(c.derivatives.of[i], std::move(slots), c.compute);
}

/// By operators, so that it is recorded or carries tangents itself.
TensorRef interpreted(const Carried& c) {
  std::vector<Slot> slots = slots_of(c);
  TensorRef sum;
  for (int i = 0; i < c.op.n_in; ++i) {
    if (!c.has(i)) continue;
    TensorRef term = derivative(c, i, slots, cast(*c.tangents[i], c.compute));
    sum = sum ? add(*sum, *term) : term;
  }
  return sum;
}

/// The transpose of the derivatives: of complex numbers.
TensorRef transposed(const Carried& c, bool records) {
  TensorList tangents(c.tangents, c.tangents + c.op.n_in);
  TensorRef out(&c.out);
  return transpose_pullback({&out, 1}, tangents, records, [&](TensorRef* g, TensorRef* results) {
    std::vector<Slot> slots = slots_of(c);
    for (int i = 0; i < c.op.n_in; ++i) {
      if (!c.has(i)) continue;
      const Tensor& x = *c.in[i].tensor;
      TensorRef r = cast(*derivative(c, i, slots, g[0]), x.dtype);
      results[i] = sum_to_size(*expand(*r, c.out.sizes()), x.sizes());
    }
  })[0];
}

/// Is the tangent to be differentiated: recorded, or given tangents of lower levels?
bool is_watched(const Carried& c, bool& records) {
  bool dual = false;
  for (int j = 0; j < c.slots(); ++j) {
    if (!c.used(j)) continue;
    const Tensor* t = c.slot(j).tensor;
    if (!t) continue;
    records = records || (modes.grad && t->requires_grad());
    dual = dual || (modes.dual && carries_tangent(*t));
  }
  return records || dual;
}

TensorRef tangent_of(const Carried& c) {
  bool records = false, watched = is_watched(c, records);
  bool complex = is_complex(c.compute) || is_complex(c.out.dtype);
  for (auto& t : c.tangents) complex = complex || (t && is_complex(t->dtype));
  TensorRef result;
  if (complex) {
    result = transposed(c, records);
  } else if (std::has_single_bit(c.set) && is_identity(c, std::countr_zero(c.set))) {
    result = c.tangents[std::countr_zero(c.set)];
  } else {
    result = watched ? interpreted(c) : fused(c);
  }
  result = cast(*result, c.out.dtype);
  if (!same_sizes(*result, c.out)) result = expand(*result, c.out.sizes());
  static PointwiseOp& same = pointwise_op("positive");  // which may stay pending, unlike a clone
  for (auto& t : c.tangents)
    if (t && t->storage == result->storage) result = pointwise(same, {Operand(result)});
  defer_together(c.out, *result);
  return result;
}

}  // namespace

bool carries_tangent(const PointwiseOp& op, const Operand* in) {
  for (int i = 0; i < op.n_in; ++i)
    if (in[i].tensor && carries_tangent(*in[i].tensor)) return true;
  return false;
}

void carry_tangents(PointwiseOp& op, const Operand* in, DType compute, Tensor& out) {
  if (!op.differentiable || !is_differentiable(out.dtype) || !carries_tangent(op, in)) return;
  const Derivatives& derivatives = op.derivatives(compute);
  int seen = modes.dual;
  for (int level = 0; level < seen; ++level) {
    TangentsBelow below(level);
    Carried c{op, derivatives, in, compute, out, {}, 0};
    for (int i = 0; i < op.n_in; ++i) {
      const Tensor* t = in[i].tensor;
      if (!t || !derivatives.has[i] || !is_differentiable(t->dtype)) continue;
      if (Tensor* tangent = find_tangent(*t, level)) {
        c.tangents[i] = TensorRef(tangent);
        c.set |= 1u << i;
      }
    }
    if (!c.set) continue;
    set_tangent(out, level, tangent_of(c));
    if (Node* node = out.grad_fn()) note_output_tangent(node, 0, level, *find_tangent(out, level));
  }
}

}  // namespace rushlight
