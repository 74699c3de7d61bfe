// The strided loops of special functions, compiled once per instruction set; products and sums are fused where the
// processor can (CMake). float32 is computed in double where nothing else is said.
#include <cmath>

#include "kernels/error_function.h"
#include "kernels/gamma_function.h"
#include "kernels/loop_form.h"
#include "kernels/loop_rows.h"
#include "kernels/modified_bessel.h"
#include "kernels/special.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

/// A function that serves all numbers.
template <double (*f)(double)>
struct Everywhere {
  template <class T>
  static T fast(T a) {
    return T(f(double(a)));
  }
  template <class T>
  static bool rare(T) {
    return false;
  }
  template <class T>
  static T exact(T a) {
    return fast(a);
  }
};

struct Erf {
  template <class T>
  static T f(T a) {
    return error_function(a);
  }
};
struct Erfc {
  template <class T>
  static T f(T a) {
    return complementary_error_function(a);
  }
};
struct Erfinv {
  template <class T>
  static T f(T a) {
    return inverse_error_function(a);
  }
};

struct Ndtri {
  template <class T>
  static bool rare(T p) {
    return !(p >= T(least_quantile) && p < T(1));
  }
  template <class T>
  static T fast(T p) {
    return T(normal_quantile_of(double(p)));
  }
  template <class T>
  static T exact(T p) {
    return T(normal_quantile(double(p)));
  }
};

struct PositiveFinite {
  template <class T>
  static bool rare(T a) {
    return !(a > T(0) && a < std::numeric_limits<T>::infinity());
  }
};
struct Lgamma : PositiveFinite {
  template <class T>
  static T fast(T a) {
    return T(log_gamma(double(a)));
  }
  static float exact(float a) {
    int sign;
    return ::lgammaf_r(a, &sign);
  }
  static double exact(double a) {
    int sign;
    return ::lgamma_r(a, &sign);
  }
};
struct Digamma : PositiveFinite {
  template <class T>
  static T fast(T a) {
    return T(digamma_of(double(a)));
  }
  template <class T>
  static T exact(T a) {
    return T(digamma(double(a)));
  }
};
/// polygamma(n, x), with the order as the second operand; the first derivative of digamma is the frequent one.
struct Polygamma {
  template <class T>
  static bool rare(T x, T n) {
    return (n != T(1)) | PositiveFinite::rare(x);
  }
  template <class T>
  static T fast(T x, T) {
    return T(trigamma_of(double(x)));
  }
  template <class T>
  static T exact(T x, T n) {
    return T(polygamma(double(x), double(n)));
  }
};

template <double (*f)(double)>
void everywhere(Adder add, const char* name) {
  unary_row_loops<Everywhere<f>, RUSHLIGHT_FLOATS>(add, name);
}

}  // namespace

void add_special_loops(Adder add) {
  unary_loops<Erf, RUSHLIGHT_FLOATS>(add, "erf");
  unary_loops<Erfinv, RUSHLIGHT_FLOATS>(add, "erfinv");
  unary_loops<Erfc, RUSHLIGHT_FLOATS>(add, "erfc");
  everywhere<&scaled_complementary_error_function>(add, "erfcx");
  everywhere<&log_normal_distribution>(add, "log_ndtr");
  unary_row_loops<Ndtri, RUSHLIGHT_FLOATS>(add, "ndtri");
  unary_row_loops<Lgamma, RUSHLIGHT_FLOATS>(add, "lgamma");
  unary_row_loops<Digamma, RUSHLIGHT_FLOATS>(add, "digamma");
  binary_row_loops<Polygamma, RUSHLIGHT_FLOATS>(add, "polygamma_of");
  everywhere<&modified_bessel<0>>(add, "i0");
  everywhere<&modified_bessel<1>>(add, "i1");
  everywhere<&scaled_modified_bessel<0>>(add, "i0e");
  everywhere<&scaled_modified_bessel<1>>(add, "i1e");
}

}  // namespace rushlight::RUSHLIGHT_ISA
