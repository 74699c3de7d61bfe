// Choosing elements by masks: bytes side by side, zero where an element is not chosen. Every loop goes through all
// elements without a branch, as a branch on a mask is mispredicted again and again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/nest.h"
#include "kernels/parallel.h"

namespace rushlight {

/// How many of some elements are chosen, in fixed parts that threads share.
class Choice {
 public:
  /// count(begin, end): how many of these elements are chosen.
  template <class Count>
  Choice(std::int64_t n, Count&& count) : n_(n), begin_(std::size_t((n + part - 1) / part + 1)) {
    parallel_for(parts(), 4, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t p = first; p < last; ++p) begin_[std::size_t(p + 1)] = count(p * part, end(p));
    });
    for (std::size_t p = 1; p < begin_.size(); ++p) begin_[p] += begin_[p - 1];
  }
  Choice(const std::uint8_t* mask, std::int64_t n);
  std::int64_t count() const { return begin_.back(); }
  /// Calls f(begin, end, first, last) for parts of the elements, [first, last) being the numbers of those chosen.
  template <class F>
  void for_each(F&& f) const {
    parallel_for(parts(), 2, [&](std::int64_t a, std::int64_t b) {
      for (std::int64_t p = a; p < b; ++p) f(p * part, end(p), begin_[std::size_t(p)], begin_[std::size_t(p + 1)]);
    });
  }

 private:
  static constexpr std::int64_t part = 1 << 14;
  std::int64_t parts() const { return std::int64_t(begin_.size()) - 1; }
  std::int64_t end(std::int64_t p) const { return std::min(n_, (p + 1) * part); }
  std::int64_t n_;
  std::vector<std::int64_t> begin_;  ///< of each part, the number of the first element that is chosen; then their count
};

/// to[k] = the k-th element that is chosen.
void select_masked(const Choice& choice, const std::uint8_t* mask, const std::byte* from, std::byte* to,
                   std::int64_t item);
/// The k-th element that is chosen = from[k].
void scatter_masked(const Choice& choice, const std::uint8_t* mask, const std::byte* from, std::byte* to,
                    std::int64_t item);
/// Elements of operand 1 = the number where operand 0, the mask, says so.
void fill_masked(const Nest& nest, char* const* base, const std::byte* number, std::int64_t item);

}  // namespace rushlight
