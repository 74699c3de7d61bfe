#include "kernels/recurrent.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "kernels/cpu.h"
#include "kernels/parallel.h"

namespace rushlight {

#define RUSHLIGHT_DECLARE(isa)                    \
  namespace isa {                                 \
  RecurrentBuild<float> recurrent_build(float);   \
  RecurrentBuild<double> recurrent_build(double); \
  }
RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE)

namespace {

/// Multiplications that are worth another thread within a step.
constexpr std::int64_t thread_work = 1 << 18;
/// Samples below which a thread of its own is not worth reading the weights again.
constexpr std::int64_t least_samples = 4;

template <class T>
const RecurrentBuild<T>& build() {
  static const RecurrentBuild<T> chosen = RUSHLIGHT_BEST(recurrent_build(T()));
  return chosen;
}

/// A matrix (depth, cols) packed for products with states, or its transpose.
template <class T>
struct Packed {
  std::unique_ptr<T[]> data;
  std::int64_t depth, cols;

  Packed(const T* from, std::int64_t rows, std::int64_t columns, bool transpose)
      : depth(transpose ? columns : rows), cols(transpose ? rows : columns) {
    if (!from) return;
    data = std::make_unique_for_overwrite<T[]>(std::size_t(build<T>().packed_size(depth, cols)));
    std::int64_t row_step = transpose ? 1 : columns, col_step = transpose ? columns : 1;
    parallel_for(build<T>().panels(cols), std::max<std::int64_t>(1, (1 << 14) / std::max<std::int64_t>(depth * 32, 1)),
                 [&](std::int64_t begin, std::int64_t end) {
                   build<T>().pack(from, depth, cols, row_step, col_step, data.get(), begin, end);
                 });
  }

  /// c (rows, cols) = a m, or += with `add`; threads share the columns where samples are too few to be shared.
  void multiply(std::int64_t rows, const T* a, std::int64_t lda, T* c, std::int64_t ldc, bool add) const {
    if (rows <= 0) return;
    std::int64_t panels = build<T>().panels(cols);
    std::int64_t grain =
        std::max<std::int64_t>(1, thread_work * panels / std::max<std::int64_t>(rows * depth * cols, 1));
    parallel_for(panels, grain, [&](std::int64_t begin, std::int64_t end) {
      build<T>().product(rows, a, lda, data.get(), depth, cols, begin, end, c, ldc, add);
    });
  }
};

/// Calls f(begin, end) over the samples.
template <class F>
void over_samples(const Steps& steps, std::int64_t work, F&& f) {
  bool shared = work * steps.total() > 2 * thread_work && steps.batch() >= 2 * least_samples;
  parallel_for(steps.batch(), shared ? least_samples : steps.batch(), f);
}

/// The state before step t of sample n: a row of `sequence`, or of the initial states.
template <class T>
const T* row_before(const Steps& s, const T* sequence, const T* initial, std::int64_t width, std::int64_t t,
                    std::int64_t n) {
  return n < s.rows_before(t) ? sequence + (s.first[std::size_t(s.before(t))] + n) * width : initial + n * width;
}

template <class T>
void forward_step(const RecurrentLayer<T>& l, const RecurrentForward<T>& f, const Packed<T>& w_hh,
                  const Packed<T>& w_hr, T* scratch, std::int64_t t, std::int64_t begin, std::int64_t end) {
  auto& k = build<T>();
  std::int64_t gates = gates_of(l.cell) * l.hidden, rows = end - begin;
  std::int64_t at = l.steps.first[std::size_t(t)];
  T *g = f.gates + (at + begin) * gates, *h = f.h + begin * l.width;
  if (l.cell == Cell::Gru) {
    T* recurrent = scratch + begin * gates;
    if (f.b_hh)
      for (std::int64_t n = 0; n < rows; ++n) std::copy_n(f.b_hh, gates, recurrent + n * gates);
    w_hh.multiply(rows, h, l.width, recurrent, gates, f.b_hh != nullptr);
    for (std::int64_t n = 0; n < rows; ++n) {
      k.gru(l.hidden, g + n * gates, recurrent + n * gates, h + n * l.width);
      if (f.kept) std::copy_n(recurrent + n * gates + 2 * l.hidden, l.hidden, f.kept + (at + begin + n) * l.hidden);
    }
  } else {
    w_hh.multiply(rows, h, l.width, g, gates, true);
    T* state = l.projects() ? scratch + begin * l.hidden : h;
    for (std::int64_t n = 0; n < rows; ++n) {
      T* own = state + n * l.hidden;
      if (l.cell != Cell::Lstm) {
        k.elman(l.cell, l.hidden, g + n * gates, own);
        continue;
      }
      T* c = f.c + (begin + n) * l.hidden;
      k.lstm(l.hidden, g + n * gates, c, own);
      if (f.cells) std::copy_n(c, l.hidden, f.cells + (at + begin + n) * l.hidden);
    }
    if (l.projects()) w_hr.multiply(rows, state, l.hidden, h, l.width, false);
  }
  std::copy_n(h, rows * l.width, f.y + (at + begin) * l.width);
}

template <class T>
void backward_step(const RecurrentLayer<T>& l, const RecurrentBackward<T>& b, const Packed<T>& w_hh,
                   const Packed<T>& w_hr, T* scratch, std::int64_t t, std::int64_t begin, std::int64_t end) {
  auto& k = build<T>();
  const Steps& s = l.steps;
  std::int64_t hidden = l.hidden, width = l.width, gates = gates_of(l.cell) * hidden, rows = end - begin;
  std::int64_t at = s.first[std::size_t(t)] + begin;
  T *dh = b.dh + begin * width, *d_gates = b.d_gates + at * gates;
  const T* dy = b.dy ? b.dy + at * width : nullptr;
  const T* top = dh;
  if (l.projects()) {
    T* projected = b.d_state + at * width;
    for (std::int64_t i = 0; i < rows * width; ++i) projected[i] = dy ? dh[i] + dy[i] : dh[i];
    w_hr.multiply(rows, projected, width, scratch + begin * hidden, hidden, false);
    top = scratch + begin * hidden, dy = nullptr;
  }
  for (std::int64_t n = 0; n < rows; ++n) {
    const T *g = b.gates + (at + n) * gates, *from = dy ? dy + n * width : nullptr;
    T* d = d_gates + n * gates;
    if (l.cell == Cell::Lstm)
      k.lstm_vjp(hidden, g, row_before(s, b.cells, b.c0, hidden, t, begin + n), b.cells + (at + n) * hidden, from,
                 top + n * hidden, b.dc + (begin + n) * hidden, d,
                 l.projects() ? b.unprojected + (at + n) * hidden : nullptr);
    else if (l.cell == Cell::Gru)
      k.gru_vjp(hidden, g, b.kept + (at + n) * hidden, row_before(s, b.y, b.h0, hidden, t, begin + n), from,
                dh + n * hidden, d, b.d_kept + (at + n) * gates);
    else
      k.elman_vjp(l.cell, hidden, b.y + (at + n) * hidden, from, dh + n * hidden, d);
  }
  if (l.cell == Cell::Gru)
    w_hh.multiply(rows, b.d_kept + at * gates, gates, dh, width, true);
  else
    w_hh.multiply(rows, d_gates, gates, dh, width, false);
}

}  // namespace

