#include "kernels/cpu.h"

#include <cstdlib>
#include <string_view>

namespace rushlight {

static Isa detect() {
#if defined(__x86_64__)
  const char* forced = std::getenv("RUSHLIGHT_ISA");  // for tests: a lower level than the CPU offers
  std::string_view most = forced ? forced : "v4";
  __builtin_cpu_init();
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (v4 && most == "v4") return Isa::V4;
  if (v3 && most != "baseline") return Isa::V3;
#endif
  return Isa::Baseline;
}

Isa best_isa() {
  static const Isa chosen = detect();
  return chosen;
}

const char* isa_name() {
#if defined(__x86_64__)
  switch (best_isa()) {
    case Isa::V4:
      return "x86-64-v4";
    case Isa::V3:
      return "x86-64-v3";
    default:
      return "x86-64";
  }
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "generic";
#endif
}

}  // namespace rushlight
