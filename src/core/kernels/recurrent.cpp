#include "kernels/recurrent.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "kernels/cpu.h"
#include "kernels/gemm.h"
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
/// Rows of inputs that meet their weights together: enough that the weights' way through the caches is worth it, few
/// enough that the gates are still there when their step comes.
constexpr std::int64_t rows_at_once = 64;

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

  /// c (rows, cols) = start + a m, or += with `add`.
  PanelProduct<T> product(std::int64_t rows, const T* a, std::int64_t lda, T* c, std::int64_t ldc, const T* start,
                          bool add) const {
    return {rows, a, lda, 1, data.get(), depth, depth, cols, c, ldc, start, add};
  }
};

/// Calls f(first, last) over panels: threads share them where samples are too few to be shared.
template <class T, class F>
void over_panels(const Packed<T>& m, std::int64_t rows, F&& f) {
  std::int64_t panels = build<T>().panels(m.cols), work = rows * m.depth * m.cols;
  parallel_for(panels, std::max<std::int64_t>(1, thread_work * panels / std::max<std::int64_t>(work, 1)), f);
}

template <class T>
void multiply(const Packed<T>& m, const PanelProduct<T>& p) {
  over_panels(m, p.rows, [&](std::int64_t first, std::int64_t last) { build<T>().product(p, first, last); });
}

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
struct ForwardRun {
  const RecurrentLayer<T>& l;
  const RecurrentForward<T>& f;
  Packed<T> w_ih{l.w_ih, l.gates(), l.inputs, true}, w_hh{l.w_hh, l.gates(), l.width, true},
      w_hr{l.w_hr, l.width, l.hidden, true};
  std::unique_ptr<T[]> scratch;

  ForwardRun(const RecurrentLayer<T>& layer, const RecurrentForward<T>& forward) : l(layer), f(forward) {
    std::int64_t wide = l.cell == Cell::Gru ? l.gates() : l.projects() ? l.hidden : 0;
    scratch = std::make_unique_for_overwrite<T[]>(std::size_t(l.steps.batch() * wide));
  }

  T* gates_at(std::int64_t t, std::int64_t n) const {
    return f.gates + (l.steps.first[std::size_t(t)] + n) * l.gates();
  }

  /// What the inputs add to the gates of the samples [begin, end) at the steps [from, to).
  void meet_inputs(std::int64_t from, std::int64_t to, std::int64_t begin, std::int64_t end) const {
    const Steps& s = l.steps;
    std::int64_t whole = s.first[std::size_t(to)] - s.first[std::size_t(from)];
    if (!f.x.strided && begin == 0 && end == s.batch())
      return multiply(w_ih,
                      w_ih.product(whole, f.x.at(s, from, 0), f.x.row, gates_at(from, 0), l.gates(), f.b_ih, false));
    over_panels(w_ih, whole, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t p = first; p < last; ++p)
        for (std::int64_t t = from; t < to; ++t) {
          std::int64_t rows = std::min(end, s.rows(t)) - begin;
          if (rows > 0)
            build<T>().product(
                w_ih.product(rows, f.x.at(s, t, begin), f.x.row, gates_at(t, begin), l.gates(), f.b_ih, false), p,
                p + 1);
        }
    });
  }

  void step(std::int64_t t, std::int64_t begin, std::int64_t end) const {
    auto& k = build<T>();
    std::int64_t gates = l.gates(), rows = end - begin, at = l.steps.first[std::size_t(t)] + begin;
    T *g = gates_at(t, begin), *h = f.h + begin * l.width;
    if (l.cell == Cell::Gru) {
      T* recurrent = scratch.get() + begin * gates;
      multiply(w_hh, w_hh.product(rows, h, l.width, recurrent, gates, f.b_hh, false));
      for (std::int64_t n = 0; n < rows; ++n) {
        k.gru(l.hidden, g + n * gates, recurrent + n * gates, h + n * l.width);
        if (f.kept) std::copy_n(recurrent + n * gates + 2 * l.hidden, l.hidden, f.kept + (at + n) * l.hidden);
      }
    } else {
      multiply(w_hh, w_hh.product(rows, h, l.width, g, gates, nullptr, true));
      T* state = l.projects() ? scratch.get() + begin * l.hidden : h;
      for (std::int64_t n = 0; n < rows; ++n) {
        T* own = state + n * l.hidden;
        if (l.cell != Cell::Lstm) {
          k.elman(l.cell, l.hidden, g + n * gates, own);
          continue;
        }
        T* c = f.c + (begin + n) * l.hidden;
        k.lstm(l.hidden, g + n * gates, c, own);
        if (f.cells) std::copy_n(c, l.hidden, f.cells + (at + n) * l.hidden);
      }
      if (l.projects()) multiply(w_hr, w_hr.product(rows, state, l.hidden, h, l.width, nullptr, false));
    }
    std::copy_n(h, rows * l.width, f.y + at * l.width);
  }

  void run(std::int64_t begin, std::int64_t end) const {
    std::int64_t count = l.steps.count(), ahead = std::max<std::int64_t>(1, rows_at_once / (end - begin));
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t t = l.steps.in_order(i);
      if (i % ahead == 0) {
        std::int64_t other = l.steps.in_order(std::min(count, i + ahead) - 1);
        meet_inputs(std::min(t, other), std::max(t, other) + 1, begin, end);
      }
      if (std::int64_t last = std::min(end, l.steps.rows(t)); begin < last) step(t, begin, last);
    }
  }
};

