// A product of some rows with a packed matrix; see kernels/panel_product.h.
#pragma once

#include <cstdint>

namespace rushlight {

/// c = start + a packed, or += with `add`. Element (i, k) of a lies at i lda + k step. Of the packed matrix, which has
/// `tall` rows, the first `depth` are used.
template <class T>
struct PanelProduct {
  std::int64_t rows;
  const T* a;
  std::int64_t lda, step;
  const T* packed;
  std::int64_t tall, depth, cols;
  T* c;
  std::int64_t ldc;
  const T* start;  ///< a row that each row of c begins with; null: zeros
  bool add;
};

}  // namespace rushlight
