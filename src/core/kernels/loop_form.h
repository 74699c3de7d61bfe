// The forms of strided loops, and how sources that are compiled once per instruction set offer theirs.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <string_view>

#include "kernels/loop.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

/// One loop over n elements, with the contiguous and the number-beside-array cases spelled out for the vectoriser.
template <class Op, class R, class A>
void unary(char** args, const std::intptr_t* dims, const std::intptr_t* steps, void*) {
  std::intptr_t n = dims[0];
  if (steps[0] == sizeof(A) && steps[1] == sizeof(R)) {
    auto* a = reinterpret_cast<const A*>(args[0]);
    auto* r = reinterpret_cast<R*>(args[1]);
#pragma GCC ivdep
    for (std::intptr_t i = 0; i < n; ++i) r[i] = Op::f(a[i]);
    return;
  }
  if (steps[0] == 0 && steps[1] == sizeof(R) && n > 0) {  // one number everywhere
    std::fill_n(reinterpret_cast<R*>(args[1]), n, R(Op::f(*reinterpret_cast<const A*>(args[0]))));
    return;
  }
  if (steps[0] == -std::intptr_t(sizeof(A)) && steps[1] == sizeof(R)) {  // backwards
    auto* a = reinterpret_cast<const A*>(args[0]);
    auto* r = reinterpret_cast<R*>(args[1]);
#pragma GCC ivdep
    for (std::intptr_t i = 0; i < n; ++i) r[i] = Op::f(a[-i]);
    return;
  }
  char *a = args[0], *r = args[1];
  for (std::intptr_t i = 0; i < n; ++i, a += steps[0], r += steps[1])
    *reinterpret_cast<R*>(r) = Op::f(*reinterpret_cast<A*>(a));
}

template <class Op, class R, class A, class B>
void binary(char** args, const std::intptr_t* dims, const std::intptr_t* steps, void*) {
  std::intptr_t n = dims[0];
  if (steps[2] == sizeof(R)) {
    auto* a = reinterpret_cast<const A*>(args[0]);
    auto* b = reinterpret_cast<const B*>(args[1]);
    auto* r = reinterpret_cast<R*>(args[2]);
    if (steps[0] == sizeof(A) && steps[1] == sizeof(B)) {
#pragma GCC ivdep
      for (std::intptr_t i = 0; i < n; ++i) r[i] = Op::f(a[i], b[i]);
      return;
    }
    if (steps[0] == sizeof(A) && steps[1] == 0) {
      B second = *b;
#pragma GCC ivdep
      for (std::intptr_t i = 0; i < n; ++i) r[i] = Op::f(a[i], second);
      return;
    }
    if (steps[0] == 0 && steps[1] == sizeof(B)) {
      A first = *a;
#pragma GCC ivdep
      for (std::intptr_t i = 0; i < n; ++i) r[i] = Op::f(first, b[i]);
      return;
    }
  }
  char *a = args[0], *b = args[1], *r = args[2];
  for (std::intptr_t i = 0; i < n; ++i, a += steps[0], b += steps[1], r += steps[2])
    *reinterpret_cast<R*>(r) = Op::f(*reinterpret_cast<A*>(a), *reinterpret_cast<B*>(b));
}

/// The third operand is often a number.
template <class Op, class T>
void ternary(char** args, const std::intptr_t* dims, const std::intptr_t* steps, void*) {
  std::intptr_t n = dims[0];
  if (steps[0] == sizeof(T) && steps[1] == sizeof(T) && steps[3] == sizeof(T)) {
    auto *a = reinterpret_cast<const T*>(args[0]), *b = reinterpret_cast<const T*>(args[1]);
    auto* c = reinterpret_cast<const T*>(args[2]);
    auto* r = reinterpret_cast<T*>(args[3]);
    if (steps[2] == sizeof(T)) {
#pragma GCC ivdep
      for (std::intptr_t i = 0; i < n; ++i) r[i] = Op::f(a[i], b[i], c[i]);
      return;
    }
    if (steps[2] == 0) {
      T third = *c;
#pragma GCC ivdep
      for (std::intptr_t i = 0; i < n; ++i) r[i] = Op::f(a[i], b[i], third);
      return;
    }
  }
  char *a = args[0], *b = args[1], *c = args[2], *r = args[3];
  for (std::intptr_t i = 0; i < n; ++i, a += steps[0], b += steps[1], c += steps[2], r += steps[3])
    *reinterpret_cast<T*>(r) = Op::f(*reinterpret_cast<T*>(a), *reinterpret_cast<T*>(b), *reinterpret_cast<T*>(c));
}

using Adder = LoopAdder;

template <class Op, class... Ts>
void unary_loops(Adder add, const char* name) {
  (add(name, 1, {{dtype_of<Ts>}, dtype_of<Ts>, &unary<Op, Ts, Ts>, nullptr}), ...);
}
template <class Op, class... Ts>
void predicate_loops(Adder add, const char* name) {
  (add(name, 1, {{dtype_of<Ts>}, DType::Bool, &unary<Op, bool, Ts>, nullptr}), ...);
}
template <class Op, class... Ts>
void binary_loops(Adder add, const char* name) {
  (add(name, 2, {{dtype_of<Ts>, dtype_of<Ts>}, dtype_of<Ts>, &binary<Op, Ts, Ts, Ts>, nullptr}), ...);
}
template <class Op, class... Ts>
void ternary_loops(Adder add, const char* name) {
  (add(name, 3, {{dtype_of<Ts>, dtype_of<Ts>, dtype_of<Ts>}, dtype_of<Ts>, &ternary<Op, Ts>, nullptr}), ...);
}
template <class Op, class... Ts>
void compare_loops(Adder add, const char* name) {
  (add(name, 2, {{dtype_of<Ts>, dtype_of<Ts>}, DType::Bool, &binary<Op, bool, Ts, Ts>, nullptr}), ...);
}

#define RUSHLIGHT_INTS std::uint8_t, std::int8_t, std::int16_t, std::int32_t, std::int64_t
#define RUSHLIGHT_FLOATS float, double
#define RUSHLIGHT_REALS RUSHLIGHT_INTS, RUSHLIGHT_FLOATS
#define RUSHLIGHT_COMPLEX std::complex<float>, std::complex<double>

}  // namespace
}  // namespace rushlight::RUSHLIGHT_ISA
