// Strided loops: the primitive computations over memory, in the C signature of NumPy's ufunc inner loops, by name and
// element types. Some come from our own sources (compiled for several instruction sets, the best chosen at start),
// others are taken from NumPy's ufunc objects by the Python room.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace rushlight {

/// args: inputs, then output; dims[0]: how many; steps: bytes between elements of each argument.
using LoopFunction = void (*)(char** args, const std::intptr_t* dims, const std::intptr_t* steps, void* data);

struct LoopSignature {
  DType in[4];
  DType out;
  LoopFunction function;
  void* data;
};

struct Loop {
  std::string name;
  int n_in = 0;
  bool simple = false;  ///< an instruction or two: to compute it again costs less than to write and to read the result
  bool linear = false;  ///< sums and products: what is not finite in an operand is not finite in the result, either
  std::vector<LoopSignature> signatures;
  const LoopSignature* find(const DType* in) const {
    for (auto& s : signatures) {
      bool same = true;
      for (int i = 0; i < n_in && same; ++i) same = s.in[i] == in[i];
      if (same) return &s;
    }
    return nullptr;
  }
};

/// The loop of that name, made where there is none yet.
Loop& loop(std::string_view name);
/// Adds a signature (the first one for given input types wins).
void add_loop(std::string_view name, int n_in, const LoopSignature& signature);
/// The conversion of elements from one type to another.
LoopFunction cast_loop(DType from, DType to);
/// The instruction set that our own loops were chosen for: "x86-64-v4", ...
const char* loop_isa();
/// Registers our own loops; called once.
void register_loops();

/// Set by an integer loop that met a division by zero; raised by whoever ran it.
extern thread_local bool division_by_zero __attribute__((tls_model("initial-exec")));

using LoopAdder = void (*)(std::string_view, int, const LoopSignature&);
/// What each instruction set's build of the loop sources offers.
struct LoopBuild {
  void (*add_all)(LoopAdder add_linear, LoopAdder add_simple, LoopAdder add);
  LoopFunction (*cast)(DType from, DType to);
};

}  // namespace rushlight
