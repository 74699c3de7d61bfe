// Attention of one head, compiled once per instruction set.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/attention.h"
#include "kernels/exponential.h"
#include "kernels/lane.h"
#include "kernels/panel_product.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

constexpr std::int64_t lanes = 32, most_rows = 64;

template <class T>
constexpr std::int64_t whole_panels(std::int64_t n) {
  return panels_of<T>(n) * panel_width<T>;
}

/// Rows of queries whose strip of scores fits the caches.
template <class T>
std::int64_t strip_rows(const AttentionShape& s) {
  constexpr std::int64_t numbers = (1 << 17) / sizeof(T);
  return std::clamp<std::int64_t>(numbers / whole_panels<T>(s.keys) / tile_rows * tile_rows, tile_rows, most_rows);
}

/// Numbers handed out one block after the other.
template <class T>
struct Scratch {
  T* next;
  T* take(std::int64_t n) {
    T* block = next;
    next += n;
    return block;
  }
};

template <class T>
std::int64_t scratch_size(const AttentionShape& s, bool backward) {
  std::int64_t strip = std::min(strip_rows<T>(s), whole_panels<T>(s.length)) * whole_panels<T>(s.keys);
  std::int64_t k_turned = packed_size<T>(s.width, s.keys), v = packed_size<T>(s.keys, s.values);
  if (!backward) return strip + k_turned + v;
  return 2 * strip + k_turned + packed_size<T>(s.values, s.keys) + packed_size<T>(s.keys, s.width) +
         packed_size<T>(most_rows, s.values) + packed_size<T>(most_rows, s.width);
}

template <class T>
void pack(HeadRows<const T> from, std::int64_t rows, std::int64_t cols, T* to) {
  pack_panels(from.first, rows, cols, from.row, std::int64_t(1), to, 0, panels_of<T>(cols));
}
template <class T>
void pack_turned(HeadRows<const T> from, std::int64_t rows, std::int64_t cols, T* to) {
  pack_panels(from.first, cols, rows, std::int64_t(1), from.row, to, 0, panels_of<T>(rows));
}

/// All panels of c.
template <class T>
void multiply(const PanelProduct<T>& m) {
  panel_product(m, 0, panels_of<T>(m.cols));
}

/// The keys that any of the rows up to `end` sees.
std::int64_t keys_of(const AttentionShape& s, std::int64_t end) { return s.causal ? std::min(s.keys, end) : s.keys; }

/// A row of raw scores scaled and masked; gives the number of keys that lie before the future.
template <class T>
std::int64_t finish_scores(const AttentionShape& s, const HeadMask<T>& mask, std::int64_t i, T* x) {
  std::int64_t n = keys_of(s, i + 1);
  T scale = T(s.scale);
  for (std::int64_t j = 0; j < n; ++j) x[j] *= scale;
  if (mask.added) {
    const T* row = mask.added + i * mask.row;
    for (std::int64_t j = 0; j < n; ++j) x[j] += row[j * mask.column];
  } else if (mask.seen) {
    const bool* row = mask.seen + i * mask.row;
    for (std::int64_t j = 0; j < n; ++j) x[j] = row[j * mask.column] ? x[j] : -std::numeric_limits<T>::infinity();
  }
  return n;
}

/// x = exp(x - largest), zeros from n up to `all`; gives their sum, and the row's normaliser.
template <class T>
T exponentials(T* x, std::int64_t n, std::int64_t all, T& normaliser) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  T largest =
      in_lanes<T, lanes>(n, -infinity, [=](std::int64_t j) { return x[j]; }, [](T a, T b) { return a > b ? a : b; });
  bool blind = largest == -infinity;  // unless NaN: these are not compared
  T shift = blind ? T(0) : largest;
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) x[j] = exponential(x[j] - shift);
  for (std::int64_t j = n; j < all; ++j) x[j] = 0;
  T total = in_lanes<T, lanes>(n, T(0), [=](std::int64_t j) { return x[j]; }, [](T a, T b) { return a + b; });
  normaliser = total == 0 ? infinity : shift + std::log(total);
  return total;
}

