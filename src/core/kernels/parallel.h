// Threads: a static partition, so that who computes what depends on the sizes alone.
#pragma once

#include <cstdint>

#include "tensor/object.h"

namespace rushlight {

int num_threads();
void set_num_threads(int n);
bool in_parallel();

/// Must results have the same bits whatever the number of threads, also where a library computes them? Our own kernels'
/// always have; OpenBLAS rounds the edges of a product in their own way, and oneDNN sums as its threads share the work.
bool deterministic();
void set_deterministic(bool on);

namespace detail {
void parallel_run(std::int64_t n, std::int64_t chunk, int threads, void (*f)(void*, std::int64_t, std::int64_t),
                  void* state);
}

/// Calls f(begin, end) over parts of [0, n): one part below `grain` elements or on one thread. Parts begin at multiples
/// of 64 (whole cache lines) unless the grain says that single items are much work. `f` must not throw and must not
/// touch reference counts: the interpreter lock is released while several threads run. `keep_lock`: for work that
/// another thread must not find half done.
template <class F>
void parallel_for(std::int64_t n, std::int64_t grain, F&& f, bool keep_lock = false) {
  int threads = n > grain ? num_threads() : 1;
  if (threads > 1 && !in_parallel()) {
    std::int64_t parts = (n + grain - 1) / grain;
    if (parts < threads) threads = int(parts);
    std::int64_t align = grain < 64 ? 1 : 64, chunk = ((n + threads - 1) / threads + align - 1) / align * align;
    auto call = [](void* s, std::int64_t a, std::int64_t b) { (*static_cast<std::remove_reference_t<F>*>(s))(a, b); };
    if (keep_lock) return detail::parallel_run(n, chunk, threads, call, &f);
    Unlocked unlocked;
    detail::parallel_run(n, chunk, threads, call, &f);
  } else if (n > 0) {
    f(std::int64_t(0), n);
  }
}

}  // namespace rushlight
