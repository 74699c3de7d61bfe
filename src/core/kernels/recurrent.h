// Recurrent layers in one direction over a sequence: the steps' hidden products and gates, forward and backward.
//
// A sequence is `steps` blocks of rows, one row per sample, in the order of time; samples are ordered by length, so
// that the first rows of each block are those of the step before (packed sequences). Samples do not meet within a
// layer: threads share them, and run through all steps without waiting. What the inputs add to the gates, and the
// gradients of the weights, are products over all steps at once, and stand outside (operators/recurrent.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/panel.h"
#include "tensor/dtype.h"

namespace rushlight {

enum class Cell : std::uint8_t { Lstm, Gru, Tanh, Relu };

constexpr std::int64_t gates_of(Cell cell) { return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1; }

struct Steps {
  std::vector<std::int64_t> first;  ///< the first row of each step, and the number of all rows
  bool reverse = false;             ///< the last step comes first

  std::int64_t count() const { return std::int64_t(first.size()) - 1; }
  std::int64_t total() const { return first.back(); }
  std::int64_t rows(std::int64_t t) const { return first[std::size_t(t + 1)] - first[std::size_t(t)]; }
  std::int64_t batch() const { return count() ? rows(0) : 0; }
  /// The step that is computed as number i.
  std::int64_t in_order(std::int64_t i) const { return reverse ? count() - 1 - i : i; }
  /// The step whose state `t` starts from, or -1; rows beyond `rows_before` start from the initial state.
  std::int64_t before(std::int64_t t) const { return reverse ? (t + 1 < count() ? t + 1 : -1) : t - 1; }
  std::int64_t rows_before(std::int64_t t) const {
    std::int64_t b = before(t);
    return b < 0 ? 0 : rows(b) < rows(t) ? rows(b) : rows(t);
  }
};

/// What forward and backward share. Arrays are row-major unless strides are given; T is float or double. `width` is
/// that of the state h: `hidden`, or less where an LSTM projects it.
template <class T>
struct RecurrentLayer {
  Cell cell;
  const Steps& steps;
  std::int64_t inputs, hidden, width;
  const T* w_ih;  ///< (gates hidden, inputs)
  const T* w_hh;  ///< (gates hidden, width)
  const T* w_hr;  ///< (width, hidden), or null
  std::int64_t gates() const { return gates_of(cell) * hidden; }
  bool projects() const { return w_hr != nullptr; }
};

/// Rows of a sequence, one after the other, or where `strided` row n of step t at first + t step + n row. `column` 0: a
/// row is one number again and again.
template <class T>
struct Rows {
  const T* first = nullptr;
  bool strided = false;
  std::int64_t step = 0, row = 0, column = 1;
  const T* at(const Steps& s, std::int64_t t, std::int64_t n) const {
    return first + (strided ? t * step + n * row : (s.first[std::size_t(t)] + n) * row);
  }
};

template <class T>
struct RecurrentForward {
  Rows<T> x;
  const T* b_ih;  ///< (gates hidden), with b_hh added but for a GRU; or null
  const T* b_hh;  ///< GRU: (3 hidden) or null
  T* gates;       ///< (total, gates hidden): their values
  T* h;           ///< (batch, width): the initial state, then the last
  T* c;           ///< LSTM: (batch, hidden), the same
  T* y;           ///< (total, width): h after each step
  T* cells;       ///< LSTM: (total, hidden), c after each step; or null
  T* kept;        ///< GRU: (total, hidden), what the state adds to the gate n; or null
};

template <class T>
struct RecurrentBackward {
  const T* gates;    ///< as forward left them
  const T *h0, *c0;  ///< initial states
  const T *y, *cells, *kept;
  Rows<T> dy;      ///< gradients of the outputs; first is null where there are none
  T* dh;           ///< (batch, width): the gradient of the last state, then of the initial one
  T* dc;           ///< LSTM: (batch, hidden)
  T* d_gates;      ///< (total, gates hidden): of what the inputs add
  T* d_kept;       ///< of what the state adds: the same, but for a GRU (total, 3 hidden)
  T* d_state;      ///< projection: (total, width), of the projected state
  T* unprojected;  ///< projection: (total, hidden), the state before it
};

/// Gradients of weights, where not null. Those of w_hr are a plain product: d_state^T unprojected.
template <class T>
struct RecurrentWeightGradients {
  const T *d_gates, *d_kept;
  const T* x;       ///< (total, inputs)
  const T* before;  ///< (total, width): the state before each step
  T *w_ih, *w_hh, *b_ih, *b_hh;
};

template <class T>
void recurrent_forward(const RecurrentLayer<T>& layer, const RecurrentForward<T>& f);
template <class T>
void recurrent_backward(const RecurrentLayer<T>& layer, const RecurrentBackward<T>& b);
template <class T>
void recurrent_weight_gradients(const RecurrentLayer<T>& layer, const RecurrentWeightGradients<T>& g);

/// The state before each row: a row of `y` or of `h0`, `bytes` long.
void states_before(const Steps& steps, const std::byte* y, const std::byte* h0, std::int64_t bytes, std::byte* out);

/// What each instruction set's build offers; see recurrent_isa.cpp.
template <class T>
struct RecurrentBuild {
  std::int64_t (*packed_size)(std::int64_t depth, std::int64_t cols);
  std::int64_t (*panels)(std::int64_t cols);
  void (*pack)(const T* from, std::int64_t depth, std::int64_t cols, std::int64_t row_stride, std::int64_t col_stride,
               T* to, std::int64_t first, std::int64_t last);
  void (*product)(const PanelProduct<T>& m, std::int64_t first, std::int64_t last);
  /// sums (cols) = the sum of the rows.
  void (*column_sums)(const T* a, std::int64_t rows, std::int64_t lda, std::int64_t cols, T* sums);
  /// One sample: gates (4n) to their values, c to the next, h = o tanh(c).
  void (*lstm)(std::int64_t n, T* gates, T* c, T* h);
  void (*lstm_vjp)(std::int64_t n, const T* gates, const T* c_before, const T* c, const T* dy, const T* dh, T* dc,
                   T* d_gates, T* state);
  /// `recurrent` (3n): what the state adds.
  void (*gru)(std::int64_t n, T* gates, const T* recurrent, T* h);
  void (*gru_vjp)(std::int64_t n, const T* gates, const T* kept, const T* h_before, const T* dy, T* dh, T* d_gates,
                  T* d_kept);
  void (*elman)(Cell cell, std::int64_t n, const T* gates, T* h);
  void (*elman_vjp)(Cell cell, std::int64_t n, const T* y, const T* dy, const T* dh, T* d_gates);
};

}  // namespace rushlight
