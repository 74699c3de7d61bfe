// Our own strided loops, compiled once per instruction set. Floating contraction is off (CMake), so that every build
// gives the same bits.
#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "kernels/loop.h"
#include "kernels/loop_form.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

template <class T>
inline T load(const char* p) {
  T v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

/// Packed masks and results; a and b are arrays, or one number.
template <bool one_a, bool one_b, class T>
void select(const std::uint8_t* c, const T* a, const T* b, T* r, std::intptr_t n) {
  // Both are read before the choice: the loop has no branch then.
  T first = n && one_a ? *a : T(), second = n && one_b ? *b : T();
#pragma GCC ivdep
  for (std::intptr_t i = 0; i < n; ++i) {
    T x = one_a ? first : a[i], y = one_b ? second : b[i];
    r[i] = c[i] ? x : y;
  }
}

template <class T>
void where(char** args, const std::intptr_t* dims, const std::intptr_t* steps, void*) {
  std::intptr_t n = dims[0];
  auto packed = [&](int k) { return steps[k] == sizeof(T); };
  if (steps[0] == 1 && packed(3) && (packed(1) || steps[1] == 0) && (packed(2) || steps[2] == 0)) {
    auto* c = reinterpret_cast<const std::uint8_t*>(args[0]);
    auto *a = reinterpret_cast<const T*>(args[1]), *b = reinterpret_cast<const T*>(args[2]);
    auto* r = reinterpret_cast<T*>(args[3]);
    if (packed(1)) return packed(2) ? select<false, false>(c, a, b, r, n) : select<false, true>(c, a, b, r, n);
    return packed(2) ? select<true, false>(c, a, b, r, n) : select<true, true>(c, a, b, r, n);
  }
  char *c = args[0], *a = args[1], *b = args[2], *r = args[3];
  for (std::intptr_t i = 0; i < n; ++i, c += steps[0], a += steps[1], b += steps[2], r += steps[3])
    *reinterpret_cast<T*>(r) = *c ? *reinterpret_cast<T*>(a) : *reinterpret_cast<T*>(b);
}

/// a b + c d: what the product rule gives.
template <class T>
void sum_of_products(char** args, const std::intptr_t* dims, const std::intptr_t* steps, void*) {
  std::intptr_t n = dims[0];
  bool whole = true;
  for (int k = 0; k < 5; ++k) whole = whole && steps[k] == sizeof(T);
  if (whole) {
    auto *a = reinterpret_cast<const T*>(args[0]), *b = reinterpret_cast<const T*>(args[1]);
    auto *c = reinterpret_cast<const T*>(args[2]), *d = reinterpret_cast<const T*>(args[3]);
    auto* r = reinterpret_cast<T*>(args[4]);
#pragma GCC ivdep
    for (std::intptr_t i = 0; i < n; ++i) r[i] = a[i] * b[i] + c[i] * d[i];
    return;
  }
  for (std::intptr_t i = 0; i < n; ++i) {
    auto at = [&](int k) -> T& { return *reinterpret_cast<T*>(args[k] + i * steps[k]); };
    at(4) = at(0) * at(1) + at(2) * at(3);
  }
}

template <class T>
inline T wrap(T v) {
  return v;
}
// integer arithmetic wraps around: computed in unsigned words
template <class T>
using Word = std::conditional_t<
    std::is_integral_v<T> && !std::is_same_v<T, bool>,
    std::make_unsigned_t<std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, T, int>>, T>;

struct Add {
  template <class T>
  static T f(T a, T b) {
    if constexpr (std::is_same_v<T, bool>)
      return a || b;
    else
      return T(Word<T>(a) + Word<T>(b));
  }
};
struct Sub {
  template <class T>
  static T f(T a, T b) {
    return T(Word<T>(a) - Word<T>(b));
  }
};
struct Mul {
  template <class T>
  static T f(T a, T b) {
    if constexpr (std::is_same_v<T, bool>)
      return a && b;
    else if constexpr (std::is_same_v<T, std::int16_t>)
      return T(std::uint32_t(a) * std::uint32_t(b));
    else
      return T(Word<T>(a) * Word<T>(b));
  }
};
struct Div {
  template <class T>
  static T f(T a, T b) {
    return a / b;
  }
};
struct Neg {
  template <class T>
  static T f(T a) {
    if constexpr (std::is_floating_point_v<T>)
      return -a;
    else
      return T(Word<T>(0) - Word<T>(a));
  }
};
struct Abs {
  template <class T>
  static T f(T a) {
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(a);
    else if constexpr (std::is_unsigned_v<T>)
      return a;
    else
      return a < 0 ? Neg::f(a) : a;
  }
};
struct Sign {
  template <class T>
  static T f(T a) {
    if constexpr (std::is_same_v<T, bool>)
      return a;
    else
      return T((T(0) < a) - (a < T(0)));
  }
};
/// Of a real number, as a complex one: 0 or pi; of NaN, NaN.
struct Angle {
  template <class T>
  static T f(T a) {
    return a != a ? a : a < T(0) ? T(3.14159265358979323846) : T(0);
  }
};
struct Square {
  template <class T>
  static T f(T a) {
    return Mul::f(a, a);
  }
};
struct Reciprocal {
  template <class T>
  static T f(T a) {
    return T(1) / a;
  }
};
struct Sqrt {
  template <class T>
  static T f(T a) {
    return std::sqrt(a);
  }
};
struct Rsqrt {
  template <class T>
  static T f(T a) {
    return T(1) / std::sqrt(a);
  }
};
struct Relu {
  template <class T>
  static T f(T a) {
    return a < T(0) ? T(0) : a;  // a NaN passes
  }
};
struct Maximum {
  template <class T>
  static T f(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a != a || a > b ? a : b;
    return a > b ? a : b;
  }
};
struct Minimum {
  template <class T>
  static T f(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a != a || a < b ? a : b;
    return a < b ? a : b;
  }
};
struct Fmax {
  template <class T>
  static T f(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return b != b || a > b ? a : b;
    return a > b ? a : b;
  }
};
struct Fmin {
  template <class T>
  static T f(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return b != b || a < b ? a : b;
    return a < b ? a : b;
  }
};
template <class T>
inline T nonzero(T b) {
  if (b == 0) {
    division_by_zero = true;
    return 1;
  }
  return b;
}
struct FloorDivide {
  template <class T>
  static T f(T a, T b) {
    b = nonzero(b);
    if (std::is_signed_v<T> && b == T(-1)) return Neg::f(a);
    T q = T(a / b);
    return T(q - (a % b != 0 && (a < 0) != (b < 0)));
  }
};
struct TruncDivide {
  template <class T>
  static T f(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::trunc(a / b);
    } else {
      b = nonzero(b);
      if (std::is_signed_v<T> && b == T(-1)) return Neg::f(a);
      return T(a / b);
    }
  }
};
struct Remainder {
  template <class T>
  static T f(T a, T b) {
    b = nonzero(b);
    if (std::is_signed_v<T> && b == T(-1)) return 0;
    T mod = T(a % b);
    return mod != 0 && (b < 0) != (mod < 0) ? T(mod + b) : mod;
  }
};
struct Fmod {
  template <class T>
  static T f(T a, T b) {
    b = nonzero(b);
    return std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b);
  }
};
struct IntPow {
  template <class T>
  static T f(T a, T b) {
    if constexpr (std::is_same_v<T, bool>) {
      return a || !b;
    } else {
      if (std::is_signed_v<T> && b < 0) return a == 1 ? T(1) : a == T(-1) ? (b & 1 ? T(-1) : T(1)) : T(0);
      Word<T> base = Word<T>(a), r = 1;
      for (auto e = Word<T>(b); e; e = Word<T>(e >> 1)) {
        if (e & 1) r = Word<T>(std::uint64_t(r) * base);
        base = Word<T>(std::uint64_t(base) * base);
      }
      return T(r);
    }
  }
};
struct Floor {
  template <class T>
  static T f(T a) {
    return std::floor(a);
  }
};
struct Ceil {
  template <class T>
  static T f(T a) {
    return std::ceil(a);
  }
};
struct Trunc {
  template <class T>
  static T f(T a) {
    return std::trunc(a);
  }
};
struct Round {
  template <class T>
  static T f(T a) {
    return std::nearbyint(a);
  }
};
struct Same {
  template <class T>
  static T f(T a) {
    return a;
  }
};
/// What tanh and sigmoid make of a gradient, given their results.
struct TanhSlope {
  template <class T>
  static T f(T g, T y) {
    return g * (T(1) - y * y);
  }
};
struct SigmoidSlope {
  template <class T>
  static T f(T g, T y) {
    return g * (y * (T(1) - y));
  }
};
/// From a to b: from the nearer end, so that both ends are met exactly.
struct Lerp {
  template <class T>
  static T f(T a, T b, T weight) {
    T way = b - a;
    return std::abs(weight) < 0.5 ? a + weight * way : b - way * (T(1) - weight);
  }
};
struct Copysign {
  template <class T>
  static T f(T a, T b) {
    return std::copysign(a, b);
  }
};
/// The bits of a number count its magnitude.
template <class T, class Bits>
T next_after(T a, T b) {
  bool up = (a < b) == (a > T(0));
  T next = std::bit_cast<T>(Bits(std::bit_cast<Bits>(a) + (up ? Bits(1) : Bits(-1))));
  next = a == T(0) ? std::copysign(std::numeric_limits<T>::denorm_min(), b) : next;
  return a != a || b != b ? a + b : a == b ? b : next;
}
struct Nextafter {
  static float f(float a, float b) { return next_after<float, std::int32_t>(a, b); }
  static double f(double a, double b) { return next_after<double, std::int64_t>(a, b); }
  template <class Half>
  static Half f(Half a, Half b) {
    float from = a, to = b;
    if (from != from) return a;
    if (to != to || from == to) return b;
    Half next;
    if (from == 0)
      next.bits = std::uint16_t(to > 0 ? 1 : 0x8001);
    else
      next.bits = std::uint16_t((from < to) == (from > 0) ? a.bits + 1 : a.bits - 1);
    return next;
  }
};
struct Gcd {
  template <class T>
  static T f(T a, T b) {
    a = Abs::f(a), b = Abs::f(b);
    while (b != 0) a = T(a % b), std::swap(a, b);
    return a;
  }
};
struct Lcm {
  template <class T>
  static T f(T a, T b) {
    T g = Gcd::f(a, b);
    return g == 0 ? T(0) : Abs::f(Mul::f(T(a / g), b));
  }
};
struct Eq {
  template <class T>
  static bool f(T a, T b) {
    return a == b;
  }
};
struct Ne {
  template <class T>
  static bool f(T a, T b) {
    return a != b;
  }
};
struct Lt {
  template <class T>
  static bool f(T a, T b) {
    return a < b;
  }
};
struct Le {
  template <class T>
  static bool f(T a, T b) {
    return a <= b;
  }
};
struct Gt {
  template <class T>
  static bool f(T a, T b) {
    return a > b;
  }
};
struct Ge {
  template <class T>
  static bool f(T a, T b) {
    return a >= b;
  }
};
template <class T>
inline bool truth(T a) {
  return a != T(0);
}
struct LogicalAnd {
  template <class T>
  static bool f(T a, T b) {
    return truth(a) & truth(b);
  }
};
struct LogicalOr {
  template <class T>
  static bool f(T a, T b) {
    return truth(a) | truth(b);
  }
};
struct LogicalXor {
  template <class T>
  static bool f(T a, T b) {
    return truth(a) ^ truth(b);
  }
};
struct LogicalNot {
  template <class T>
  static bool f(T a) {
    return !truth(a);
  }
};
struct IsNan {
  template <class T>
  static bool f(T a) {
    return a != a;
  }
};
struct IsInf {
  template <class T>
  static bool f(T a) {
    if constexpr (std::is_floating_point_v<T>) return std::fabs(a) == std::numeric_limits<T>::infinity();
    return false;
  }
};
struct IsFinite {
  template <class T>
  static bool f(T a) {
    if constexpr (std::is_floating_point_v<T>) return std::fabs(a) < std::numeric_limits<T>::infinity();
    return true;
  }
};
struct IsReal {
  template <class T>
  static bool f(T) {
    return true;
  }
};
struct NotNegative {
  template <class T>
  static bool f(T a) {
    return a >= T(0);
  }
};
struct SignBit {
  template <class T>
  static bool f(T a) {
    if constexpr (std::is_floating_point_v<T>) return std::signbit(a);
    return a < T(0);
  }
};
struct And {
  template <class T>
  static T f(T a, T b) {
    return T(a & b);
  }
};
struct Or {
  template <class T>
  static T f(T a, T b) {
    return T(a | b);
  }
};
struct Xor {
  template <class T>
  static T f(T a, T b) {
    return T(a ^ b);
  }
};
struct Not {
  template <class T>
  static T f(T a) {
    if constexpr (std::is_same_v<T, bool>)
      return !a;
    else
      return T(~a);
  }
};
struct ShiftLeft {
  template <class T>
  static T f(T a, T b) {
    if (std::uint64_t(b) >= sizeof(T) * 8) return 0;
    return T(Word<T>(a) << b);
  }
};
struct ShiftRight {
  template <class T>
  static T f(T a, T b) {
    if (std::uint64_t(b) >= sizeof(T) * 8) return std::is_signed_v<T> && a < 0 ? T(-1) : T(0);
    return T(a >> b);
  }
};

