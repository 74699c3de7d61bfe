#include "kernels/scatter.h"

#include <algorithm>
#include <cmath>

#include "kernels/parallel.h"

namespace rushlight {
namespace {

/// Calls f(table element, other element) for every place of the index.
template <class T, class F>
void for_places(const IndexedLines& w, F f) {
  if (w.length == 0 || w.lines.numel == 0) return;
  parallel_for(w.lines.numel, std::max<std::int64_t>(1, (1 << 14) / w.length),
               [&](std::int64_t begin, std::int64_t end) {
                 w.lines.run(w.base, begin, end, [&](char** p, std::int64_t n, const std::int64_t* steps) {
                   auto place = [&](std::int64_t line, std::int64_t k) {
                     std::int64_t at = *reinterpret_cast<const std::int64_t*>(p[1] + line * steps[1] + k * w.step[1]);
                     f(*reinterpret_cast<T*>(p[0] + line * steps[0] + at * w.step[0]),
                       *reinterpret_cast<T*>(p[2] + line * steps[2] + k * w.step[2]));
                   };
                   // the inner loop runs where the index lies closer together
                   if (n > 1 && std::abs(steps[1]) < std::abs(w.step[1]))
                     for (std::int64_t k = 0; k < w.length; ++k)
                       for (std::int64_t line = 0; line < n; ++line) place(line, k);
                   else
                     for (std::int64_t line = 0; line < n; ++line)
                       for (std::int64_t k = 0; k < w.length; ++k) place(line, k);
                 });
               });
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

void gather_lines(const IndexedLines& w, std::int64_t item) {
  visit_width(item, [&]<class T>() { for_places<T>(w, [](T& table, T& other) { other = table; }); });
}

void scatter_lines(const IndexedLines& w, DType dtype, Scatter op) {
  switch (op) {
    case Scatter::Assign:
      return visit_width(item_size(dtype),
                         [&]<class T>() { for_places<T>(w, [](T& table, T& other) { table = other; }); });
    case Scatter::Add:
      return visit_dtype(dtype,
                         [&]<class T>() { for_places<T>(w, [](T& table, T& other) { table = T(table + other); }); });
    case Scatter::Multiply:
      return visit_dtype(dtype,
                         [&]<class T>() { for_places<T>(w, [](T& table, T& other) { table = T(table * other); }); });
    case Scatter::Larger:
      return visit_not_complex(dtype, "scatter_reduce",
                               [&]<class T>() { for_places<T>(w, [](T& table, T& other) { larger(table, other); }); });
    case Scatter::Smaller:
      return visit_not_complex(dtype, "scatter_reduce",
                               [&]<class T>() { for_places<T>(w, [](T& table, T& other) { smaller(table, other); }); });
  }
}

}  // namespace rushlight
