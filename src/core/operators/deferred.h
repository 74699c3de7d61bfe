// Deferred pointwise work.
//
// A large pointwise result of one floating type need not be computed when it is made: its storage stays pending, with a
// program and the storages it reads, until somebody asks for the bytes. Then the pending results that it is made of are
// computed together, in one pass over memory: a chain of eager operations costs the traffic of one. Every pending
// result that a tensor still holds is written in the same pass.
//
// Memory costs more than arithmetic, so that three kinds of results are not written: what only derivatives wait for, if
// a few simple instructions make it again in backward's own pass (fusion.cpp); what is reduced and not asked for again
// (reduce_pending); and what is only to be searched for NaN (is_finite_pending). They stay pending.
//
// Operands may be smaller than the result: single elements, rows, columns (pending.h, Spread).
//
// Nobody can tell, because Storage::read() and write() are the only doors: reading does the work, and writing to a
// storage that pending work reads does that work first (Storage::readers). Storages whose bytes are reachable by other
// means (Storage::exposed) are never deferred over.
#pragma once

#include "kernels/reduction.h"
#include "operators/pointwise.h"

namespace rushlight {

struct DeferralLimits {
  bool on = true;
  /// Results of fewer elements are computed at once: they fit the caches, and the calls would cost more than they save.
  std::int64_t elements = 1 << 16;
  /// Between the places where a repeated operand begins anew, or of a row that is reduced.
  std::int64_t run = 256;
};
extern DeferralLimits deferral_limits;

/// A pending row-major tensor of `sizes` for `program` over operands of type `d`: numbers, single elements, row-major
/// tensors of these sizes, or tensors that are repeated over them in long runs (unused ones are empty). Null where it
/// cannot be deferred.
TensorRef defer(const Program& program, DType d, const Operand* in, int n, IntSpan sizes);

/// The same, in place, for a tensor that is pending itself, and one of the operands: what it was becomes a result that
/// only the new work reads. False where the change must be made at once.
bool defer_inplace(const Program& program, DType d, const Operand* in, int n, Tensor& self);

/// Lets two pending tensors be computed in one pass, whichever is asked for first: what both stand on is computed once,
/// and not written where only they read it.
void defer_together(const Tensor& a, const Tensor& b);

/// The operand of an operation in progress of which the caller's count of references tells all: once the operation is
/// done, nobody asks for it who does not hold it. An operator's own code may use what it reduces once more.
class CallersOperand {
 public:
  explicit CallersOperand(const Tensor* t) : outer_(current) { current = t; }
  CallersOperand(const CallersOperand&) = delete;
  ~CallersOperand() { current = outer_; }
  static inline const Tensor* current = nullptr;

 private:
  const Tensor* outer_;
};

/// Reduces a pending tensor while it is computed, without writing it where nobody is likely to ask for it: `reduce`
/// (kernels/reduction.h) of its numbers. False, and nothing is done, where it is not pending or does not lie so.
bool reduce_pending(const Fold& fold, const Tensor& t, std::uint64_t dims, std::byte* out);

/// A result that is to be looked at.
struct Looked {
  const Tensor* tensor;
  bool held;  ///< by others than who looks: it is written, then
};
/// Whether pending results, in the order in which they were made, are free of what is asked for. They are looked at
/// while they are computed, together, and written only where others hold them.
bool is_finite_pending(std::vector<Looked> looked, bool nans, bool infinities);

/// For tests and measurements.
struct DeferralStats {
  std::int64_t deferred = 0;  ///< results left pending
  std::int64_t passes = 0;    ///< passes over memory that computed pending results
};
extern DeferralStats deferral_stats;
/// Called before and after each such pass while somebody watches, else null.
extern void (*watch_pass)(bool begins);

}  // namespace rushlight
