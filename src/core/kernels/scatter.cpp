#include "kernels/scatter.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>

#include "kernels/bounds.h"
#include "kernels/parallel.h"

namespace rushlight {
namespace {

/// The indices of a few places at a time: side by side, in range, from 0 on.
class IndexBlock {
 public:
  static constexpr std::int64_t places = 128;
  explicit IndexBlock(const IndexedLines& w) : size_(w.size), wraps_(w.wraps) {}
  /// The n indices from there on, `step` bytes apart; null where one lies outside of the table.
  const std::int64_t* load(const char* from, std::int64_t step, std::int64_t n) {
    const auto* at = reinterpret_cast<const std::int64_t*>(from);
    if (step != sizeof(std::int64_t)) {
      for (std::int64_t k = 0; k < n; ++k) copy_[k] = *reinterpret_cast<const std::int64_t*>(from + k * step);
      at = copy_;
    }
    if (within(at, n, 0, size_)) [[likely]]
      return at;
    return wrapped(at, n);
  }

 private:
  const std::int64_t* wrapped(const std::int64_t* at, std::int64_t n) {
    for (std::int64_t k = 0; k < n; ++k) {
      if (!wraps_ || at[k] < -size_ || at[k] >= size_) return nullptr;
      copy_[k] = at[k] + (at[k] < 0 ? size_ : 0);
    }
    return copy_;
  }
  std::int64_t size_, copy_[places];
  bool wraps_;
};

/// Calls f(table element, value) for n places in a row: `line` is the distance of their lines in the table.
template <class T, class F>
void meet(char* table, std::int64_t line, std::int64_t place, const std::int64_t* at, char* values, std::int64_t step,
          std::int64_t n, F f) {
  auto run = [=](auto line, auto place, auto step) {
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < n; ++k)
      f(*reinterpret_cast<T*>(table + k * line + at[k] * place), *reinterpret_cast<T*>(values + k * step));
  };
  constexpr std::integral_constant<std::int64_t, sizeof(T)> item;
  if (line == 0 && place == item && step == item)
    run(std::integral_constant<std::int64_t, 0>(), item, item);
  else if (line == item && step == item)
    run(item, place, item);
  else
    run(line, place, step);
}

/// Calls f(table element, value) for the n lines of one place.
template <class T, class F>
void meet_row(char* table, std::int64_t table_step, char* values, std::int64_t step, std::int64_t n, F f) {
  if (table_step == sizeof(T) && step == sizeof(T)) {
    T* __restrict t = reinterpret_cast<T*>(table), * __restrict v = reinterpret_cast<T*>(values);
    for (std::int64_t i = 0; i < n; ++i) f(t[i], v[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i)
      f(*reinterpret_cast<T*>(table + i * table_step), *reinterpret_cast<T*>(values + i * step));
  }
}

/// Do neighbouring lines share their index, and lie closer together than the places of a line?
bool is_shared(const IndexedLines& w, const std::int64_t* steps) {
  return steps[1] == 0 && std::abs(steps[0]) <= std::abs(w.step[0]);
}

/// A part of the work: lines [begin, end), places [first, last) of each.
struct Part {
  std::int64_t begin, end, first, last;
};

template <class T, class F>
class Walk {
 public:
  Walk(const IndexedLines& w, const Part& part, F f) : w_(w), part_(part), block_(w), f_(f) {}
  /// False where an index lies outside of the table.
  bool run() {
    char* base[3] = {w_.base[0], w_.base[1] + part_.first * w_.step[1], w_.base[2] + part_.first * w_.step[2]};
    w_.lines.run(base, part_.begin, part_.end, [&](char** p, std::int64_t n, const std::int64_t* steps) {
      if (n > 1 && is_shared(w_, steps))
        rows(p, n, steps);
      else if (n >= few_lines && steps[1] && std::abs(steps[1]) < std::abs(w_.step[1]))
        columns(p, n, steps);
      else
        for (std::int64_t i = 0; i < n; ++i) line(p[0] + i * steps[0], p[1] + i * steps[1], p[2] + i * steps[2]);
    });
    return in_range_;
  }
  static constexpr std::int64_t few_lines = 16;

 private:
  /// Calls f(indices, their number, first value) for blocks of places of a line.
  template <class G>
  void blocks(const char* index, char* values, G&& g) {
    for (std::int64_t k = part_.first; k < part_.last; k += IndexBlock::places) {
      std::int64_t n = std::min(IndexBlock::places, part_.last - k);
      if (const std::int64_t* at = block_.load(index, w_.step[1], n))
        g(at, n, values);
      else
        in_range_ = false;
      index += n * w_.step[1];
      values += n * w_.step[2];
    }
  }
  void line(char* table, const char* index, char* values) {
    blocks(index, values, [&](const std::int64_t* at, std::int64_t n, char* v) {
      meet<T>(table, 0, w_.step[0], at, v, w_.step[2], n, f_);
    });
  }
  /// The index lies closer together across lines: panels of lines whose part of the table stays in the cache.
  void columns(char** p, std::int64_t lines, const std::int64_t* steps) {
    constexpr std::int64_t cache = 1 << 18;
    std::int64_t fitting = cache / (std::max<std::int64_t>(w_.size, 1) * std::int64_t(sizeof(T)));
    std::int64_t panel = std::clamp<std::int64_t>(fitting, 64, IndexBlock::places);
    for (std::int64_t i = 0; i < lines; i += panel) {
      std::int64_t n = std::min(panel, lines - i);
      char *table = p[0] + i * steps[0], *index = p[1] + i * steps[1], *values = p[2] + i * steps[2];
      for (std::int64_t k = part_.first; k < part_.last; ++k) {
        if (const std::int64_t* at = block_.load(index, steps[1], n))
          meet<T>(table, steps[0], w_.step[0], at, values, steps[2], n, f_);
        else
          in_range_ = false;
        index += w_.step[1];
        values += w_.step[2];
      }
    }
  }
  /// All lines share the index: each place is a row of elements.
  void rows(char** p, std::int64_t lines, const std::int64_t* steps) {
    bool side_by_side = steps[0] == sizeof(T) && steps[2] == sizeof(T);
    std::int64_t panel = side_by_side ? lines : 64;
    for (std::int64_t i = 0; i < lines; i += panel) {
      std::int64_t m = std::min(panel, lines - i);
      blocks(p[1], p[2] + i * steps[2], [&](const std::int64_t* at, std::int64_t n, char* v) {
        char* table = p[0] + i * steps[0];
        for (std::int64_t k = 0; k < n; ++k)
          meet_row<T>(table + at[k] * w_.step[0], steps[0], v + k * w_.step[2], steps[2], m, f_);
      });
    }
  }

  const IndexedLines& w_;
  Part part_;
  IndexBlock block_;
  F f_;
  bool in_range_ = true;
};

/// Calls f(table element, other element) for every place of the index. Threads share the lines or, where these are few
/// and `read` only, their places.
template <class T, class F>
bool for_places(const IndexedLines& w, bool read, F f) {
  std::int64_t lines = w.lines.numel, length = w.length;
  if (length == 0 || lines == 0) return true;
  std::atomic<bool> in_range = true;
  auto walk = [&](const Part& part) {
    if (!Walk<T, F>(w, part, f).run()) in_range = false;
  };
  constexpr std::int64_t worth = 1 << 15;  // places for which a thread is woken
  bool shared = lines > 1 && is_shared(w, w.lines.steps[0]);
  if (read && (lines < Walk<T, F>::few_lines || shared))
    parallel_for(length, std::max<std::int64_t>(1, worth / lines),
                 [&](std::int64_t begin, std::int64_t end) { walk({0, lines, begin, end}); });
  else
    parallel_for(lines, std::max<std::int64_t>(1, worth / length),
                 [&](std::int64_t begin, std::int64_t end) { walk({begin, end, 0, length}); });
  return in_range;
}

template <class T>
bool is_nan(T v) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return std::isnan(float(v));
}

template <class T>
void larger(T& to, T from) {
  if (!is_nan(to) && (is_nan(from) || from > to)) to = from;
}
template <class T>
void smaller(T& to, T from) {
  if (!is_nan(to) && (is_nan(from) || from < to)) to = from;
}

}  // namespace