// The processor's own conversions of half precision where it has them: they differ from ours in the bits of a NaN.
#if defined(__F16C__)
inline float widened(Half v) { return _cvtsh_ss(v.bits); }
inline Half narrowed(float v) {
  Half half;
  half.bits = std::uint16_t(_cvtss_sh(v, _MM_FROUND_TO_NEAREST_INT));
  return half;
}
#else
inline float widened(Half v) { return v; }
inline Half narrowed(float v) { return v; }
#endif

/// Conversions: a float beyond the integer's range wraps through int64 as PyTorch's CPU kernels do.
template <class To, class From>
inline To convert(From v) {
  if constexpr (std::is_same_v<To, From>)
    return v;
  else if constexpr (is_complex_type<To>) {
    using R = typename To::value_type;
    if constexpr (is_complex_type<From>)
      return To(R(v.real()), R(v.imag()));
    else
      return To(convert<R>(v), 0);
  } else if constexpr (is_complex_type<From>) {
    if constexpr (std::is_same_v<To, bool>)
      return v != From(0);
    else
      return convert<To>(v.real());
  } else if constexpr (std::is_same_v<From, Half>)
    return convert<To>(widened(v));
  else if constexpr (std::is_same_v<From, BFloat16>)
    return convert<To>(float(v));
  else if constexpr (std::is_same_v<To, Half>)
    return narrowed(float(v));
  else if constexpr (std::is_same_v<To, BFloat16>)
    return To(float(v));
  else if constexpr (std::is_same_v<To, bool>)
    return v != From(0);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && sizeof(To) < 4)
    return To(std::int32_t(v));
  else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, std::int32_t>)
    return To(std::int32_t(v));
  else
    return To(v);
}

