// A fused pass over memory: what it reads, what it writes, and the program between (operators/deferred.h).
#pragma once

#include <span>

#include "kernels/reduction.h"
#include "operators/deferred.h"
#include "operators/pending.h"

namespace rushlight {

class Fusion {
 public:
  explicit Fusion(PendingWork* last, PendingWork* companion = nullptr);
  /// A pass for a reduction of `reduced`, which is the last result.
  explicit Fusion(const Tensor& reduced);
  /// A pass for a look at pending results that are as large as the last one, and for what is made of them.
  explicit Fusion(std::span<const Looked> looked);

  /// Gives up where there would be too many operands or instructions.
  bool plan();
  void run();
  /// Folds the last result while it is computed.
  void run_reduced(const Fold& fold, IntSpan sizes, std::uint64_t dims, std::byte* out);
  /// What is found in the results that are looked at, and in those made of them: a sum of found_nan and found_infinity.
  unsigned run_looked();

  bool includes(const Storage* s) const;
  bool writes_last() const { return outputs_.back().written; }

 private:
  /// What computing a result from memory takes.
  struct Effort {
    std::size_t instructions = 0;          ///< more than most_again where one is not simple
    std::uint64_t reads = 0, results = 0;  ///< externals and written results, a bit each, that no node saves: they
                                           ///< would be kept for it
    int kept() const;
  };
  struct Output {
    std::size_t at;  ///< in order_
    bool written, searched;
  };
  struct Operands;
  struct Making;

  std::int64_t place_of(const PendingInput& in) const;
  std::int64_t place(const PendingInput& in);
  Effort effort_of(const PendingWork* d, const std::vector<Effort>& efforts) const;
  const Looked* looked_at(const Storage* s) const;
  bool is_written(std::size_t i, const Effort& effort) const;
  std::size_t work() const;
  std::vector<bool> choose_searched() const;
  void choose_outputs();
  void take_operands(Operands& o);
  static void finish(Operands& o);
  Kernel& kernel_for();
  std::unique_ptr<Kernel> build();

  PendingWork *last_, *companion_;
  const Tensor* reduced_ = nullptr;
  std::span<const Looked> looked_;
  std::vector<PendingWork*> order_;
  std::vector<std::intptr_t> read_here_;  ///< how many inputs of this pass each result is
  std::vector<const PendingInput*> externals_;
  std::vector<Output> outputs_;
  std::vector<std::int64_t> key_;
};

}  // namespace rushlight