template <class T>
struct BackwardRun {
  const RecurrentLayer<T>& l;
  const RecurrentBackward<T>& b;
  Packed<T> w_hh{l.w_hh, l.gates(), l.width, false}, w_hr{l.w_hr, l.width, l.hidden, false};
  std::unique_ptr<T[]> spread, unprojected;

  BackwardRun(const RecurrentLayer<T>& layer, const RecurrentBackward<T>& backward) : l(layer), b(backward) {
    if (b.dy.first && !b.dy.column)
      spread = std::make_unique_for_overwrite<T[]>(std::size_t(l.steps.batch() * l.width));
    if (l.projects()) unprojected = std::make_unique_for_overwrite<T[]>(std::size_t(l.steps.batch() * l.hidden));
  }

  /// The gradient of the output of sample n at step t, or null.
  const T* output_gradient(std::int64_t t, std::int64_t n) const {
    if (!b.dy.first) return nullptr;
    const T* row = b.dy.at(l.steps, t, n);
    if (b.dy.column) return row;
    std::fill_n(spread.get() + n * l.width, l.width, *row);
    return spread.get() + n * l.width;
  }

  /// The gradient of the state before its projection.
  const T* through_projection(std::int64_t t, std::int64_t begin, std::int64_t end) const {
    T* projected = b.d_state + (l.steps.first[std::size_t(t)] + begin) * l.width;
    for (std::int64_t n = begin; n < end; ++n) {
      const T* dy = output_gradient(t, n);
      for (std::int64_t j = 0; j < l.width; ++j)
        projected[(n - begin) * l.width + j] = dy ? b.dh[n * l.width + j] + dy[j] : b.dh[n * l.width + j];
    }
    T* top = unprojected.get() + begin * l.hidden;
    multiply(w_hr, w_hr.product(end - begin, projected, l.width, top, l.hidden, nullptr, false));
    return top;
  }

