// Folds that add, multiply or count.
#include "kernels/fold.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

/// Integers are added in int64, halves in float.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, std::int64_t, std::conditional_t<is_half_type<T>, float, T>>;

template <class A>
struct Adding {
  using State = A;
  static A identity() { return A(0); }
  static A join(A a, A b) {
    if constexpr (std::is_integral_v<A>)
      return A(std::uint64_t(a) + std::uint64_t(b));  // wraps around
    else
      return a + b;
  }
};

template <class T>
struct Sum : Adding<Wide<T>> {
  static Wide<T> map(T x, Wide<T>) { return Wide<T>(x); }
};
template <class T>
struct NanSum : Adding<Wide<T>> {
  static Wide<T> map(T x, Wide<T>) {
    auto v = Wide<T>(x);
    return v == v ? v : Wide<T>(0);
  }
};
template <class T>
struct WideSum : Adding<double> {
  static double map(T x, double) {
    if constexpr (is_half_type<T>)
      return double(float(x));
    else
      return double(x);
  }
};
template <class T>
struct Deviation : Adding<double> {
  static double map(T x, double centre) {
    double d = WideSum<T>::map(x, 0) - centre;
    return d * d;
  }
};
template <class T>
struct AbsSum : Adding<Wide<T>> {
  static Wide<T> map(T x, Wide<T>) {
    auto v = Wide<T>(x);
    return v < 0 ? -v : v;
  }
};
template <class T>
struct SquareSum : Adding<Wide<T>> {
  static Wide<T> map(T x, Wide<T>) { return Wide<T>(x) * Wide<T>(x); }
};
template <class T>
struct Count : Adding<std::int64_t> {
  static std::int64_t map(T x, std::int64_t) { return x != T(0); }
};
template <class T>
struct Prod {
  using State = Wide<T>;
  static State identity() { return State(1); }
  static State map(T x, State) { return State(x); }
  static State join(State a, State b) {
    if constexpr (std::is_integral_v<State>)
      return State(std::uint64_t(a) * std::uint64_t(b));
    else
      return a * b;
  }
};

}  // namespace

bool fold_sums(FoldKind kind, DType type, Fold& f) {
  switch (kind) {
    case FoldKind::Sum:
      return pick_fold<Sum, RUSHLIGHT_FOLD_INTS, RUSHLIGHT_FOLD_FLOATS, RUSHLIGHT_FOLD_COMPLEX>(type, f);
    case FoldKind::NanSum:
      return pick_fold<NanSum, RUSHLIGHT_FOLD_FLOATS>(type, f);
    case FoldKind::WideSum:
      return pick_fold<WideSum, RUSHLIGHT_FOLD_FLOATS>(type, f);
    case FoldKind::Deviation:
      return pick_fold<Deviation, RUSHLIGHT_FOLD_FLOATS>(type, f);
    case FoldKind::AbsSum:
      return pick_fold<AbsSum, RUSHLIGHT_FOLD_FLOATS>(type, f);
    case FoldKind::SquareSum:
      return pick_fold<SquareSum, RUSHLIGHT_FOLD_FLOATS>(type, f);
    case FoldKind::Count:
      return pick_fold<Count, RUSHLIGHT_FOLD_INTS, RUSHLIGHT_FOLD_FLOATS, RUSHLIGHT_FOLD_COMPLEX>(type, f);
    case FoldKind::Prod:
      return pick_fold<Prod, RUSHLIGHT_FOLD_INTS, RUSHLIGHT_FOLD_FLOATS, RUSHLIGHT_FOLD_COMPLEX>(type, f);
    default:
      return false;
  }
}

}  // namespace rushlight::RUSHLIGHT_ISA
