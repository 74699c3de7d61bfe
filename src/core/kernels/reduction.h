// Reductions over memory: folds of elements into states. The partition and the order of joining depend on sizes and
// layout alone, never on threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/tensor.h"

namespace rushlight {

/// What becomes of an element x (c: the centre of its output, where a fold has one) and how results are joined.
enum class FoldKind : std::uint8_t {
  Sum,        ///< x; bool and integers in int64, halves in float, others in their own type
  NanSum,     ///< x, or 0 for NaN
  WideSum,    ///< x, floating types in double
  AbsSum,     ///< |x|, as Sum
  SquareSum,  ///< x * x, as Sum
  Deviation,  ///< (x - c)^2 in double; c is double
  Count,      ///< x != 0, in int64
  Prod,       ///< x multiplied, types as for Sum
  Max,        ///< the largest, a NaN if there is one
  Min,
  AbsMax,  ///< the largest |x|
  AbsMin,
  Any,  ///< x != 0, or
  All,  ///< x != 0, and
};
inline constexpr int fold_kinds = int(FoldKind::All) + 1;

/// A fold of elements of one type, built once per instruction set.
struct Fold {
  DType state = DType::Bool;    ///< the type of results
  std::byte identity[16] = {};  ///< the result of no elements
  /// state = the fold of n elements at a distance of `step` bytes, in 32 lanes that are then joined as a tree.
  void (*line)(const char* from, std::int64_t n, std::int64_t step, const char* centre, char* state) = nullptr;
  /// states[i] = states[i] joined with element from[i * step bytes], i < n; states and centres are contiguous.
  void (*rows)(char* states, const char* from, std::int64_t n, std::int64_t step, const char* centres) = nullptr;
  /// states[i] = states[i] joined with others[i].
  void (*merge)(char* states, const char* others, std::int64_t n) = nullptr;
};

/// Refused by name where the type has no such fold (`operation` for the message).
const Fold& fold(FoldKind kind, DType type, const char* operation);

/// out (contiguous, one state per index of the kept dimensions in row-major order) = the folds of `t` over the
/// dimensions whose bit is set; `centres` likewise where the fold has them. Long folds are joins of fixed blocks.
void reduce(const Fold& fold, const Tensor& t, std::uint64_t reduced, std::byte* out,
            const std::byte* centres = nullptr);

constexpr std::int64_t line_block = 4096;  ///< elements of one partial result

/// Numbers that are made when they are wanted: `make` gives the address of elements [at, at + n), n <= line_block,
/// packed. The address holds until the thread asks again. Each element is asked for once, on any thread.
struct Maker {
  const char* (*make)(const void* state, std::int64_t at, std::int64_t n);
  const void* state;
};
/// The same result, bit by bit, as that of `reduce` for a row-major tensor of these sizes which held the numbers.
void reduce_made(const Fold& fold, const Maker& maker, IntSpan sizes, std::int64_t item, std::uint64_t reduced,
                 std::byte* out);
/// In which order the numbers would be wanted; None where in pieces that are scattered, or shorter than `least`.
enum class MadeOrder { None, AsTheyLie, ByColumns };
MadeOrder order_made(const Fold& fold, IntSpan sizes, std::int64_t item, std::uint64_t reduced, std::int64_t least);

/// places (row-major, the other dimensions) = where along `dim` the first element stands that is the value given for
/// its line; a NaN is any NaN. `values` are contiguous, in the same order and of the type of `t`.
void find_first(const Tensor& t, int dim, const std::byte* values, std::int64_t* places);

}  // namespace rushlight
