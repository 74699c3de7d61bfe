// What a pointwise expression becomes: a program of loops, or operators applied one by one.
#pragma once

#include <optional>

#include "operators/pointwise.h"

namespace rushlight {

/// Appends the expression's loops to the program; returns the slot of its result. `slots`: where its inputs are.
class Flattener {
 public:
  explicit Flattener(Program& program) : program_(program) {}

  std::uint16_t add(const PointwiseOp& op, const std::uint16_t* in) {
    if (op.loop) {
      Instruction instruction{op.loop, std::uint8_t(op.n_in), {}};
      for (int k = 0; k < op.n_in; ++k) instruction.in[k] = in[k];
      pending_.push_back(instruction);
      return std::uint16_t(result_base + pending_.size() - 1);
    }
    return add(op.body, in);
  }

  std::uint16_t add(const Expression& e, const std::uint16_t* in) {
    std::vector<std::uint16_t> slots(in, in + e.n_inputs);
    for (auto& c : e.constants) {
      program_.constants.push_back(c);
      slots.push_back(std::uint16_t(constant_base + program_.constants.size() - 1));
    }
    for (auto& call : e.code) {
      std::uint16_t args[4] = {};
      for (int k = 0; k < call.n_in; ++k) args[k] = slots[call.in[k]];
      slots.push_back(add(*call.op, args));
    }
    return slots[e.output];
  }

  /// The sum of two terms that nothing else reads; of two products in one step.
  std::uint16_t sum(std::uint16_t a, std::uint16_t b) {
    static Loop &plus = loop("add"), &products = loop("sum_of_products"), &times = loop("mul");
    auto is_product = [&](std::uint16_t s) { return s >= result_base && pending_[s - result_base].loop == &times; };
    if (is_product(a) && is_product(b)) {
      const Instruction &x = pending_[a - result_base], &y = pending_[b - result_base];
      pending_.push_back({&products, 4, {x.in[0], x.in[1], y.in[0], y.in[1]}});
    } else {
      pending_.push_back({&plus, 2, {a, b}});
    }
    return std::uint16_t(result_base + pending_.size() - 1);
  }

  /// Drops what the output does not need; puts constants behind inputs and results behind constants.
  void finish(std::uint16_t output) {
    drop_unused(output);
    auto place = [&](std::uint16_t s) {
      if (s >= result_base) return std::uint16_t(s - result_base + program_.first_result());
      if (s >= constant_base) return std::uint16_t(s - constant_base + program_.n_inputs);
      return s;
    };
    for (auto& instruction : pending_)
      for (int k = 0; k < instruction.n_in; ++k) instruction.in[k] = place(instruction.in[k]);
    program_.code = std::move(pending_);
    program_.outputs = {place(output)};
  }

 private:
  void drop_unused(std::uint16_t& output) {
    std::vector<bool> used(pending_.size());
    auto use = [&](std::uint16_t s) {
      if (s >= result_base) used[s - result_base] = true;
    };
    use(output);
    for (std::size_t i = pending_.size(); i-- > 0;)
      for (int k = 0; used[i] && k < pending_[i].n_in; ++k) use(pending_[i].in[k]);
    std::vector<Instruction> kept;
    std::vector<std::uint16_t> moved;
    auto move = [&](std::uint16_t s) { return s >= result_base ? moved[s - result_base] : s; };
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      moved.push_back(std::uint16_t(result_base + kept.size()));
      if (!used[i]) continue;
      for (int k = 0; k < pending_[i].n_in; ++k) pending_[i].in[k] = move(pending_[i].in[k]);
      kept.push_back(pending_[i]);
    }
    pending_ = std::move(kept);
    output = move(output);
  }

  static constexpr std::uint16_t constant_base = 0x4000, result_base = 0x8000;
  Program& program_;
  std::vector<Instruction> pending_;
};

/// A tensor, or a number.
struct Slot {
  TensorRef tensor;
  Scalar number;
  Operand operand() const { return tensor ? Operand(tensor) : Operand(number); }
};

/// Interprets an expression over tensors and numbers, each call recorded.
TensorRef interpret(const Expression& e, std::vector<Slot> slots, DType dtype);

/// The number that Python calls `_saved_<name>` of a pointwise node (exponent): an operand that is no tensor.
std::optional<Scalar> saved_number(const Node* node, std::string_view name);

/// The tangents of `out = op(in)`, of the levels to be seen.
void carry_tangents(PointwiseOp& op, const Operand* in, DType compute, Tensor& out);
/// True where an operand carries a tangent.
bool carries_tangent(const PointwiseOp& op, const Operand* in);

}  // namespace rushlight
