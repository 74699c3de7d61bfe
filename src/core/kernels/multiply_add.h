// x * y + z with one rounding or two: which of them a kernel does is part of its result.
//
// PyTorch's AVX2 kernels were compiled with contraction, its baseline ones without. A kernel that must give the same
// bits is written once over an Arithmetic and run by with_pytorch_arithmetic. Files that use this are compiled with
// -ffp-contract=off.
#pragma once

#include <cmath>

namespace rushlight {

/// Two roundings.
struct SeparateArithmetic {
  static float multiply_add(float x, float y, float z) { return x * y + z; }
  static double multiply_add(double x, double y, double z) { return x * y + z; }
};

/// One rounding; an instruction where inlined into a function for FMA, a call of the C library elsewhere.
struct FusedArithmetic {
  static float multiply_add(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
  static double multiply_add(double x, double y, double z) { return __builtin_fma(x, y, z); }
};

/// Whether this machine's PyTorch takes its AVX2 kernels: from x86-64-v3 on (best_isa(); RUSHLIGHT_ISA=baseline says
/// no, as ATEN_CPU_CAPABILITY=default does to PyTorch).
bool uses_fused_kernels();

/// For tests: chooses the fused kernels, where the machine has them, or the others.
void use_fused_kernels(bool fused);

#if defined(__x86_64__)
#define RUSHLIGHT_FUSED_TARGET [[gnu::target("avx2,fma")]]
#else
#define RUSHLIGHT_FUSED_TARGET
#endif

/// Puts a lambda's body into its caller, so that it is compiled for the caller's instruction set.
#define RUSHLIGHT_INLINE_LAMBDA __attribute__((always_inline))

template <class F>
RUSHLIGHT_FUSED_TARGET void with_fused_arithmetic(const F& f) {
  f(FusedArithmetic{});
}

/// Calls f(Arithmetic) with PyTorch's arithmetic of this machine. To be fast, f and what it calls must be inlined.
template <class F>
void with_pytorch_arithmetic(const F& f) {
  if (uses_fused_kernels())
    with_fused_arithmetic(f);
  else
    f(SeparateArithmetic{});
}

}  // namespace rushlight
