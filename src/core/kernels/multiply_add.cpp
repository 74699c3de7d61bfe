#include "kernels/multiply_add.h"

#include <atomic>

namespace rushlight {

namespace {

bool has_fused_kernels() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

std::atomic<int>& choice_of_kernels() {
  static std::atomic<int> choice{has_fused_kernels() ? 1 : 0};
  return choice;
}

}  // namespace

bool uses_fused_kernels() { return choice_of_kernels().load(std::memory_order_relaxed) != 0; }

void force_fused_kernels(int choice) {
  choice_of_kernels().store(choice < 0 ? has_fused_kernels() : (choice > 0 && has_fused_kernels()),
                            std::memory_order_relaxed);
}

}  // namespace rushlight
