// Folds that choose an element or decide a question, and the search for the place of what was chosen.
#include "kernels/fold.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

/// Halves are compared as floats.
template <class T>
using Comparable = std::conditional_t<is_half_type<T>, float, T>;
template <class T>
Comparable<T> comparable(T x) {
  return x;
}

template <class A>
constexpr A lowest() {
  if constexpr (std::is_floating_point_v<A>) return -std::numeric_limits<A>::infinity();
  return std::numeric_limits<A>::lowest();
}
template <class A>
constexpr A highest() {
  if constexpr (std::is_floating_point_v<A>) return std::numeric_limits<A>::infinity();
  return std::numeric_limits<A>::max();
}

template <class A, bool largest>
struct Choosing {
  using State = A;
  static A identity() { return largest ? lowest<A>() : highest<A>(); }
  static A join(A a, A b) {
    bool first = largest ? a > b : a < b;
    if constexpr (std::is_floating_point_v<A>) first = first || a != a;
    return first ? a : b;
  }
};
template <class T>
struct Max : Choosing<Comparable<T>, true> {
  static Comparable<T> map(T x, Comparable<T>) { return comparable(x); }
};
template <class T>
struct Min : Choosing<Comparable<T>, false> {
  static Comparable<T> map(T x, Comparable<T>) { return comparable(x); }
};
template <class T>
struct AbsMax : Choosing<Comparable<T>, true> {
  static Comparable<T> identity() { return 0; }
  static Comparable<T> map(T x, Comparable<T>) { return comparable(x) < 0 ? -comparable(x) : comparable(x); }
};
template <class T>
struct AbsMin : Choosing<Comparable<T>, false> {
  static Comparable<T> map(T x, Comparable<T>) { return comparable(x) < 0 ? -comparable(x) : comparable(x); }
};
template <class T>
struct Any {
  using State = bool;
  static bool identity() { return false; }
  static bool map(T x, bool) { return x != T(0); }
  static bool join(bool a, bool b) { return a | b; }
};
template <class T>
struct All {
  using State = bool;
  static bool identity() { return true; }
  static bool map(T x, bool) { return x != T(0); }
  static bool join(bool a, bool b) { return a & b; }
};

template <class T>
bool same(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return a == b;
  else
    return (a == b) | ((a != a) & (b != b));
}

template <class T>
void find_in_line(const char* from, std::int64_t n, std::int64_t step, const char* value_, std::int64_t* place) {
  auto value = comparable(*reinterpret_cast<const T*>(value_));
  std::int64_t i = 0;
  if (step == std::int64_t(sizeof(T))) {  // whole blocks without it are passed over
    constexpr int block = 64;
    auto* x = reinterpret_cast<const T*>(from);
    for (; i + block <= n; i += block) {
      bool found = false;
      for (int l = 0; l < block; ++l) found |= same(comparable(x[i + l]), value);
      if (found) break;
    }
  }
  while (i < n && !same(comparable(*reinterpret_cast<const T*>(from + i * step)), value)) ++i;
  *place = i < n ? i : 0;
}

template <class T>
void find_in_rows(const char* from, std::int64_t n, std::int64_t step, const char* values, std::int64_t row,
                  std::int64_t* places) {
  auto* value = reinterpret_cast<const T*>(values);
  for (std::int64_t i = 0; i < n; ++i) {
    bool here = (places[i] < 0) & same(comparable(*reinterpret_cast<const T*>(from + i * step)), comparable(value[i]));
    places[i] = here ? row : places[i];
  }
}

}  // namespace

bool fold_choices(FoldKind kind, DType type, Fold& f) {
  switch (kind) {
    case FoldKind::Max:
      return pick_fold<Max, RUSHLIGHT_FOLD_INTS, RUSHLIGHT_FOLD_FLOATS>(type, f);
    case FoldKind::Min:
      return pick_fold<Min, RUSHLIGHT_FOLD_INTS, RUSHLIGHT_FOLD_FLOATS>(type, f);
    case FoldKind::AbsMax:
      return pick_fold<AbsMax, RUSHLIGHT_FOLD_FLOATS>(type, f);
    case FoldKind::AbsMin:
      return pick_fold<AbsMin, RUSHLIGHT_FOLD_FLOATS>(type, f);
    case FoldKind::Any:
      return pick_fold<Any, RUSHLIGHT_FOLD_INTS, RUSHLIGHT_FOLD_FLOATS, RUSHLIGHT_FOLD_COMPLEX>(type, f);
    case FoldKind::All:
      return pick_fold<All, RUSHLIGHT_FOLD_INTS, RUSHLIGHT_FOLD_FLOATS, RUSHLIGHT_FOLD_COMPLEX>(type, f);
    default:
      return false;
  }
}

void find_line(DType type, const char* from, std::int64_t n, std::int64_t step, const char* value,
               std::int64_t* place) {
  visit_not_complex(type, "find_first", [&]<class T>() { find_in_line<T>(from, n, step, value, place); });
}

void find_rows(DType type, const char* from, std::int64_t n, std::int64_t step, const char* values, std::int64_t row,
               std::int64_t* places) {
  visit_not_complex(type, "find_first", [&]<class T>() { find_in_rows<T>(from, n, step, values, row, places); });
}

}  // namespace rushlight::RUSHLIGHT_ISA
