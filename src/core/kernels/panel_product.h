// Products with a matrix that is packed once and multiplied by again and again; included by sources compiled once per
// instruction set, with contraction of products and sums.
//
// A packed matrix (depth x cols) lies in panels of panel_width columns, each row of a panel together, the last panel
// filled up with zeros. A tile of the result, some rows by one panel, stays in registers while the panel runs by.
// Each element is summed in the order of depth alone, so that it does not depend on which rows are computed together.
#pragma once

#include <cstdint>
#include <cstring>

namespace rushlight::RUSHLIGHT_ISA {
namespace {

// registers: tile_rows x 2 sums, two of the panel and one factor
#if defined(__AVX512F__)
constexpr int vector_bytes = 64, tile_rows = 8;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32, tile_rows = 6;
#elif defined(__aarch64__)
constexpr int vector_bytes = 16, tile_rows = 8;
#else
constexpr int vector_bytes = 16, tile_rows = 4;
#endif

template <class T>
struct Vectors {
  typedef T Vector __attribute__((vector_size(vector_bytes), aligned(alignof(T)), may_alias));
  static constexpr int lanes = vector_bytes / int(sizeof(T));
};
template <class T>
constexpr int panel_width = 2 * Vectors<T>::lanes;

template <class T>
constexpr std::int64_t panels_of(std::int64_t cols) {
  return (cols + panel_width<T> - 1) / panel_width<T>;
}

/// Elements of a packed matrix.
template <class T>
std::int64_t packed_size(std::int64_t depth, std::int64_t cols) {
  return depth * panels_of<T>(cols) * panel_width<T>;
}

/// Packs the panels [first, last) of the matrix with these element strides.
template <class T>
void pack_panels(const T* from, std::int64_t depth, std::int64_t cols, std::int64_t row_stride, std::int64_t col_stride,
                 T* to, std::int64_t first, std::int64_t last) {
  constexpr std::int64_t width = panel_width<T>;
  for (std::int64_t p = first; p < last; ++p) {
    T* panel = to + p * depth * width;
    std::int64_t n = cols - p * width < width ? cols - p * width : width;
    const T* source = from + p * width * col_stride;
    if (n < width) std::memset(panel, 0, std::size_t(depth * width) * sizeof(T));
    if (col_stride == 1) {
      for (std::int64_t k = 0; k < depth; ++k)
        for (std::int64_t j = 0; j < n; ++j) panel[k * width + j] = source[k * row_stride + j];
    } else {
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t k = 0; k < depth; ++k) panel[k * width + j] = source[k * row_stride + j * col_stride];
    }
  }
}

/// c (rows x width) = a panel, or += with `add`.
template <class T, int rows>
void tile(const T* a, std::int64_t lda, const T* panel, std::int64_t depth, T* c, std::int64_t ldc, bool add) {
  using Vector = typename Vectors<T>::Vector;
  constexpr int lanes = Vectors<T>::lanes;
  Vector sums[rows][2];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    auto* row = reinterpret_cast<Vector*>(c + r * ldc);
    sums[r][0] = add ? row[0] : Vector{};
    sums[r][1] = add ? row[1] : Vector{};
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    auto* b = reinterpret_cast<const Vector*>(panel + k * 2 * lanes);
    Vector left = b[0], right = b[1];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      Vector factor = a[r * lda + k] - Vector{};
      sums[r][0] += factor * left;
      sums[r][1] += factor * right;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    auto* row = reinterpret_cast<Vector*>(c + r * ldc);
    row[0] = sums[r][0];
    row[1] = sums[r][1];
  }
}

template <class T, int most = tile_rows>
void tile_of(int rows, const T* a, std::int64_t lda, const T* panel, std::int64_t depth, T* c, std::int64_t ldc,
             bool add) {
  if constexpr (most > 1)
    if (rows < most) return tile_of<T, most - 1>(rows, a, lda, panel, depth, c, ldc, add);
  tile<T, most>(a, lda, panel, depth, c, ldc, add);
}

/// The columns of the panels [first, last) of c (rows x cols) = a packed, or += with `add`.
template <class T>
void panel_product(std::int64_t rows, const T* a, std::int64_t lda, const T* packed, std::int64_t depth,
                   std::int64_t cols, std::int64_t first, std::int64_t last, T* c, std::int64_t ldc, bool add) {
  constexpr std::int64_t width = panel_width<T>;
  std::int64_t tiles = (rows + tile_rows - 1) / tile_rows;
  for (std::int64_t p = first; p < last; ++p) {
    const T* panel = packed + p * depth * width;
    std::int64_t n = cols - p * width < width ? cols - p * width : width;
    for (std::int64_t i = 0; i < tiles; ++i) {
      std::int64_t begin = rows * i / tiles, count = rows * (i + 1) / tiles - begin;
      T* to = c + begin * ldc + p * width;
      if (n == width) {
        tile_of<T>(int(count), a + begin * lda, lda, panel, depth, to, ldc, add);
        continue;
      }
      T whole[tile_rows * width] = {};  // the last columns, which are fewer than a panel's
      for (std::int64_t r = 0; r < count && add; ++r)
        std::memcpy(whole + r * width, to + r * ldc, std::size_t(n) * sizeof(T));
      tile_of<T>(int(count), a + begin * lda, lda, panel, depth, whole, width, add);
      for (std::int64_t r = 0; r < count; ++r) std::memcpy(to + r * ldc, whole + r * width, std::size_t(n) * sizeof(T));
    }
  }
}

}  // namespace
}  // namespace rushlight::RUSHLIGHT_ISA
