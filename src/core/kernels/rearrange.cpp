#include "kernels/rearrange.h"

#include <algorithm>

#include "kernels/parallel.h"
#include "tensor/dtype.h"

namespace rushlight {
namespace {

constexpr std::int64_t side = 16;

/// to (n, m) = the transpose of from (m, n), square by square.
template <class T>
void transpose(const T* from, std::int64_t m, std::int64_t n, std::int64_t from_row, std::int64_t to_row, T* to) {
  for (std::int64_t i = 0; i < m; i += side)
    for (std::int64_t j = 0; j < n; j += side)
      for (std::int64_t a = j; a < std::min(n, j + side); ++a)
        for (std::int64_t b = i; b < std::min(m, i + side); ++b) to[a * to_row + b] = from[b * from_row + a];
}

/// Calls f(i) for parts of the work, each of `bytes` bytes. The lock is kept: nobody may see a storage half done.
template <class F>
void over(std::int64_t count, std::int64_t bytes, F&& f) {
  parallel_for(
      count, std::max<std::int64_t>(1, (1 << 16) / std::max<std::int64_t>(bytes, 1)),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) f(i);
      },
      true);
}

/// Per sample, a transposition; in parts of the channels, so that there is work for every thread.
template <class T>
void channels_last(const Moved& s, const T* from, T* to, bool back) {
  std::int64_t parts = (s.inner + side - 1) / side;
  over(s.outer * parts, side * s.rest * s.item, [&](std::int64_t i) {
    std::int64_t first = i % parts * side, n = std::min(side, s.inner - first), base = i / parts * s.inner * s.rest;
    if (back)
      transpose(from + base + first, s.rest, n, s.inner, s.rest, to + base + first * s.rest);
    else
      transpose(from + base + first * s.rest, n, s.rest, s.rest, s.inner, to + base + first);
  });
}

/// Sixteen rows at a time: each is gone through in order, and their numbers at one place lie side by side in a block.
template <class T>
void blocked(const Moved& s, const T* from, T* to, bool back) {
  std::int64_t inner = s.inner / side, row = s.inner * s.rest, block = side * side * s.rest;
  over(s.outer / side * inner, block * s.item, [&](std::int64_t i) {
    std::int64_t rows = i / inner * side * row + i % inner * side * s.rest;
    for (std::int64_t k = 0; k < side; ++k)
      for (std::int64_t r = 0; r < s.rest; ++r) {
        std::int64_t first = rows + k * s.rest + r, place = i * block + (r * side + k) * side;
        if (back)
          for (std::int64_t o = 0; o < side; ++o) to[first + o * row] = from[place + o];
        else
          for (std::int64_t o = 0; o < side; ++o) to[place + o] = from[first + o * row];
      }
  });
}

void move(Arrangement::Order order, const Moved& s, const std::byte* from, std::byte* to, bool back) {
  visit_width(s.item, [&]<class T>() {
    auto* f = order == Arrangement::Blocked ? &blocked<T> : &channels_last<T>;
    f(s, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), back);
  });
}

}  // namespace

void bring_from_rows(Arrangement::Order order, const Moved& sizes, const std::byte* from, std::byte* to) {
  move(order, sizes, from, to, false);
}
void bring_to_rows(Arrangement::Order order, const Moved& sizes, const std::byte* from, std::byte* to) {
  move(order, sizes, from, to, true);
}

}  // namespace rushlight
