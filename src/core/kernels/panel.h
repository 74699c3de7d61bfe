// A product of some rows with a packed matrix; see kernels/panel_product.h.
#pragma once

#include <cstdint>

namespace rushlight {

/// c = start + a packed, or += with `add`.
template <class T>
struct PanelProduct {
  std::int64_t rows;
  const T* a;
  std::int64_t lda;
  const T* packed;
  std::int64_t depth, cols;
  T* c;
  std::int64_t ldc;
  const T* start;  ///< a row that each row of c begins with; null: zeros
  bool add;
};

}  // namespace rushlight
