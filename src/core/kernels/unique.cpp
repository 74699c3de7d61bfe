#include "kernels/unique.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/order.h"
#include "kernels/sort.h"

namespace rushlight {

namespace {

// Walks n inputs in the order place(0), place(1), ...; one that differs from the one before it starts a new output, for
// which keep(output, place) is called. Returns the number of outputs.
template <class Place, class Differs, class Keep>
std::int64_t collect_runs(std::int64_t n, Place place, Differs differs, Keep keep, std::int64_t* inverse,
                          std::int64_t* counts) {
  std::int64_t outputs = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (i == 0 || differs(place(i - 1), place(i))) {
      keep(outputs, place(i));
      if (counts) counts[outputs] = 0;
      ++outputs;
    }
    if (counts) ++counts[outputs - 1];
    if (inverse) inverse[place(i)] = outputs - 1;
  }
  return outputs;
}

template <class T>
struct RowOrder {
  const T* rows;
  std::int64_t width;

  bool differs(std::int64_t a, std::int64_t b) const {
    return !std::equal(rows + a * width, rows + (a + 1) * width, rows + b * width);
  }

  // Lexicographic, NaN last; equal rows by their places.
  bool before(std::int64_t a, std::int64_t b) const {
    for (std::int64_t i = 0; i < width; ++i) {
      const T x = rows[a * width + i], y = rows[b * width + i];
      if (ascends(x, y)) return true;
      if (ascends(y, x)) return false;
    }
    return a < b;
  }
};

std::int64_t in_order(std::int64_t i) { return i; }

}  // namespace

template <class T>
std::int64_t unique_sorted(const T* in, std::int64_t n, T* values, std::int64_t* inverse, std::int64_t* counts) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  sort_line<T>({in}, n, false, {}, {order.data()});
  return collect_runs(
      n, [&](std::int64_t i) { return order[std::size_t(i)]; },
      [in](std::int64_t a, std::int64_t b) { return in[a] != in[b]; },
      [=](std::int64_t output, std::int64_t place) { values[output] = in[place]; }, inverse, counts);
}

template <class T>
std::int64_t unique_consecutive(const T* in, std::int64_t n, T* values, std::int64_t* inverse, std::int64_t* counts) {
  return collect_runs(
      n, in_order, [in](std::int64_t a, std::int64_t b) { return in[a] != in[b]; },
      [=](std::int64_t output, std::int64_t place) { values[output] = in[place]; }, inverse, counts);
}

template <class T>
std::int64_t unique_rows(const T* rows, std::int64_t n, std::int64_t width, std::int64_t* kept, std::int64_t* inverse,
                         std::int64_t* counts) {
  const RowOrder<T> row_order{rows, width};
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t(0));
  std::sort(order.begin(), order.end(), [=](std::int64_t a, std::int64_t b) { return row_order.before(a, b); });
  return collect_runs(
      n, [&](std::int64_t i) { return order[std::size_t(i)]; },
      [=](std::int64_t a, std::int64_t b) { return row_order.differs(a, b); },
      [=](std::int64_t output, std::int64_t place) { kept[output] = place; }, inverse, counts);
}

template <class T>
std::int64_t unique_consecutive_rows(const T* rows, std::int64_t n, std::int64_t width, std::int64_t* kept,
                                     std::int64_t* inverse, std::int64_t* counts) {
  const RowOrder<T> row_order{rows, width};
  return collect_runs(
      n, in_order, [=](std::int64_t a, std::int64_t b) { return row_order.differs(a, b); },
      [=](std::int64_t output, std::int64_t place) { kept[output] = place; }, inverse, counts);
}

// clang-format off
#define INSTANTIATE(T) \
  template std::int64_t unique_sorted(const T*, std::int64_t, T*, std::int64_t*, std::int64_t*); \
  template std::int64_t unique_consecutive(const T*, std::int64_t, T*, std::int64_t*, std::int64_t*); \
  template std::int64_t unique_rows(const T*, std::int64_t, std::int64_t, std::int64_t*, std::int64_t*, \
      std::int64_t*); \
  template std::int64_t unique_consecutive_rows(const T*, std::int64_t, std::int64_t, std::int64_t*, std::int64_t*, \
      std::int64_t*);
INSTANTIATE(bool)
INSTANTIATE(std::uint8_t)
INSTANTIATE(std::int8_t)
INSTANTIATE(std::int16_t)
INSTANTIATE(std::int32_t)
INSTANTIATE(std::int64_t)
INSTANTIATE(Half)
INSTANTIATE(BFloat16)
INSTANTIATE(float)
INSTANTIATE(double)
// clang-format on

}  // namespace rushlight
