// The hidden products and gates of recurrent layers, compiled once per instruction set. A gate kernel works on one
// sample, whose gates lie one after the other, n numbers each.
#include "kernels/exponential.h"
#include "kernels/panel_product.h"
#include "kernels/recurrent.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

template <class T>
void lstm(std::int64_t n, T* __restrict gates, T* __restrict c, T* __restrict h) {
  T *i = gates, *f = gates + n, *g = gates + 2 * n, *o = gates + 3 * n;
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) {
    T in = logistic(i[j]), forget = logistic(f[j]), fresh = hyperbolic_tangent(g[j]), out = logistic(o[j]);
    T cell = forget * c[j] + in * fresh;
    i[j] = in, f[j] = forget, g[j] = fresh, o[j] = out;
    c[j] = cell;
    h[j] = out * hyperbolic_tangent(cell);
  }
}

template <class T, bool from_output, bool keeps_state>
void lstm_vjp_loop(std::int64_t n, const T* gates, const T* c_before, const T* c, const T* dy, const T* dh,
                   T* __restrict dc, T* __restrict d_gates, T* __restrict state) {
  const T *i = gates, *f = gates + n, *g = gates + 2 * n, *o = gates + 3 * n;
  T *di = d_gates, *df = d_gates + n, *dg = d_gates + 2 * n, *d_o = d_gates + 3 * n;
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) {
    T top = from_output ? dh[j] + dy[j] : dh[j];
    T shown = hyperbolic_tangent(c[j]);
    T cell = dc[j] + top * o[j] * (T(1) - shown * shown);
    d_o[j] = top * shown * o[j] * (T(1) - o[j]);
    di[j] = cell * g[j] * i[j] * (T(1) - i[j]);
    df[j] = cell * c_before[j] * f[j] * (T(1) - f[j]);
    dg[j] = cell * i[j] * (T(1) - g[j] * g[j]);
    dc[j] = cell * f[j];
    if (keeps_state) state[j] = o[j] * shown;
  }
}

template <class T>
void lstm_vjp(std::int64_t n, const T* gates, const T* c_before, const T* c, const T* dy, const T* dh, T* dc,
              T* d_gates, T* state) {
  if (state)
    lstm_vjp_loop<T, false, true>(n, gates, c_before, c, dy, dh, dc, d_gates, state);
  else if (dy)
    lstm_vjp_loop<T, true, false>(n, gates, c_before, c, dy, dh, dc, d_gates, state);
  else
    lstm_vjp_loop<T, false, false>(n, gates, c_before, c, dy, dh, dc, d_gates, state);
}

template <class T>
void gru(std::int64_t n, T* __restrict gates, const T* __restrict recurrent, T* __restrict h) {
  T *r = gates, *z = gates + n, *fresh = gates + 2 * n;
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) {
    T reset = logistic(r[j] + recurrent[j]), keep = logistic(z[j] + recurrent[n + j]);
    T next = hyperbolic_tangent(fresh[j] + reset * recurrent[2 * n + j]);
    r[j] = reset, z[j] = keep, fresh[j] = next;
    h[j] = next + keep * (h[j] - next);
  }
}

template <class T, bool from_output>
void gru_vjp_loop(std::int64_t n, const T* gates, const T* kept, const T* h_before, const T* dy, T* __restrict dh,
                  T* __restrict d_gates, T* __restrict d_kept) {
  const T *r = gates, *z = gates + n, *fresh = gates + 2 * n;
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) {
    T top = from_output ? dh[j] + dy[j] : dh[j];
    T dn = top * (T(1) - z[j]) * (T(1) - fresh[j] * fresh[j]);
    T dz = top * (h_before[j] - fresh[j]) * z[j] * (T(1) - z[j]);
    T dr = dn * kept[j] * r[j] * (T(1) - r[j]);
    d_gates[j] = d_kept[j] = dr;
    d_gates[n + j] = d_kept[n + j] = dz;
    d_gates[2 * n + j] = dn;
    d_kept[2 * n + j] = dn * r[j];
    dh[j] = top * z[j];
  }
}

template <class T>
void gru_vjp(std::int64_t n, const T* gates, const T* kept, const T* h_before, const T* dy, T* dh, T* d_gates,
             T* d_kept) {
  if (dy)
    gru_vjp_loop<T, true>(n, gates, kept, h_before, dy, dh, d_gates, d_kept);
  else
    gru_vjp_loop<T, false>(n, gates, kept, h_before, dy, dh, d_gates, d_kept);
}

template <class T>
void elman(Cell cell, std::int64_t n, const T* __restrict gates, T* __restrict h) {
  if (cell == Cell::Relu)
    for (std::int64_t j = 0; j < n; ++j) h[j] = gates[j] < T(0) ? T(0) : gates[j];
  else
    for (std::int64_t j = 0; j < n; ++j) h[j] = hyperbolic_tangent(gates[j]);
}

template <class T>
void elman_vjp(Cell cell, std::int64_t n, const T* y, const T* dy, const T* dh, T* __restrict d_gates) {
#pragma GCC ivdep
  for (std::int64_t j = 0; j < n; ++j) d_gates[j] = dy ? dh[j] + dy[j] : dh[j];
  if (cell == Cell::Relu)
    for (std::int64_t j = 0; j < n; ++j) d_gates[j] = y[j] > T(0) ? d_gates[j] : T(0);
  else
    for (std::int64_t j = 0; j < n; ++j) d_gates[j] *= T(1) - y[j] * y[j];
}

/// Of blocks of rows first, so that rounding grows with their number only.
template <class T>
void column_sums(const T* a, std::int64_t rows, std::int64_t lda, std::int64_t cols, T* sums) {
  constexpr std::int64_t strip = 4 * Vectors<T>::lanes, block = 64;
  for (std::int64_t from = 0; from < cols; from += strip) {
    std::int64_t n = cols - from < strip ? cols - from : strip;
    T total[strip] = {};
    for (std::int64_t first = 0; first < rows; first += block) {
      T part[strip] = {};
      for (std::int64_t r = first; r < rows && r < first + block; ++r)
        for (std::int64_t j = 0; j < n; ++j) part[j] += a[r * lda + from + j];
      for (std::int64_t j = 0; j < n; ++j) total[j] += part[j];
    }
    for (std::int64_t j = 0; j < n; ++j) sums[from + j] = total[j];
  }
}

template <class T>
RecurrentBuild<T> build_of() {
  return {&packed_size<T>, &panels_of<T>, &pack_panels<T>, &panel_product<T>, &column_sums<T>, &lstm<T>,
          &lstm_vjp<T>,    &gru<T>,       &gru_vjp<T>,     &elman<T>,         &elman_vjp<T>};
}

}  // namespace

RecurrentBuild<float> recurrent_build(float) { return build_of<float>(); }
RecurrentBuild<double> recurrent_build(double) { return build_of<double>(); }

}  // namespace rushlight::RUSHLIGHT_ISA
