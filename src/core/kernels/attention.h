// Attention of one head, forward and backward, some rows of queries at a time: their scores are a strip that stays in
// the caches, and no matrix of all scores is kept. Backward computes the scores again from the rows' normalisers.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace rushlight {

/// Rows of numbers, `row` apart.
template <class T>
struct HeadRows {
  T* first = nullptr;
  std::int64_t row = 0;
  T* at(std::int64_t i) const { return first + i * row; }
};

/// A mask of (length, keys): bool, true where a key is seen, or numbers to add; null: none.
template <class T>
struct HeadMask {
  const bool* seen = nullptr;
  const T* added = nullptr;
  std::int64_t row = 0, column = 0;
};

/// What all heads share. `width` is that of queries and keys, `values` that of values and results.
struct AttentionShape {
  std::int64_t length, keys, width, values;
  bool causal;  ///< query i sees the keys up to i
  double scale;
};

template <class T>
struct AttentionHead {
  HeadRows<const T> q, k, v;
  HeadMask<T> mask;
  HeadRows<T> out;
  T* normalisers;  ///< (length): log(sum(exp(scores))), infinite for a row that sees no key
};

/// The gradients of one head; those of keys and values are added to, since several heads may share them.
template <class T>
struct AttentionHeadVjp {
  HeadRows<const T> d_out;
  HeadRows<T> dq, dk, dv;
};

/// Several heads of queries share the keys and values of each head group: `heads[g * share .. (g + 1) * share)`.
template <class T>
void attention_forward(const AttentionShape& shape, const AttentionHead<T>* heads, std::int64_t groups,
                       std::int64_t share);
template <class T>
void attention_backward(const AttentionShape& shape, const AttentionHead<T>* heads, const AttentionHeadVjp<T>* vjps,
                        std::int64_t groups, std::int64_t share);

/// What each instruction set's build offers. `scratch` has scratch_size() numbers.
template <class T>
struct AttentionBuild {
  std::int64_t (*scratch_size)(const AttentionShape& shape, bool backward);
  /// The heads of one group, rows [begin, end) of their queries.
  void (*forward)(const AttentionShape& shape, const AttentionHead<T>* heads, std::int64_t share, std::int64_t begin,
                  std::int64_t end, T* scratch);
  void (*backward)(const AttentionShape& shape, const AttentionHead<T>* heads, const AttentionHeadVjp<T>* vjps,
                   std::int64_t share, T* scratch);
};

}  // namespace rushlight