/// Packed halves by the processor's own conversion, which the compiler does not find in `convert`; how many were done.
template <class To, class From>
std::intptr_t convert_packed([[maybe_unused]] const From* from, [[maybe_unused]] To* to,
                             [[maybe_unused]] std::intptr_t n) {
  std::intptr_t done = 0;
#if defined(__F16C__)
  if constexpr (std::is_same_v<From, Half> && std::is_same_v<To, float>) {
    for (; done + 8 <= n; done += 8)
      _mm256_storeu_ps(to + done, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done))));
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, Half>) {
    for (; done + 8 <= n; done += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + done),
                       _mm256_cvtps_ph(_mm256_loadu_ps(from + done), _MM_FROUND_TO_NEAREST_INT));
  }
#endif
  return done;
}

struct Cast {
  template <class To, class From>
  static void loop(char** args, const std::intptr_t* dims, const std::intptr_t* steps, void*) {
    struct Op {
      static To f(From v) { return convert<To>(v); }
    };
    std::intptr_t done = 0;
    if (steps[0] == sizeof(From) && steps[1] == sizeof(To))
      done = convert_packed(reinterpret_cast<const From*>(args[0]), reinterpret_cast<To*>(args[1]), dims[0]);
    char* rest[2] = {args[0] + done * steps[0], args[1] + done * steps[1]};
    std::intptr_t left = dims[0] - done;
    unary<Op, To, From>(rest, &left, steps, nullptr);
  }
};

