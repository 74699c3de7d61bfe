// Products with a matrix that is packed once and multiplied by again and again; included by sources compiled once per
// instruction set, with contraction of products and sums.
//
// A packed matrix (depth x cols) lies in panels of panel_width columns, each row of a panel together, the last panel
// filled up with zeros. A tile of the result, some rows by one panel, stays in registers while the panel runs by.
// Each element is summed in the order of depth alone, so that it does not depend on which rows are computed together.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/panel.h"

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

/// The columns of `across` panels of `rows` rows of c.
template <class T, int rows, int across>
void tile(const PanelProduct<T>& m, const T* a, const T* panel, T* c, const T* start) {
  using Vector = typename Vectors<T>::Vector;
  constexpr int lanes = Vectors<T>::lanes, width = 2 * across;
  Vector sums[rows][width];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    auto* from = reinterpret_cast<const Vector*>(m.add ? c + r * m.ldc : start);
#pragma GCC unroll 8
    for (int v = 0; v < width; ++v) sums[r][v] = from ? from[v] : Vector{};
  }
  std::int64_t panel_size = m.tall * 2 * lanes, depth = m.depth, lda = m.lda, step = m.step;
  for (std::int64_t k = 0; k < depth; ++k, a += step) {
    Vector b[width];
#pragma GCC unroll 8
    for (int v = 0; v < width; ++v)
      b[v] = *reinterpret_cast<const Vector*>(panel + v / 2 * panel_size + (k * 2 + v % 2) * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      Vector factor = a[r * lda] - Vector{};
#pragma GCC unroll 8
      for (int v = 0; v < width; ++v) sums[r][v] += factor * b[v];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < width; ++v) reinterpret_cast<Vector*>(c + r * m.ldc)[v] = sums[r][v];
}

/// Rows below which a tile spans several panels, so that enough sums are under way at once.
template <int rows>
constexpr int panels_across = rows == 1   ? 4
                              : rows == 2 ? 2
                                          : 1;

/// A tile of `rows` <= most rows from panel p on; gives the number of panels that it took, at most `panels`.
template <class T, int most = tile_rows>
std::int64_t tile_at(int rows, const PanelProduct<T>& m, const T* a, T* c, std::int64_t p, std::int64_t panels) {
  if constexpr (most > 1)
    if (rows < most) return tile_at<T, most - 1>(rows, m, a, c, p, panels);
  constexpr std::int64_t width = panel_width<T>;
  const T *panel = m.packed + p * m.tall * width, *start = m.start ? m.start + p * width : nullptr;
  c += p * width;
  if constexpr (panels_across<most> > 1)
    if (panels >= panels_across<most>) {
      tile<T, most, panels_across<most>>(m, a, panel, c, start);
      return panels_across<most>;
    }
  tile<T, most, 1>(m, a, panel, c, start);
  return 1;
}

/// The last columns, which are fewer than a panel's.
template <class T>
void last_panel(int rows, const PanelProduct<T>& m, const T* a, T* c, std::int64_t p) {
  constexpr std::int64_t width = panel_width<T>;
  std::size_t bytes = std::size_t(m.cols - p * width) * sizeof(T);
  T whole[tile_rows * width] = {}, start[width] = {};
  for (std::int64_t r = 0; r < rows && m.add; ++r) std::memcpy(whole + r * width, c + r * m.ldc + p * width, bytes);
  if (m.start) std::memcpy(start, m.start + p * width, bytes);
  PanelProduct<T> alone = m;
  alone.packed += p * m.tall * width;
  alone.c = whole, alone.ldc = alone.cols = width, alone.start = start;
  tile_at<T>(rows, alone, a, whole, 0, 1);
  for (std::int64_t r = 0; r < rows; ++r) std::memcpy(c + r * m.ldc + p * width, whole + r * width, bytes);
}

/// The columns of the panels [first, last).
template <class T>
void panel_product(const PanelProduct<T>& m, std::int64_t first, std::int64_t last) {
  std::int64_t tiles = (m.rows + tile_rows - 1) / tile_rows, whole = m.cols / panel_width<T>;
  std::int64_t few = m.rows < 3 ? 4 : 1;  // panels that few rows take at once
  for (std::int64_t p = first; p < last; p += few) {
    std::int64_t end = p + few < last ? p + few : last;
    for (std::int64_t i = 0; i < tiles; ++i) {
      std::int64_t begin = m.rows * i / tiles;
      int rows = int(m.rows * (i + 1) / tiles - begin);
      const T* a = m.a + begin * m.lda;
      T* c = m.c + begin * m.ldc;
      std::int64_t at = p, full = end < whole ? end : whole;
      while (at < full) at += tile_at<T>(rows, m, a, c, at, full - at);
      if (at < end) last_panel(rows, m, a, c, at);
    }
  }
}

}  // namespace
}  // namespace rushlight::RUSHLIGHT_ISA
