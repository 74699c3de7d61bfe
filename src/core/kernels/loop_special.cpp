// The strided loops of special functions: float32 is computed in double precision.
#include "kernels/loop.h"
#include "kernels/polynomial.h"
#include "kernels/special.h"

namespace rushlight {
namespace {

template <double (*f)(double), class T>
void unary(char** args, const std::intptr_t* dims, const std::intptr_t* steps, void*) {
  char *a = args[0], *r = args[1];
  for (std::intptr_t i = 0; i < dims[0]; ++i, a += steps[0], r += steps[1])
    *reinterpret_cast<T*>(r) = T(f(double(*reinterpret_cast<T*>(a))));
}

template <double (*f)(double, double), class T>
void binary(char** args, const std::intptr_t* dims, const std::intptr_t* steps, void*) {
  char *a = args[0], *b = args[1], *r = args[2];
  for (std::intptr_t i = 0; i < dims[0]; ++i, a += steps[0], b += steps[1], r += steps[2])
    *reinterpret_cast<T*>(r) = T(f(double(*reinterpret_cast<T*>(a)), double(*reinterpret_cast<T*>(b))));
}

template <double (*f)(double)>
void add_unary(const char* name) {
  add_loop(name, 1, {{DType::Float32}, DType::Float32, &unary<f, float>, nullptr});
  add_loop(name, 1, {{DType::Float64}, DType::Float64, &unary<f, double>, nullptr});
}

template <double (*f)(double, double)>
void add_binary(const char* name) {
  add_loop(name, 2, {{DType::Float32, DType::Float32}, DType::Float32, &binary<f, float>, nullptr});
  add_loop(name, 2, {{DType::Float64, DType::Float64}, DType::Float64, &binary<f, double>, nullptr});
}

}  // namespace

void register_special_loops() {
  add_unary<&digamma>("digamma");
  add_unary<&inverse_erf>("erfinv");
  add_unary<&scaled_erfc>("erfcx");
  add_unary<&log_normal_cdf>("log_ndtr");
  add_unary<&normal_quantile>("ndtri");
  add_unary<&bessel_i0>("i0");
  add_unary<&bessel_i1>("i1");
  add_unary<&scaled_bessel_i0>("i0e");
  add_unary<&scaled_bessel_i1>("i1e");
  add_binary<&zeta>("zeta");
  add_binary<&polygamma>("polygamma_of");
  add_binary<&chebyshev_t>("chebyshev_polynomial_t");
  add_binary<&chebyshev_u>("chebyshev_polynomial_u");
  add_binary<&chebyshev_v>("chebyshev_polynomial_v");
  add_binary<&chebyshev_w>("chebyshev_polynomial_w");
  add_binary<&shifted_chebyshev_t>("shifted_chebyshev_polynomial_t");
  add_binary<&shifted_chebyshev_u>("shifted_chebyshev_polynomial_u");
  add_binary<&shifted_chebyshev_v>("shifted_chebyshev_polynomial_v");
  add_binary<&shifted_chebyshev_w>("shifted_chebyshev_polynomial_w");
  add_binary<&hermite_h>("hermite_polynomial_h");
  add_binary<&hermite_he>("hermite_polynomial_he");
  add_binary<&laguerre_l>("laguerre_polynomial_l");
  add_binary<&legendre_p>("legendre_polynomial_p");
}

}  // namespace rushlight