LoopFunction cast(DType from, DType to) {
  LoopFunction found = nullptr;
  visit_dtype(from, [&]<class From>() { visit_dtype(to, [&]<class To>() { found = &Cast::loop<To, From>; }); });
  return found;
}

void add_all(Adder linear, Adder simple, Adder add) {
  binary_loops<Add, bool, RUSHLIGHT_REALS>(linear, "add");
  binary_loops<Sub, RUSHLIGHT_REALS>(linear, "sub");
  binary_loops<Mul, bool, RUSHLIGHT_REALS>(linear, "mul");
  binary_loops<Div, RUSHLIGHT_FLOATS>(simple, "true_divide");
  binary_loops<FloorDivide, RUSHLIGHT_INTS>(add, "floor_divide");
  binary_loops<TruncDivide, RUSHLIGHT_REALS>(add, "trunc_divide");
  binary_loops<Remainder, RUSHLIGHT_INTS>(add, "remainder");
  binary_loops<Fmod, RUSHLIGHT_INTS>(add, "fmod");
  binary_loops<IntPow, bool, RUSHLIGHT_INTS>(add, "power");
  binary_loops<Maximum, bool, RUSHLIGHT_REALS>(simple, "maximum");
  binary_loops<Minimum, bool, RUSHLIGHT_REALS>(simple, "minimum");
  binary_loops<Fmax, bool, RUSHLIGHT_REALS>(simple, "fmax");
  binary_loops<Fmin, bool, RUSHLIGHT_REALS>(simple, "fmin");
  binary_loops<TanhSlope, RUSHLIGHT_FLOATS>(linear, "tanh_slope");
  binary_loops<SigmoidSlope, RUSHLIGHT_FLOATS>(linear, "sigmoid_slope");
  binary_loops<Copysign, RUSHLIGHT_FLOATS>(simple, "copysign");
  ternary_loops<Lerp, RUSHLIGHT_FLOATS, RUSHLIGHT_COMPLEX>(simple, "lerp");
  binary_loops<Nextafter, RUSHLIGHT_FLOATS, Half, BFloat16>(add, "nextafter");
  binary_loops<Gcd, RUSHLIGHT_INTS>(add, "gcd");
  binary_loops<Lcm, RUSHLIGHT_INTS>(add, "lcm");
  binary_loops<And, bool, RUSHLIGHT_INTS>(simple, "bitwise_and");
  binary_loops<Or, bool, RUSHLIGHT_INTS>(simple, "bitwise_or");
  binary_loops<Xor, bool, RUSHLIGHT_INTS>(simple, "bitwise_xor");
  binary_loops<ShiftLeft, RUSHLIGHT_INTS>(add, "bitwise_left_shift");
  binary_loops<ShiftRight, RUSHLIGHT_INTS>(add, "bitwise_right_shift");
  compare_loops<Eq, bool, RUSHLIGHT_REALS>(simple, "eq");
  compare_loops<Ne, bool, RUSHLIGHT_REALS>(simple, "ne");
  compare_loops<Lt, bool, RUSHLIGHT_REALS>(simple, "lt");
  compare_loops<Le, bool, RUSHLIGHT_REALS>(simple, "le");
  compare_loops<Gt, bool, RUSHLIGHT_REALS>(simple, "gt");
  compare_loops<Ge, bool, RUSHLIGHT_REALS>(simple, "ge");
  compare_loops<Eq, RUSHLIGHT_COMPLEX>(simple, "eq");
  compare_loops<Ne, RUSHLIGHT_COMPLEX>(simple, "ne");
  compare_loops<LogicalAnd, bool, RUSHLIGHT_REALS, RUSHLIGHT_COMPLEX>(simple, "logical_and");
  compare_loops<LogicalOr, bool, RUSHLIGHT_REALS, RUSHLIGHT_COMPLEX>(simple, "logical_or");
  compare_loops<LogicalXor, bool, RUSHLIGHT_REALS, RUSHLIGHT_COMPLEX>(simple, "logical_xor");
  unary_loops<Neg, RUSHLIGHT_REALS>(linear, "neg");
  unary_loops<Abs, RUSHLIGHT_REALS>(simple, "abs");
  unary_loops<Sign, bool, RUSHLIGHT_REALS>(simple, "sign");
  unary_loops<Sign, bool, RUSHLIGHT_REALS>(simple, "sgn");
  unary_loops<Square, RUSHLIGHT_REALS>(simple, "square");
  simple("square", 1, {{DType::Bool}, DType::Int64, &unary<Square, std::int64_t, bool>, nullptr});
  unary_loops<Reciprocal, RUSHLIGHT_FLOATS>(simple, "reciprocal");
  unary_loops<Sqrt, RUSHLIGHT_FLOATS>(simple, "sqrt");
  unary_loops<Rsqrt, RUSHLIGHT_FLOATS>(simple, "rsqrt");
  unary_loops<Relu, RUSHLIGHT_REALS>(simple, "relu");
  unary_loops<Floor, RUSHLIGHT_FLOATS>(simple, "floor");
  unary_loops<Ceil, RUSHLIGHT_FLOATS>(simple, "ceil");
  unary_loops<Trunc, RUSHLIGHT_FLOATS>(simple, "trunc");
  unary_loops<Round, RUSHLIGHT_FLOATS>(simple, "round");
  unary_loops<Same, RUSHLIGHT_INTS>(simple, "floor");
  unary_loops<Same, RUSHLIGHT_INTS>(simple, "ceil");
  unary_loops<Same, RUSHLIGHT_INTS>(simple, "trunc");
  unary_loops<Same, RUSHLIGHT_INTS>(simple, "round");
  unary_loops<Same, bool, RUSHLIGHT_REALS, RUSHLIGHT_COMPLEX>(linear, "positive");
  unary_loops<Same, bool, RUSHLIGHT_REALS>(add, "conj");
  unary_loops<Angle, RUSHLIGHT_FLOATS>(add, "angle");
  unary_loops<Not, bool, RUSHLIGHT_INTS>(simple, "bitwise_not");
  predicate_loops<LogicalNot, bool, RUSHLIGHT_REALS, RUSHLIGHT_COMPLEX>(simple, "logical_not");
  predicate_loops<IsNan, bool, RUSHLIGHT_REALS, RUSHLIGHT_COMPLEX>(simple, "isnan");
  predicate_loops<IsInf, bool, RUSHLIGHT_REALS>(simple, "isinf");
  predicate_loops<IsFinite, bool, RUSHLIGHT_REALS>(simple, "isfinite");
  predicate_loops<IsReal, bool, RUSHLIGHT_REALS>(simple, "is_real");
  predicate_loops<NotNegative, bool, RUSHLIGHT_REALS>(simple, "not_negative");
  predicate_loops<SignBit, bool, RUSHLIGHT_REALS>(simple, "signbit");
  auto where_loops = [&]<class... Ts>() {
    (simple("where", 3, {{DType::Bool, dtype_of<Ts>, dtype_of<Ts>}, dtype_of<Ts>, &where<Ts>, nullptr}), ...);
  };
  where_loops.template operator()<bool, RUSHLIGHT_REALS, Half, BFloat16, RUSHLIGHT_COMPLEX>();
  auto product_loops = [&]<class... Ts>() {
    (linear("sum_of_products", 4,
            {{dtype_of<Ts>, dtype_of<Ts>, dtype_of<Ts>, dtype_of<Ts>}, dtype_of<Ts>, &sum_of_products<Ts>, nullptr}),
     ...);
  };
  product_loops.template operator()<RUSHLIGHT_FLOATS>();
}

}  // namespace

LoopBuild loop_build() { return {&add_all, &cast}; }

}  // namespace rushlight::RUSHLIGHT_ISA
