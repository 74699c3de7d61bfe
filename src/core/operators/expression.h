// What a pointwise expression becomes: a program of loops, or operators applied one by one.
#pragma once

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

  /// Puts constants behind inputs and results behind constants.
  void finish(std::uint16_t output) {
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

/// The tangents of `out = op(in)`, of the levels to be seen.
void carry_tangents(PointwiseOp& op, const Operand* in, DType compute, Tensor& out);
/// True where an operand carries a tangent.
bool carries_tangent(const PointwiseOp& op, const Operand* in);

}  // namespace rushlight
