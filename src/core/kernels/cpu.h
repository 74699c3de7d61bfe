// Which build of our own kernels runs here. CMake compiles each *_isa.cpp once per instruction set, with
// RUSHLIGHT_ISA naming the namespace; RUSHLIGHT_BEST(expression) evaluates it in the best namespace for this CPU.
#pragma once

namespace rushlight {

enum class Isa { Baseline, V3, V4 };
Isa best_isa();
const char* isa_name();

#if defined(__x86_64__)
#define RUSHLIGHT_FOR_EACH_ISA(X) X(baseline) X(v3) X(v4)
#define RUSHLIGHT_BEST(expression) \
  (best_isa() == Isa::V4 ? v4::expression : best_isa() == Isa::V3 ? v3::expression : baseline::expression)
#else
#define RUSHLIGHT_FOR_EACH_ISA(X) X(baseline)
#define RUSHLIGHT_BEST(expression) (baseline::expression)
#endif

}  // namespace rushlight