template <class T>
void recurrent_forward(const RecurrentLayer<T>& l, const RecurrentForward<T>& f) {
  std::int64_t gates = gates_of(l.cell) * l.hidden, wide = l.cell == Cell::Gru ? gates : l.projects() ? l.hidden : 0;
  Packed<T> w_hh(l.w_hh, gates, l.width, true), w_hr(l.w_hr, l.width, l.hidden, true);
  auto scratch = std::make_unique_for_overwrite<T[]>(std::size_t(l.steps.batch() * wide));
  over_samples(l.steps, gates * l.width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < l.steps.count(); ++i) {
      std::int64_t t = l.steps.in_order(i), last = std::min(end, l.steps.rows(t));
      if (begin < last) forward_step(l, f, w_hh, w_hr, scratch.get(), t, begin, last);
    }
  });
}

template <class T>
void recurrent_backward(const RecurrentLayer<T>& l, const RecurrentBackward<T>& b) {
  std::int64_t gates = gates_of(l.cell) * l.hidden;
  Packed<T> w_hh(l.w_hh, gates, l.width, false), w_hr(l.w_hr, l.width, l.hidden, false);
  auto scratch = std::make_unique_for_overwrite<T[]>(std::size_t(l.projects() ? l.steps.batch() * l.hidden : 0));
  over_samples(l.steps, gates * l.width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = l.steps.count() - 1; i >= 0; --i) {
      std::int64_t t = l.steps.in_order(i), last = std::min(end, l.steps.rows(t));
      if (begin < last) backward_step(l, b, w_hh, w_hr, scratch.get(), t, begin, last);
    }
  });
}

void states_before(const Steps& s, const std::byte* y, const std::byte* h0, std::int64_t bytes, std::byte* out) {
  for (std::int64_t t = 0; t < s.count(); ++t) {
    std::int64_t known = s.rows_before(t) * bytes, all = s.rows(t) * bytes;
    std::byte* to = out + s.first[std::size_t(t)] * bytes;
    if (known) std::memcpy(to, y + s.first[std::size_t(s.before(t))] * bytes, std::size_t(known));
    if (all > known) std::memcpy(to + known, h0 + known, std::size_t(all - known));
  }
}

template void recurrent_forward<float>(const RecurrentLayer<float>&, const RecurrentForward<float>&);
template void recurrent_forward<double>(const RecurrentLayer<double>&, const RecurrentForward<double>&);
template void recurrent_backward<float>(const RecurrentLayer<float>&, const RecurrentBackward<float>&);
template void recurrent_backward<double>(const RecurrentLayer<double>&, const RecurrentBackward<double>&);

}  // namespace rushlight
