// Deferred pointwise work.
//
// A large pointwise result of one floating type need not be computed when it is made: its storage stays pending, with a
// program and the storages it reads, until somebody asks for the bytes. Then the pending results that it is made of are
// computed together, in one pass over memory: a chain of eager operations costs the traffic of one. Every pending
// result that anybody else still holds is written in the same pass, so nothing is computed twice.
//
// Nobody can tell, because Storage::read() and write() are the only doors: reading does the work, and writing to a
// storage that pending work reads does that work first (Storage::readers). Storages whose bytes are reachable by other
// means (Storage::exposed) are never deferred over.
#pragma once

#include "operators/pointwise.h"

namespace rushlight {

/// Results of fewer elements are computed at once: they fit the caches, and the calls would cost more than they save.
constexpr std::int64_t deferral_threshold = 1 << 16;

/// A pending tensor like `like` for `program` over operands of type `d`: numbers, single elements, or row-major tensors
/// of one size (unused ones are empty). Null where it cannot be deferred.
TensorRef defer(const Program& program, DType d, const Operand* in, int n, const Tensor& like);

/// The same, in place, for a tensor that is pending itself, and one of the operands: what it was becomes a result that
/// only the new work reads. False where the change must be made at once.
bool defer_inplace(const Program& program, DType d, const Operand* in, int n, Tensor& self);

/// Lets two pending tensors be computed in one pass, whichever is asked for first: what both stand on is computed once,
/// and not written where only they read it.
void defer_together(const Tensor& a, const Tensor& b);

/// For tests and measurements.
struct DeferralStats {
  std::int64_t deferred = 0;  ///< results left pending
  std::int64_t passes = 0;    ///< passes over memory that computed pending results
};
extern DeferralStats deferral_stats;
/// Called before and after each such pass while somebody watches, else null.
extern void (*watch_pass)(bool begins);
void set_deferral(bool on);

}  // namespace rushlight
