// Programs: short lists of strided loops over slots, run block by block.
//
// A block of every operand goes through all instructions before the next block is touched, so that a program of any
// length reads its inputs once and writes its outputs once. Conversions, broadcasting and numbers are properties of
// operands (casts inserted at compilation, step 0), not passes of their own.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "kernels/loop.h"
#include "tensor/dims.h"
#include "tensor/scalar.h"

namespace rushlight {

struct Instruction {
  const Loop* loop;
  std::uint8_t n_in;
  std::uint16_t in[4];
};

/// Slots: the inputs, then the constants, then one result per instruction.
struct Program {
  int n_inputs = 0;
  std::vector<Scalar> constants;
  std::vector<Instruction> code;
  std::vector<std::uint16_t> outputs;
  int first_result() const { return n_inputs + int(constants.size()); }
};

/// A program for given element types.
struct Kernel {
  struct Argument {
    enum Kind : std::uint8_t { External, Temporary, Constant } kind;
    std::uint16_t index;
    std::uint16_t item;
  };
  struct Step {
    LoopFunction function;
    void* data;
    int n_args;
    Argument args[5];
  };
  std::vector<Step> steps;
  int n_inputs = 0, n_outputs = 0, n_temporaries = 0;
  std::int64_t block = 1024;  ///< elements that go through all steps at a time
  std::int64_t stride = 16;   ///< bytes between the elements of a temporary, at most
  bool direct = false;        ///< one step whose arguments are the operands in order
  std::vector<std::array<std::byte, 16>> constants;
  std::vector<DType> outputs;  ///< types written
  const char* name = "";

  /// Runs over n elements: pointers to inputs then outputs, and their byte steps.
  void run_line(char* const* operands, const std::int64_t* steps_, std::int64_t n, std::byte* scratch) const;
};

constexpr std::size_t scratch_bytes = 64 * 1024;
constexpr int max_temporaries = 64;

/// Resolves loops and conversions. `compute`: the type that inputs in `promoted` (a bit each) are converted to first;
/// `wanted`: the types to write (null: the natural ones, halves where `half` says so).
std::unique_ptr<Kernel> compile(const Program& program, const DType* inputs, unsigned promoted, DType compute,
                                const DType* wanted, const char* name);

/// Operand k of a run: the address of its first element, and element strides over the common shape.
struct RunOperand {
  char* address;
  const std::int64_t* strides;
  std::int64_t item;
};
/// Runs the kernel over `shape`; operands are inputs then outputs.
void run_kernel(const Kernel& kernel, IntSpan shape, const RunOperand* operands, int n);
/// The same where all operands are contiguous or single numbers (step 0).
void run_kernel_flat(const Kernel& kernel, std::int64_t n, char* const* operands, const std::int64_t* steps,
                     bool keep_lock = false);

/// The same on the calling thread.
void run_kernel_part(const Kernel& kernel, std::int64_t n, char* const* operands, const std::int64_t* steps);

/// Below this many elements a pointwise kernel runs on the calling thread.
constexpr std::int64_t pointwise_grain = 32768;

}  // namespace rushlight
