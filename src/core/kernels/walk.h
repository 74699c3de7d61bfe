// One operand's own way through a nest, to bring its elements together: where the runs that all operands share are
// short, loops over packed blocks are faster than a loop per run.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/nest.h"

namespace rushlight {

constexpr std::int64_t short_run = 32;  ///< elements; below, it pays to pack

class Walk {
 public:
  Walk() = default;
  /// Of operand `k`: neighbouring dimensions are merged where it runs on, whatever the others do.
  Walk(const Nest& nest, int k) {
    for (int d = 0; d < nest.ndim; ++d) {
      std::int64_t step = nest.steps[d][k];
      if (ndim_ && step == steps_[ndim_ - 1] * sizes_[ndim_ - 1]) {
        sizes_[ndim_ - 1] *= nest.sizes[d];
        continue;
      }
      sizes_[ndim_] = nest.sizes[d];
      steps_[ndim_++] = step;
    }
  }

  /// Element i is at i * step().
  bool is_even() const { return ndim_ <= 1; }
  std::int64_t step() const { return ndim_ ? steps_[0] : 0; }

  /// to[i] = element `at` + i, for i < n.
  template <class T>
  void gather(const char* base, std::int64_t at, std::int64_t n, T* to) const {
    for_runs(at, n, [&](std::int64_t offset, std::int64_t count) {
      const char* from = base + offset;
      for (std::int64_t i = 0; i < count; ++i) to[i] = *reinterpret_cast<const T*>(from + i * steps_[0]);
      to += count;
    });
  }
  /// The other way.
  template <class T>
  void scatter(char* base, std::int64_t at, std::int64_t n, const T* from) const {
    for_runs(at, n, [&](std::int64_t offset, std::int64_t count) {
      char* to = base + offset;
      for (std::int64_t i = 0; i < count; ++i) *reinterpret_cast<T*>(to + i * steps_[0]) = from[i];
      from += count;
    });
  }

 private:
  /// Calls f(offset in bytes, length) for the runs of elements [at, at + n).
  template <class F>
  void for_runs(std::int64_t at, std::int64_t n, F&& f) const {
    std::int64_t index[64], offset = 0;
    for (int d = 0; d < ndim_; ++d) {
      index[d] = at % sizes_[d];
      at /= sizes_[d];
      offset += index[d] * steps_[d];
    }
    while (true) {
      std::int64_t count = std::min(n, sizes_[0] - index[0]);
      if (ndim_ > 1 && index[0] == 0 && count == sizes_[0]) {  // whole runs, as many as follow one another
        std::int64_t runs = std::min(n / count, sizes_[1] - index[1]);
        for (std::int64_t i = 0; i < runs; ++i) f(offset + i * steps_[1], count);
        offset += (runs - 1) * steps_[1];
        index[1] += runs - 1;
        n -= runs * count;
      } else {
        f(offset, count);
        n -= count;
      }
      if (n == 0) return;
      offset -= index[0] * steps_[0];
      index[0] = 0;
      for (int d = 1; d < ndim_; ++d) {
        offset += steps_[d];
        if (++index[d] < sizes_[d]) break;
        offset -= sizes_[d] * steps_[d];
        index[d] = 0;
      }
    }
  }

  int ndim_ = 0;
  std::int64_t sizes_[64], steps_[64];
};

}  // namespace rushlight