  void step(std::int64_t t, std::int64_t begin, std::int64_t end) const {
    auto& k = build<T>();
    std::int64_t hidden = l.hidden, gates = l.gates(), at = l.steps.first[std::size_t(t)];
    T* dh = b.dh + begin * l.width;
    const T* top = l.projects() ? through_projection(t, begin, end) : dh;
    for (std::int64_t n = begin; n < end; ++n) {
      const T *g = b.gates + (at + n) * gates, *dy = l.projects() ? nullptr : output_gradient(t, n);
      T *own = b.dh + n * l.width, *d = b.d_gates + (at + n) * gates;
      if (l.cell == Cell::Lstm)
        k.lstm_vjp(hidden, g, row_before(l.steps, b.cells, b.c0, hidden, t, n), b.cells + (at + n) * hidden, dy,
                   top + (n - begin) * hidden, b.dc + n * hidden, d,
                   l.projects() ? b.unprojected + (at + n) * hidden : nullptr);
      else if (l.cell == Cell::Gru)
        k.gru_vjp(hidden, g, b.kept + (at + n) * hidden, row_before(l.steps, b.y, b.h0, hidden, t, n), dy, own, d,
                  b.d_kept + (at + n) * gates);
      else
        k.elman_vjp(l.cell, hidden, b.y + (at + n) * hidden, dy, own, d);
    }
    multiply(w_hh, w_hh.product(end - begin, b.d_kept + (at + begin) * gates, gates, dh, l.width, nullptr,
                                l.cell == Cell::Gru));
  }

  void run(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t i = l.steps.count() - 1; i >= 0; --i) {
      std::int64_t t = l.steps.in_order(i), last = std::min(end, l.steps.rows(t));
      if (begin < last) step(t, begin, last);
    }
  }
};

}  // namespace

template <class T>
void recurrent_forward(const RecurrentLayer<T>& l, const RecurrentForward<T>& f) {
  ForwardRun<T> run(l, f);
  over_samples(l.steps, l.gates() * (l.inputs + l.width),
               [&](std::int64_t begin, std::int64_t end) { run.run(begin, end); });
}

template <class T>
void recurrent_backward(const RecurrentLayer<T>& l, const RecurrentBackward<T>& b) {
  BackwardRun<T> run(l, b);
  over_samples(l.steps, l.gates() * l.width, [&](std::int64_t begin, std::int64_t end) { run.run(begin, end); });
}

template <class T>
void recurrent_weight_gradients(const RecurrentLayer<T>& l, const RecurrentWeightGradients<T>& w) {
  constexpr std::int64_t tile = 32;  // gates that stay together, so that sums do not depend on the threads
  std::int64_t gates = l.gates(), total = l.steps.total(), tiles = (gates + tile - 1) / tile;
  std::int64_t work = total * tile * (l.inputs + l.width);
  auto product = [&](const T* d, const T* other, std::int64_t cols, T* to, std::int64_t from, std::int64_t n) {
    if (!to) return;
    gemm(dtype_of<T>, {const_cast<T*>(d + from), n, total, 1, gates}, {const_cast<T*>(other), total, cols, cols, 1},
         {to + from * cols, n, cols, cols, 1});
  };
  parallel_for(tiles, std::max<std::int64_t>(1, thread_work / std::max<std::int64_t>(work, 1)),
               [&](std::int64_t first, std::int64_t last) {
                 std::int64_t from = first * tile, n = std::min(last * tile, gates) - from;
                 product(w.d_gates, w.x, l.inputs, w.w_ih, from, n);
                 product(w.d_kept, w.before, l.width, w.w_hh, from, n);
                 if (w.b_ih) build<T>().column_sums(w.d_gates + from, total, gates, n, w.b_ih + from);
                 if (w.b_hh) build<T>().column_sums(w.d_kept + from, total, gates, n, w.b_hh + from);
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
template void recurrent_weight_gradients<float>(const RecurrentLayer<float>&, const RecurrentWeightGradients<float>&);
template void recurrent_weight_gradients<double>(const RecurrentLayer<double>&,
                                                 const RecurrentWeightGradients<double>&);
template void recurrent_backward<double>(const RecurrentLayer<double>&, const RecurrentBackward<double>&);

}  // namespace rushlight
