// The strided loops of complex numbers, compiled once per instruction set.
#include <cmath>

#include "kernels/log_add_exp.h"
#include "kernels/loop_form.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

template <class R>
using Complex = std::complex<R>;

struct Add {
  template <class R>
  static Complex<R> f(Complex<R> a, Complex<R> b) {
    return {a.real() + b.real(), a.imag() + b.imag()};
  }
};
struct Sub {
  template <class R>
  static Complex<R> f(Complex<R> a, Complex<R> b) {
    return {a.real() - b.real(), a.imag() - b.imag()};
  }
};
struct Mul {  // std::complex's looks for infinities; PyTorch's does not
  template <class R>
  static Complex<R> f(Complex<R> a, Complex<R> b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
};
struct Div {  // R. L. Smith, Algorithm 116: without overflow of the divisor's square
  template <class R>
  static Complex<R> f(Complex<R> a, Complex<R> b) {
    R c = b.real(), d = b.imag();
    if (std::fabs(c) >= std::fabs(d)) {
      if (c == 0 && d == 0) return {a.real() / std::fabs(c), a.imag() / std::fabs(c)};
      R ratio = d / c, scale = R(1) / (c + d * ratio);
      return {(a.real() + a.imag() * ratio) * scale, (a.imag() - a.real() * ratio) * scale};
    }
    R ratio = c / d, scale = R(1) / (d + c * ratio);
    return {(a.real() * ratio + a.imag()) * scale, (a.imag() * ratio - a.real()) * scale};
  }
};
struct Neg {
  template <class R>
  static Complex<R> f(Complex<R> a) {
    return {-a.real(), -a.imag()};
  }
};
struct Conjugate {
  template <class R>
  static Complex<R> f(Complex<R> a) {
    return {a.real(), -a.imag()};
  }
};
struct Square {
  template <class R>
  static Complex<R> f(Complex<R> a) {
    return Mul::f(a, a);
  }
};
struct Reciprocal {
  template <class R>
  static Complex<R> f(Complex<R> a) {
    return Div::f(Complex<R>(1), a);
  }
};
struct Sigmoid {
  template <class R>
  static Complex<R> f(Complex<R> a) {
    return Div::f(Complex<R>(1), R(1) + std::exp(-a));
  }
};
struct Silu {
  template <class R>
  static Complex<R> f(Complex<R> a) {
    return Mul::f(a, Sigmoid::f(a));
  }
};
struct Sqrt {
  template <class R>
  static Complex<R> f(Complex<R> a) {
    return std::sqrt(a);
  }
};
struct Rsqrt {
  template <class R>
  static Complex<R> f(Complex<R> a) {
    return Div::f(Complex<R>(1), Complex<R>(std::sqrt(a)));
  }
};
struct Power {
  template <class R>
  static Complex<R> f(Complex<R> a, Complex<R> b) {
    return std::pow(a, b);
  }
};
struct LogAddExp {
  template <class R>
  static Complex<R> f(Complex<R> a, Complex<R> b) {
    return log_add_exp(a, b);
  }
};
struct Sgn {
  template <class R>
  static Complex<R> f(Complex<R> a) {
    R size;
    if constexpr (std::is_same_v<R, float>)  // the square of a float fits a double
      size = float(std::sqrt(double(a.real()) * a.real() + double(a.imag()) * a.imag()));
    else
      size = std::abs(a);
    return size == 0 ? Complex<R>(0) : Complex<R>(a.real() / size, a.imag() / size);
  }
};
struct Abs {
  template <class R>
  static R f(Complex<R> a) {
    return std::abs(a);
  }
};
struct Angle {
  template <class R>
  static R f(Complex<R> a) {
    return std::atan2(a.imag(), a.real());
  }
};
/// The real part as a complex number: what of a cotangent reaches a real number inside of a complex program.
struct RealPart {
  template <class R>
  static Complex<R> f(Complex<R> a) {
    return {a.real(), R(0)};
  }
};
struct IsInf {
  template <class R>
  static bool f(Complex<R> a) {
    return std::isinf(a.real()) || std::isinf(a.imag());
  }
};
struct IsFinite {
  template <class R>
  static bool f(Complex<R> a) {
    return std::isfinite(a.real()) && std::isfinite(a.imag());
  }
};
struct IsReal {
  template <class R>
  static bool f(Complex<R> a) {
    return a.imag() == 0;
  }
};
struct NotNegative {
  template <class R>
  static bool f(Complex<R> a) {
    return a.imag() == 0 && a.real() >= 0;
  }
};

/// Loops from complex numbers to real ones.
template <class Op, class... Rs>
void size_loops(Adder add, const char* name) {
  (add(name, 1, {{dtype_of<Complex<Rs>>}, dtype_of<Rs>, &unary<Op, Rs, Complex<Rs>>, nullptr}), ...);
}

}  // namespace

void add_complex_loops(Adder add) {
  binary_loops<Add, RUSHLIGHT_COMPLEX>(add, "add");
  binary_loops<Sub, RUSHLIGHT_COMPLEX>(add, "sub");
  binary_loops<Mul, RUSHLIGHT_COMPLEX>(add, "mul");
  binary_loops<Div, RUSHLIGHT_COMPLEX>(add, "true_divide");
  binary_loops<Power, RUSHLIGHT_COMPLEX>(add, "power");
  binary_loops<LogAddExp, RUSHLIGHT_COMPLEX>(add, "logaddexp");
  unary_loops<Neg, RUSHLIGHT_COMPLEX>(add, "neg");
  unary_loops<Conjugate, RUSHLIGHT_COMPLEX>(add, "conj");
  unary_loops<RealPart, RUSHLIGHT_COMPLEX>(add, "real_part");
  unary_loops<Square, RUSHLIGHT_COMPLEX>(add, "square");
  unary_loops<Reciprocal, RUSHLIGHT_COMPLEX>(add, "reciprocal");
  unary_loops<Sqrt, RUSHLIGHT_COMPLEX>(add, "sqrt");
  unary_loops<Sigmoid, RUSHLIGHT_COMPLEX>(add, "sigmoid");
  unary_loops<Silu, RUSHLIGHT_COMPLEX>(add, "silu");
  unary_loops<Rsqrt, RUSHLIGHT_COMPLEX>(add, "rsqrt");
  unary_loops<Sgn, RUSHLIGHT_COMPLEX>(add, "sgn");
  size_loops<Abs, RUSHLIGHT_FLOATS>(add, "abs");
  size_loops<Angle, RUSHLIGHT_FLOATS>(add, "angle");
  predicate_loops<IsInf, RUSHLIGHT_COMPLEX>(add, "isinf");
  predicate_loops<IsFinite, RUSHLIGHT_COMPLEX>(add, "isfinite");
  predicate_loops<IsReal, RUSHLIGHT_COMPLEX>(add, "is_real");
  predicate_loops<NotNegative, RUSHLIGHT_COMPLEX>(add, "not_negative");
}

}  // namespace rushlight::RUSHLIGHT_ISA
