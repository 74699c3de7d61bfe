// Strided loops of two sums or products in one (pair.h), compiled once per instruction set. Each operand is an array
// or, with step 0, one number.
#include "kernels/loop.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

struct MulMul {
  template <class T>
  static T f(T a, T b, T c) {
    return a * b * c;
  }
};
struct AddMul {
  template <class T>
  static T f(T a, T b, T c) {
    return (a + b) * c;
  }
};
struct SubMul {
  template <class T>
  static T f(T a, T b, T c) {
    return (a - b) * c;
  }
};
struct MulAdd {
  template <class T>
  static T f(T a, T b, T c) {
    return a * b + c;
  }
};
struct MulSub {
  template <class T>
  static T f(T a, T b, T c) {
    return a * b - c;
  }
};
struct SubOfMul {
  template <class T>
  static T f(T a, T b, T c) {
    return c - a * b;
  }
};
struct AddAdd {
  template <class T>
  static T f(T a, T b, T c) {
    return a + b + c;
  }
};

/// `ones`: which operands are one number, a bit each. The result may be written over an operand.
template <class Op, class T, int ones>
void packed(const T* a, const T* b, const T* c, T* r, std::intptr_t n) {
  T x = n && (ones & 1) ? *a : T(), y = n && (ones & 2) ? *b : T(), z = n && (ones & 4) ? *c : T();
#pragma GCC ivdep
  for (std::intptr_t i = 0; i < n; ++i) r[i] = Op::f(ones & 1 ? x : a[i], ones & 2 ? y : b[i], ones & 4 ? z : c[i]);
}

template <class Op, class T>
void pair_loop(char** args, const std::intptr_t* dims, const std::intptr_t* steps, void*) {
  using Packed = void (*)(const T*, const T*, const T*, T*, std::intptr_t);
  static constexpr Packed loops[] = {&packed<Op, T, 0>, &packed<Op, T, 1>, &packed<Op, T, 2>, &packed<Op, T, 3>,
                                     &packed<Op, T, 4>, &packed<Op, T, 5>, &packed<Op, T, 6>, &packed<Op, T, 7>};
  int ones = 0;
  bool whole = steps[3] == sizeof(T);
  for (int k = 0; k < 3; ++k) {
    ones |= int(steps[k] == 0) << k;
    whole = whole && (steps[k] == 0 || steps[k] == sizeof(T));
  }
  if (whole)
    return loops[ones](reinterpret_cast<const T*>(args[0]), reinterpret_cast<const T*>(args[1]),
                       reinterpret_cast<const T*>(args[2]), reinterpret_cast<T*>(args[3]), dims[0]);
  for (std::intptr_t i = 0; i < dims[0]; ++i) {
    auto at = [&](int k) -> T& { return *reinterpret_cast<T*>(args[k] + i * steps[k]); };
    at(3) = Op::f(at(0), at(1), at(2));
  }
}

template <class Op>
void add_pair(LoopAdder add, const char* name) {
  add(name, 3, {{DType::Float32, DType::Float32, DType::Float32}, DType::Float32, &pair_loop<Op, float>, nullptr});
  add(name, 3, {{DType::Float64, DType::Float64, DType::Float64}, DType::Float64, &pair_loop<Op, double>, nullptr});
}

}  // namespace

void add_pair_loops(LoopAdder add) {
  add_pair<MulMul>(add, "mul_mul");
  add_pair<AddMul>(add, "add_mul");
  add_pair<SubMul>(add, "sub_mul");
  add_pair<MulAdd>(add, "mul_add");
  add_pair<MulSub>(add, "mul_sub");
  add_pair<SubOfMul>(add, "sub_of_mul");
  add_pair<AddAdd>(add, "add_add");
}

}  // namespace rushlight::RUSHLIGHT_ISA
