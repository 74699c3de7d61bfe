#include "kernels/multiply_add.h"

#include <atomic>

#include "kernels/cpu.h"

namespace rushlight {

namespace {

bool has_fused_kernels() { return best_isa() != Isa::Baseline; }

std::atomic<bool>& fused_kernels() {
  static std::atomic<bool> chosen{has_fused_kernels()};
  return chosen;
}

}  // namespace

bool uses_fused_kernels() { return fused_kernels().load(std::memory_order_relaxed); }

void use_fused_kernels(bool fused) { fused_kernels().store(fused && has_fused_kernels(), std::memory_order_relaxed); }

}  // namespace rushlight
