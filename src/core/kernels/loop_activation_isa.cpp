// The strided loops of activations, compiled once per instruction set; products and sums are fused where the processor
// can (CMake). One pass each: as expressions of operators they would be up to six.
#include <cmath>

#include "kernels/error_function.h"
#include "kernels/loop_form.h"
#include "kernels/loop_rows.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

struct Silu {
  template <class T>
  static T f(T x) {
    return x * logistic(x);
  }
};
/// x tanh(log(1 + e^x)) = x n / (n + 2) with n = e^x (e^x + 2); from 40 on the factor is 1.
struct Mish {
  template <class T>
  static T f(T x) {
    T e = exponential(x > T(40) ? T(40) : x), n = e * (e + T(2));
    return x * (n / (n + T(2)));
  }
};
/// x times the normal distribution function, which is e^(-x^2 / 2) h(|x|) below zero, with h(x) = e^(x^2 / 2)
/// erfc(x / sqrt 2) / 2. In float, h is a rational function fitted by weighted least squares on [0, 14]; from 13 on
/// the tail is taken to vanish; relative error below 6e-9 before rounding.
struct Gelu {
  static float f(float x) {
    float magnitude = x < 0.0f ? -x : x, a = magnitude > 13.0f ? 13.0f : magnitude;
    float h = horner(a, 0.00407751714f, 0.0403721839f, 0.182461131f, 0.437250586f, 0.500000003f) /
              horner(a, 0.010220691f, 0.101204866f, 0.467427138f, 1.19928882f, 1.67238613f, 1.0f);
    float tail = a * normal_exponential(-0.5f * a * a) * h;
    float below = magnitude > 13.0f ? x * 0.0f : -tail;  // NaN of -infinity, as PyTorch's
    return x < 0.0f ? below : x - tail;
  }
  static double f(double x) { return 0.5 * x * complementary_error_function(x * -0.70710678118654752440); }
};

/// x + 3 between 0 and 6
template <class T>
T hard_step(T x) {
  T y = x + T(3);
  y = y < T(0) ? T(0) : y;
  return y > T(6) ? T(6) : y;
}
struct Hardsigmoid {
  template <class T>
  static T f(T x) {
    return hard_step(x) / T(6);
  }
};
struct Hardswish {
  template <class T>
  static T f(T x) {
    return x * hard_step(x) / T(6);
  }
};
struct Hardshrink {
  template <class T>
  static T f(T x, T bound) {
    return (x >= -bound) & (x <= bound) ? T(0) : x;
  }
};
struct Softshrink {
  template <class T>
  static T f(T x, T bound) {
    T inside = x < -bound ? x + bound : x * T(0);  // keeps NaN
    return x > bound ? x - bound : inside;
  }
};
struct LeakyRelu {
  template <class T>
  static T f(T x, T slope) {
    return x > T(0) ? x : x * slope;
  }
};

}  // namespace

void add_activation_loops(Adder simple, Adder add) {
  unary_loops<Silu, RUSHLIGHT_FLOATS>(add, "silu");
  unary_loops<Mish, RUSHLIGHT_FLOATS>(add, "mish");
  unary_loops<Gelu, RUSHLIGHT_FLOATS>(add, "gelu");
  unary_loops<Hardsigmoid, RUSHLIGHT_FLOATS>(simple, "hardsigmoid");
  unary_loops<Hardswish, RUSHLIGHT_FLOATS>(simple, "hardswish");
  binary_loops<Hardshrink, RUSHLIGHT_FLOATS>(simple, "hardshrink");
  binary_loops<Softshrink, RUSHLIGHT_FLOATS>(simple, "softshrink");
  binary_loops<LeakyRelu, RUSHLIGHT_FLOATS>(simple, "leaky_relu");
}

}  // namespace rushlight::RUSHLIGHT_ISA
