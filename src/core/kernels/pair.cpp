#include "kernels/pair.h"

namespace rushlight {
namespace {

/// The one instruction for `inner` (of its operands a and b) within `outer`, whose other operand is c; null: none.
const Loop* joint_loop(const Loop* inner, const Loop* outer, bool inner_first) {
  static const Loop &add = loop("add"), &sub = loop("sub"), &mul = loop("mul");
  static const Loop &mul_mul = loop("mul_mul"), &add_mul = loop("add_mul"), &sub_mul = loop("sub_mul"),
                    &mul_add = loop("mul_add"), &mul_sub = loop("mul_sub"), &sub_of_mul = loop("sub_of_mul"),
                    &add_add = loop("add_add");
  if (outer == &mul) return inner == &mul ? &mul_mul : inner == &add ? &add_mul : inner == &sub ? &sub_mul : nullptr;
  if (outer == &add) return inner == &mul ? &mul_add : inner == &add ? &add_add : nullptr;
  if (outer == &sub && inner == &mul) return inner_first ? &mul_sub : &sub_of_mul;
  return nullptr;
}

class Pairing {
 public:
  explicit Pairing(const Program& program) : from_(program), slots_(std::size_t(program.first_result())) {
    for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i] = std::uint16_t(i);
    count_uses();
  }

  Program run() {
    static const Loop& copy = loop("positive");
    to_.n_inputs = from_.n_inputs;
    to_.constants = from_.constants;
    for (std::size_t i = 0; i < from_.code.size(); ++i) {
      Instruction instruction = from_.code[i];
      for (int k = 0; k < instruction.n_in; ++k) instruction.in[k] = slots_[instruction.in[k]];
      if (instruction.loop == &copy) {
        slots_.push_back(instruction.in[0]);
        continue;
      }
      waiting_[emit(instruction)] = from_.code[i].n_in == 2 && uses_[result_of(i)] == 1;
      slots_.push_back(std::uint16_t(to_.first_result() + int(to_.code.size()) - 1));
    }
    for (auto o : from_.outputs) to_.outputs.push_back(slots_[o]);
    drop_joined();
    return std::move(to_);
  }

 private:
  std::size_t result_of(std::size_t i) const { return std::size_t(from_.first_result()) + i; }

  void count_uses() {
    uses_.assign(result_of(from_.code.size()), 0);
    for (auto& instruction : from_.code)
      for (int k = 0; k < instruction.n_in; ++k) ++uses_[instruction.in[k]];
    for (auto o : from_.outputs) uses_[o] += 2;
    for (std::size_t i = from_.code.size(); i-- > 0;)  // a copy's readers read the original
      if (from_.code[i].loop == &loop("positive")) uses_[from_.code[i].in[0]] += uses_[result_of(i)] - 1;
  }

  /// Appends the instruction, joined with that which makes one of its operands where possible; gives its place.
  std::size_t emit(const Instruction& instruction) {
    joined_.push_back(false);
    waiting_.push_back(false);
    for (int k = 0; instruction.n_in == 2 && k < 2; ++k) {
      std::int64_t producer = instruction.in[k] - to_.first_result();
      if (producer < 0 || !waiting_[std::size_t(producer)]) continue;
      const Instruction& inner = to_.code[std::size_t(producer)];
      if (const Loop* both = inner.n_in == 2 ? joint_loop(inner.loop, instruction.loop, k == 0) : nullptr) {
        joined_[std::size_t(producer)] = true;
        to_.code.push_back({both, 3, {inner.in[0], inner.in[1], instruction.in[1 - k]}});
        return to_.code.size() - 1;
      }
    }
    to_.code.push_back(instruction);
    return to_.code.size() - 1;
  }

  void drop_joined() {
    std::vector<Instruction> kept;
    std::vector<std::uint16_t> moved;
    auto first = std::uint16_t(to_.first_result());
    auto move = [&](std::uint16_t s) { return s >= first ? moved[s - first] : s; };
    for (std::size_t i = 0; i < to_.code.size(); ++i) {
      moved.push_back(std::uint16_t(first + kept.size()));
      if (joined_[i]) continue;
      for (int k = 0; k < to_.code[i].n_in; ++k) to_.code[i].in[k] = move(to_.code[i].in[k]);
      kept.push_back(to_.code[i]);
    }
    to_.code = std::move(kept);
    for (auto& o : to_.outputs) o = move(o);
  }

  const Program& from_;
  Program to_;
  std::vector<std::uint16_t> slots_;  ///< where a slot of the first program is in the second
  std::vector<int> uses_;
  std::vector<bool> waiting_;  ///< of an instruction: its one reader may join it
  std::vector<bool> joined_;   ///< it has been
};

}  // namespace

Program paired(const Program& program) { return Pairing(program).run(); }

}  // namespace rushlight