bool gather_lines(const IndexedLines& w, std::int64_t item) {
  return visit_width(
      item, [&]<class T>() { return for_places<T>(w, true, [](const T& table, T& other) { other = table; }); });
}

bool scatter_lines(const IndexedLines& w, DType dtype, Scatter op) {
  switch (op) {
    case Scatter::Assign:
      return visit_width(item_size(dtype), [&]<class T>() {
        return for_places<T>(w, false, [](T& table, const T& other) { table = other; });
      });
    case Scatter::Add:
      return visit_dtype(dtype, [&]<class T>() {
        return for_places<T>(w, false, [](T& table, const T& other) { table = T(table + other); });
      });
    case Scatter::Multiply:
      return visit_dtype(dtype, [&]<class T>() {
        return for_places<T>(w, false, [](T& table, const T& other) { table = T(table * other); });
      });
    case Scatter::Larger:
      return visit_not_complex(dtype, "scatter_reduce", [&]<class T>() {
        return for_places<T>(w, false, [](T& table, const T& other) { larger(table, other); });
      });
    case Scatter::Smaller:
      return visit_not_complex(dtype, "scatter_reduce", [&]<class T>() {
        return for_places<T>(w, false, [](T& table, const T& other) { smaller(table, other); });
      });
  }
  return true;
}

}  // namespace rushlight
