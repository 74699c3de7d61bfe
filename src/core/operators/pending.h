// The work behind one pending storage (operators/deferred.h), and the list of all such work.
#pragma once

#include <vector>

#include "kernels/program.h"
#include "tensor/tensor.h"

namespace rushlight {

/// How a smaller operand is repeated over a result: element i of that reads element
///   i / run / repeat % count * next + (steps ? i % run : 0)
/// A row of a matrix: steps, count 1. A column: repeat 1, next 1. In general, runs that are repeated, and those in
/// turn.
struct Spread {
  std::int64_t run = 0, repeat = 1, count = 1, next = 0;  ///< run 0: the operand is whole, or one number
  bool steps = false;
  explicit operator bool() const { return run != 0; }
  struct Place {
    std::int64_t element, left;  ///< and how many places are left of the run
  };
  Place at(std::int64_t i) const {
    std::int64_t nth = i / run, in_run = i - nth * run;
    return {(next ? nth / repeat % count * next : 0) + (steps ? in_run : 0), run - in_run};
  }
  friend bool operator==(const Spread&, const Spread&) = default;
};

/// An operand of pending work.
struct PendingInput {
  Storage* storage = nullptr;  ///< owned; null: a number, or unused
  std::int64_t offset = 0;     ///< in bytes
  bool single = false;         ///< one element for all places
  bool used = false;
  Spread spread;
  Scalar number;
  /// Every element of the result has its own.
  bool whole() const { return storage && !single && !spread; }
  friend bool operator==(const PendingInput& a, const PendingInput& b) {
    return a.storage && a.storage == b.storage && a.offset == b.offset && a.single == b.single && a.spread == b.spread;
  }
};

struct PendingWork : Pending {
  Storage* self = nullptr;
  const Program* program = nullptr;
  DType dtype = DType::Float32;
  std::int64_t n = 0;
  Arrangement layout;  ///< of the result and of all inputs that are whole
  std::vector<PendingInput> inputs;
  bool reduced = false;                             ///< was computed for a reduction, and not written
  PendingWork* companion = nullptr;                 ///< work to be done in the same pass (defer_together)
  PendingWork *before = nullptr, *after = nullptr;  ///< in the list of all

  PendingWork();
  PendingWork(const PendingWork&) = delete;
  ~PendingWork();
  /// The latest one.
  static PendingWork*& all();
  /// Whether the work is like another's: results of one size, type and order.
  bool suits(const PendingWork& other) const { return n == other.n && dtype == other.dtype && layout == other.layout; }
};

inline PendingWork* work_of(const Storage* s) { return static_cast<PendingWork*>(s->pending); }

/// The work behind a row-major tensor that is all of its storage; null where it is not pending, or lies otherwise.
inline PendingWork* whole_work(const Tensor& t) {
  if (!t.storage->deferred() || t.storage->layout || t.offset != 0 || !t.is_contiguous()) return nullptr;
  PendingWork* work = work_of(t.storage);
  return work->n == t.numel && work->dtype == t.dtype ? work : nullptr;
}

/// Adds the pending work behind the inputs to `order`, in the order of computation.
void collect_inputs(const std::vector<PendingInput>& inputs, std::vector<PendingWork*>& order);
/// The same, and `last` itself.
void collect(PendingWork* last, std::vector<PendingWork*>& order);

/// What a pass over several pieces of work would have to do.
struct Extent {
  std::size_t instructions = 0;
  std::vector<const PendingInput*> read;  ///< what is read from memory, and numbers

  void add(const Program& program, const std::vector<PendingInput>& inputs);
  bool few_instructions() const;
  bool fits() const;
};

}  // namespace rushlight
