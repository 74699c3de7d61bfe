#include "kernels/parallel.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "tensor/error.h"

namespace rushlight {
namespace {

int initial_threads() {
#ifdef _OPENMP
  // A forked child finds the parent's worker threads gone, and the runtime would wait for them: it works alone.
  pthread_atfork(nullptr, nullptr, [] { set_num_threads(1); });
  return std::max(1, omp_get_max_threads());
#else
  return 1;
#endif
}

int& threads() {
  static int n = initial_threads();
  return n;
}

thread_local bool inside = false;
bool same_bits = false;

}  // namespace

int num_threads() { return threads(); }

void set_num_threads(int n) {
  check(n > 0, "set_num_threads expects a positive integer, got ", n);
  threads() = n;
#ifdef _OPENMP
  omp_set_num_threads(n);
#endif
}

bool in_parallel() { return inside; }

bool deterministic() { return same_bits; }
void set_deterministic(bool on) { same_bits = on; }

void detail::parallel_run(std::int64_t n, std::int64_t chunk, int count, void (*f)(void*, std::int64_t, std::int64_t),
                          void* state) {
#ifdef _OPENMP
#pragma omp parallel for schedule(static, 1) num_threads(count)
#endif
  for (int part = 0; part < count; ++part) {
    std::int64_t begin = part * chunk, end = std::min(n, begin + chunk);
    if (begin >= end) continue;
    inside = true;
    f(state, begin, end);
    inside = false;
  }
  (void)count;
}

}  // namespace rushlight
