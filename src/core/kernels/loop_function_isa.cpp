// The strided loops of elementary functions, compiled once per instruction set; products and sums are fused where the
// processor can (CMake), so that results of different builds may differ in the last place. Where NumPy has a loop of
// that name and type, ours is taken because it measured faster.
#include <algorithm>
#include <cmath>

#include "kernels/circular.h"
#include "kernels/error_function.h"
#include "kernels/loop.h"
#include "kernels/loop_form.h"
#include "kernels/power.h"
#include "kernels/truncated_remainder.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

constexpr std::intptr_t chunk = 256;

/// Up to a chunk of numbers in a row: those at `p`, or a copy.
template <class T>
const T* in_row(const char* p, std::intptr_t step, std::intptr_t n, T* copy) {
  if (step == sizeof(T)) return reinterpret_cast<const T*>(p);
  if (step == 0) {
    std::fill_n(copy, n, *reinterpret_cast<const T*>(p));
  } else {
    for (std::intptr_t i = 0; i < n; ++i) copy[i] = *reinterpret_cast<const T*>(p + i * step);
  }
  return copy;
}

template <class T>
void put(const T* from, char* p, std::intptr_t step, std::intptr_t n) {
  if (step == sizeof(T)) {
    std::copy_n(from, n, reinterpret_cast<T*>(p));
  } else {
    for (std::intptr_t i = 0; i < n; ++i) *reinterpret_cast<T*>(p + i * step) = from[i];
  }
}

/// Op::fast for all, in rows whatever the steps are; then Op::exact for the rare ones that it does not serve.
template <class Op, class T>
void unary_in_rows(char** args, const std::intptr_t* dims, const std::intptr_t* steps, void*) {
  for (std::intptr_t at = 0; at < dims[0]; at += chunk) {
    std::intptr_t n = std::min(chunk, dims[0] - at);
    T copy[chunk], out[chunk];
    const T* a = in_row(args[0] + at * steps[0], steps[0], n, copy);
    int rare = 0;
#pragma GCC ivdep
    for (std::intptr_t i = 0; i < n; ++i) {
      out[i] = Op::fast(a[i]);
      rare |= Op::rare(a[i]);
    }
    if (rare)
      for (std::intptr_t i = 0; i < n; ++i)
        if (Op::rare(a[i])) out[i] = Op::exact(a[i]);
    put(out, args[1] + at * steps[1], steps[1], n);
  }
}

template <class Op, class T>
void binary_in_rows(char** args, const std::intptr_t* dims, const std::intptr_t* steps, void*) {
  for (std::intptr_t at = 0; at < dims[0]; at += chunk) {
    std::intptr_t n = std::min(chunk, dims[0] - at);
    T copies[2][chunk], out[chunk];
    const T* a = in_row(args[0] + at * steps[0], steps[0], n, copies[0]);
    const T* b = in_row(args[1] + at * steps[1], steps[1], n, copies[1]);
    int rare = 0;
#pragma GCC ivdep
    for (std::intptr_t i = 0; i < n; ++i) {
      out[i] = Op::fast(a[i], b[i]);
      rare |= Op::rare(a[i], b[i]);
    }
    if (rare)
      for (std::intptr_t i = 0; i < n; ++i)
        if (Op::rare(a[i], b[i])) out[i] = Op::exact(a[i], b[i]);
    put(out, args[2] + at * steps[2], steps[2], n);
  }
}

template <class Op, class... Ts>
void unary_row_loops(Adder add, const char* name) {
  (add(name, 1, {{dtype_of<Ts>}, dtype_of<Ts>, &unary_in_rows<Op, Ts>, nullptr}), ...);
}
template <class Op, class... Ts>
void binary_row_loops(Adder add, const char* name) {
  (add(name, 2, {{dtype_of<Ts>, dtype_of<Ts>}, dtype_of<Ts>, &binary_in_rows<Op, Ts>, nullptr}), ...);
}

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
struct Erf {
  template <class T>
  static T f(T a) {
    if constexpr (std::is_same_v<T, float>)
      return error_function(a);
    else
      return std::erf(a);
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
  unary_loops<Erf, RUSHLIGHT_FLOATS>(add, "erf");
  unary_row_loops<Sin, double>(add, "sin");
  unary_row_loops<Cos, double>(add, "cos");
  binary_row_loops<Power, float>(add, "power");
  binary_row_loops<Fmod, RUSHLIGHT_FLOATS>(add, "fmod");
  binary_row_loops<Remainder, RUSHLIGHT_FLOATS>(add, "remainder");
  binary_row_loops<FloorDivide, RUSHLIGHT_FLOATS>(add, "floor_divide");
}

}  // namespace rushlight::RUSHLIGHT_ISA
