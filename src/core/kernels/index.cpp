#include "kernels/index.h"

#include <algorithm>
#include <cstring>

#include "kernels/parallel.h"

namespace rushlight {
namespace {

/// Calls f(first, second, n, first step, second step) for runs of elements that meet; threads share the other
/// dimensions, so that each place is written by one of them, in the order of k.
template <class T, class F>
void for_places(const DimensionPair& p, F&& f) {
  if (p.rest.numel == 1) {
    for (std::int64_t k = 0; k < p.count; ++k)
      f(reinterpret_cast<T*>(p.first + p.index[k] * p.first_step), reinterpret_cast<T*>(p.second + k * p.second_step),
        1, 0, 0);
    return;
  }
  parallel_for(p.rest.numel, std::max<std::int64_t>(64, (1 << 15) / std::max<std::int64_t>(p.count, 1)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t k = 0; k < p.count; ++k) {
                   char* base[2] = {p.first + p.index[k] * p.first_step, p.second + k * p.second_step};
                   p.rest.run(base, begin, end, [&](char** q, std::int64_t n, const std::int64_t* steps) {
                     f(reinterpret_cast<T*>(q[0]), reinterpret_cast<T*>(q[1]), n, steps[0] / std::int64_t(sizeof(T)),
                       steps[1] / std::int64_t(sizeof(T)));
                   });
                 }
               });
}

template <class T>
void select_numbers(const T* from, T* to, std::int64_t rows, std::int64_t n, const std::int64_t* index,
                    std::int64_t count) {
  parallel_for(rows * count, 1 << 15, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t k = begin % count;
    const T* row = from + begin / count * n;
    for (std::int64_t i = begin; i < end; ++i) {
      to[i] = row[index[k]];
      if (++k == count) {
        k = 0;
        row += n;
      }
    }
  });
}

}  // namespace

void select_places(const DimensionPair& p, std::int64_t item) {
  visit_width(item, [&]<class T>() {
    for_places<T>(p, [](const T* from, T* to, std::int64_t n, std::int64_t fs, std::int64_t ts) {
      for (std::int64_t i = 0; i < n; ++i) to[i * ts] = from[i * fs];
    });
  });
}

void copy_places(const DimensionPair& p, std::int64_t item) {
  visit_width(item, [&]<class T>() {
    for_places<T>(p, [](T* to, const T* from, std::int64_t n, std::int64_t ts, std::int64_t fs) {
      for (std::int64_t i = 0; i < n; ++i) to[i * ts] = from[i * fs];
    });
  });
}

void add_places(const DimensionPair& p, DType dtype, const Scalar& alpha) {
  bool plain = alpha.is(1);
  visit_dtype(dtype, [&]<class T>() {
    T factor = alpha.to<T>();
    for_places<T>(p, [&](T* to, const T* from, std::int64_t n, std::int64_t ts, std::int64_t fs) {
      if (plain && ts == 1 && fs == 1)
        for (std::int64_t i = 0; i < n; ++i) to[i] = T(to[i] + from[i]);
      else if (plain)
        for (std::int64_t i = 0; i < n; ++i) to[i * ts] = T(to[i * ts] + from[i * fs]);
      else
        for (std::int64_t i = 0; i < n; ++i) to[i * ts] = T(to[i * ts] + T(factor * from[i * fs]));
    });
  });
}

void select_blocks(const std::byte* from, std::byte* to, std::int64_t rows, std::int64_t n, const std::int64_t* index,
                   std::int64_t count, std::int64_t bytes) {
  if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8)
    return visit_width(bytes, [&]<class T>() {
      select_numbers(reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to), rows, n, index, count);
    });
  parallel_for(rows * count, std::max<std::int64_t>(1, (1 << 17) / std::max<std::int64_t>(bytes, 1)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i)
                   std::memcpy(to + i * bytes, from + (i / count * n + index[i % count]) * bytes, std::size_t(bytes));
               });
}

}  // namespace rushlight