template <class T>
void forward(const AttentionShape& s, const AttentionHead<T>* heads, std::int64_t share, std::int64_t begin,
             std::int64_t end, T* memory) {
  Scratch<T> scratch{memory};
  std::int64_t columns = whole_panels<T>(s.keys), rows = strip_rows<T>(s);
  T *k_turned = scratch.take(packed_size<T>(s.width, s.keys)), *v = scratch.take(packed_size<T>(s.keys, s.values)),
    *strip = scratch.next;
  pack_turned(heads->k, s.keys, s.width, k_turned);
  pack(heads->v, s.keys, s.values, v);
  for (std::int64_t h = 0; h < share; ++h) {
    const AttentionHead<T>& head = heads[h];
    for (std::int64_t i = begin; i < end; i += rows) {
      std::int64_t count = std::min(rows, end - i), keys = keys_of(s, i + count);
      multiply(PanelProduct<T>{count, head.q.at(i), head.q.row, 1, k_turned, s.width, s.width, whole_panels<T>(keys),
                               strip, columns, nullptr, false});
      T total[most_rows];
      for (std::int64_t r = 0; r < count; ++r) {
        T* x = strip + r * columns;
        std::int64_t n = finish_scores(s, head.mask, i + r, x);
        total[r] = exponentials(x, n, keys, head.normalisers[i + r]);
      }
      multiply(PanelProduct<T>{count, strip, columns, 1, v, s.keys, keys, s.values, head.out.at(i), head.out.row,
                               nullptr, false});
      for (std::int64_t r = 0; r < count; ++r) {
        T* out = head.out.at(i + r);
        T share_of_one = total[r] == 0 ? T(0) : T(1) / total[r];
        for (std::int64_t j = 0; j < s.values; ++j) out[j] *= share_of_one;
      }
    }
  }
}

/// Of one row: x from scores to weights, g from the gradients of the weights to those of the raw scores.
template <class T>
void scores_vjp(T* __restrict x, T* __restrict g, std::int64_t n, std::int64_t all, T normaliser, T weighted, T scale) {
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) {
    T weight = exponential(x[j] - normaliser);
    x[j] = weight;
    g[j] = weight * (g[j] - weighted) * scale;
  }
  for (std::int64_t j = n; j < all; ++j) x[j] = g[j] = 0;
}

// With weights P, their gradient dP = dO V^T and D = the row sums of dO O: dS = P (dP - D), and then dQ = scale dS K,
// dK = scale dS^T Q, dV = P^T dO.
template <class T>
void backward(const AttentionShape& s, const AttentionHead<T>* heads, const AttentionHeadVjp<T>* vjps,
              std::int64_t share, T* memory) {
  Scratch<T> scratch{memory};
  std::int64_t columns = whole_panels<T>(s.keys), rows = strip_rows<T>(s);
  T *k_turned = scratch.take(packed_size<T>(s.width, s.keys)),
    *v_turned = scratch.take(packed_size<T>(s.values, s.keys)), *k = scratch.take(packed_size<T>(s.keys, s.width)),
    *own_d = scratch.take(packed_size<T>(most_rows, s.values)),
    *own_q = scratch.take(packed_size<T>(most_rows, s.width));
  T *x = scratch.take(std::min(rows, whole_panels<T>(s.length)) * columns), *g = scratch.next;
  pack_turned(heads->k, s.keys, s.width, k_turned);
  pack_turned(heads->v, s.keys, s.values, v_turned);
  pack(heads->k, s.keys, s.width, k);
  for (std::int64_t h = 0; h < share; ++h) {
    const AttentionHead<T>& head = heads[h];
    const AttentionHeadVjp<T>& vjp = vjps[h];
    for (std::int64_t i = 0; i < s.length; i += rows) {
      std::int64_t count = std::min(rows, s.length - i), keys = keys_of(s, i + count), seen = whole_panels<T>(keys);
      multiply(PanelProduct<T>{count, head.q.at(i), head.q.row, 1, k_turned, s.width, s.width, seen, x, columns,
                               nullptr, false});
      multiply(PanelProduct<T>{count, vjp.d_out.at(i), vjp.d_out.row, 1, v_turned, s.values, s.values, seen, g, columns,
                               nullptr, false});
      for (std::int64_t r = 0; r < count; ++r) {
        std::int64_t n = finish_scores(s, head.mask, i + r, x + r * columns);
        const T *d = vjp.d_out.at(i + r), *out = head.out.at(i + r);
        T weighted = in_lanes<T, lanes>(
            s.values, T(0), [=](std::int64_t j) { return d[j] * out[j]; }, [](T a, T b) { return a + b; });
        scores_vjp(x + r * columns, g + r * columns, n, keys, head.normalisers[i + r], weighted, T(s.scale));
      }
      multiply(
          PanelProduct<T>{count, g, columns, 1, k, s.keys, keys, s.width, vjp.dq.at(i), vjp.dq.row, nullptr, false});
      pack(HeadRows<const T>{vjp.d_out.at(i), vjp.d_out.row}, count, s.values, own_d);
      multiply(
          PanelProduct<T>{keys, x, 1, columns, own_d, count, count, s.values, vjp.dv.first, vjp.dv.row, nullptr, true});
      pack(HeadRows<const T>{head.q.at(i), head.q.row}, count, s.width, own_q);
      multiply(
          PanelProduct<T>{keys, g, 1, columns, own_q, count, count, s.width, vjp.dk.first, vjp.dk.row, nullptr, true});
    }
  }
}

template <class T>
AttentionBuild<T> build_of() {
  return {&scratch_size<T>, &forward<T>, &backward<T>};
}

}  // namespace

AttentionBuild<float> attention_build(float) { return build_of<float>(); }
AttentionBuild<double> attention_build(double) { return build_of<double>(); }

}  // namespace rushlight::RUSHLIGHT_ISA
