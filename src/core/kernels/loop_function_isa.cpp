// The strided loops of elementary functions, compiled once per instruction set; products and sums are fused where the
// processor can (CMake), so that results of different builds may differ in the last place. Where NumPy has a loop of
// that name and type, ours is taken because it measured faster.
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/circular.h"
#include "kernels/exponential.h"
#include "kernels/logarithm.h"
#include "kernels/loop.h"
#include "kernels/loop_form.h"
#include "kernels/loop_rows.h"
#include "kernels/power.h"
#include "kernels/truncated_remainder.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

struct Exp {
  template <class T>
  static T f(T a) {
    return exponential(a);
  }
};
struct Sigmoid {
  template <class T>
  static T f(T a) {
    return logistic(a);
  }
};
struct Angle {
  static bool rare(double a) { return !(std::fabs(a) <= largest_angle); }
};
struct Sin : Angle {
  static double fast(double a) { return a == 0.0 ? a : sine_of(a, 0); }  // the zero keeps its sign
  static double exact(double a) { return std::sin(a); }
};
struct Cos : Angle {
  static double fast(double a) { return sine_of(a, 1); }
  static double exact(double a) { return std::cos(a); }
};

struct Hypot {
  static float f(float a, float b) {
    double x = a, y = b;
    float size = float(std::sqrt(x * x + y * y));
    return std::isinf(a) | std::isinf(b) ? std::numeric_limits<float>::infinity() : size;
  }
  /// Both are scaled by the power of two that brings the larger near 1.
  static double f(double a, double b) {
    double x = std::fabs(a), y = std::fabs(b), larger = x > y ? x : y;
    std::uint64_t exponent = std::bit_cast<std::uint64_t>(larger) >> 52;
    exponent = exponent < 1 ? 1 : exponent > 0x7fd ? 0x7fd : exponent;
    double scale = std::bit_cast<double>((0x7fe - exponent) << 52), back = std::bit_cast<double>(exponent << 52);
    x *= scale;
    y *= scale;
    double size = std::sqrt(x * x + y * y) * back;
    return std::isinf(a) | std::isinf(b) ? std::numeric_limits<double>::infinity() : size;
  }
};

/// log(b^x + b^y), b being 2 or e; of two infinities of one sign, that.
template <bool binary>
struct LogAddExp {
  template <class T>
  static bool rare(T, T) {
    return false;
  }
  template <class T>
  static T fast(T a, T b) {
    constexpr T log_2 = T(0.69314718055994530942), base = binary ? log_2 : T(1);
    T low = a < b ? a : b, high = a < b ? b : a;
    T sum = high + logarithm_of_one_plus(exponential((low - high) * base)) / base;
    sum = low == high ? high + log_2 / base : sum;
    return a != a || b != b ? a + b : sum;
  }
  template <class T>
  static T exact(T a, T b) {
    return fast(a, b);
  }
};

// NumPy's power in float, on Linux with AVX-512, is the vector library's: within 1 ulp and three times as fast as ours.
#if defined(__linux__) && defined(__AVX512F__)
constexpr bool numpy_has_power = true;
#else
constexpr bool numpy_has_power = false;
#endif

struct Power {
  static float fast(float a, float b) { return power(a, b); }
  static bool rare(float, float) { return false; }
  static float exact(float a, float b) { return std::pow(a, b); }
};

/// What is computed from the dividend, the divisor and their truncated remainder.
template <class Derived>
struct Modular {
  template <class T>
  static bool rare(T a, T b) {
    return far_apart(a, b);
  }
  template <class T>
  static T fast(T a, T b) {
    return Derived::from(a, b, truncated_remainder(a, b));
  }
  template <class T>
  static T exact(T a, T b) {
    return Derived::from(a, b, std::fmod(a, b));
  }
};
struct Fmod : Modular<Fmod> {
  template <class T>
  static T from(T, T, T mod) {
    return mod;
  }
};
struct Remainder : Modular<Remainder> {
  template <class T>
  static T from(T, T b, T mod) {
    return (mod != 0) & ((b < 0) != (mod < 0)) ? mod + b : mod;
  }
};
struct FloorDivide : Modular<FloorDivide> {
  template <class T>
  static T from(T a, T b, T mod) {
    T q = (a - mod) / b;
    q = (mod != 0) & ((b < 0) != (mod < 0)) ? q - 1 : q;
    T whole = std::floor(q), nearest = q - whole > T(0.5) ? whole + 1 : whole;
    T quotient = q == 0 ? std::copysign(T(0), a / b) : nearest;
    return b == 0 ? a / b : quotient;
  }
};

}  // namespace

void add_function_loops(Adder add) {
  unary_loops<Exp, float>(add, "exp");
  unary_loops<Sigmoid, RUSHLIGHT_FLOATS>(add, "sigmoid");
  unary_row_loops<Sin, double>(add, "sin");
  unary_row_loops<Cos, double>(add, "cos");
  binary_loops<Hypot, RUSHLIGHT_FLOATS>(add, "hypot");
  binary_row_loops<LogAddExp<false>, RUSHLIGHT_FLOATS>(add, "logaddexp");
  binary_row_loops<LogAddExp<true>, RUSHLIGHT_FLOATS>(add, "logaddexp2");
  if (!numpy_has_power) binary_row_loops<Power, float>(add, "power");
  binary_row_loops<Fmod, RUSHLIGHT_FLOATS>(add, "fmod");
  binary_row_loops<Remainder, RUSHLIGHT_FLOATS>(add, "remainder");
  binary_row_loops<FloorDivide, RUSHLIGHT_FLOATS>(add, "floor_divide");
}

}  // namespace rushlight::RUSHLIGHT_ISA
