#include "kernels/loop.h"

#include <map>

#include "kernels/cpu.h"

namespace rushlight {

thread_local bool division_by_zero = false;

Loop& loop(std::string_view name) {
  static auto* table = new std::map<std::string, Loop, std::less<>>;
  auto it = table->find(name);
  if (it == table->end()) {
    it = table->emplace(std::string(name), Loop{}).first;
    it->second.name = name;
  }
  return it->second;
}

void add_loop(std::string_view name, int n_in, const LoopSignature& signature) {
  Loop& l = loop(name);
  l.n_in = n_in;
  if (!l.find(signature.in)) l.signatures.push_back(signature);
}

static void add_simple_loop(std::string_view name, int n_in, const LoopSignature& signature) {
  add_loop(name, n_in, signature);
  loop(name).simple = true;
}

static void add_linear_loop(std::string_view name, int n_in, const LoopSignature& signature) {
  add_simple_loop(name, n_in, signature);
  loop(name).linear = true;
}

#define RUSHLIGHT_DECLARE(isa)                                \
  namespace isa {                                             \
  LoopBuild loop_build();                                     \
  void add_function_loops(LoopAdder add);                     \
  void add_special_loops(LoopAdder add);                      \
  void add_activation_loops(LoopAdder simple, LoopAdder add); \
  void add_complex_loops(LoopAdder add);                      \
  void add_pair_loops(LoopAdder add);                         \
  }
RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE)

static const LoopBuild& build() {
  static const LoopBuild chosen = RUSHLIGHT_BEST(loop_build());
  return chosen;
}

const char* loop_isa() { return isa_name(); }
LoopFunction cast_loop(DType from, DType to) { return build().cast(from, to); }

void register_binary_special_loops();  // loop_special.cpp

void register_loops() {
  build().add_all(&add_linear_loop, &add_simple_loop, &add_loop);
  RUSHLIGHT_BEST(add_function_loops(&add_loop));
  RUSHLIGHT_BEST(add_special_loops(&add_loop));
  RUSHLIGHT_BEST(add_activation_loops(&add_simple_loop, &add_loop));
  RUSHLIGHT_BEST(add_complex_loops(&add_loop));
  RUSHLIGHT_BEST(add_pair_loops(&add_linear_loop));
  register_binary_special_loops();
}

}  // namespace rushlight
