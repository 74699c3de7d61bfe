// The strided loops of zeta and of orthogonal polynomials, computed in double precision.
#include "kernels/loop.h"
#include "kernels/polynomial.h"
#include "kernels/special.h"

namespace rushlight {
namespace {

template <double (*f)(double, double), class T>
void binary(char** args, const std::intptr_t* dims, const std::intptr_t* steps, void*) {
  char *a = args[0], *b = args[1], *r = args[2];
  for (std::intptr_t i = 0; i < dims[0]; ++i, a += steps[0], b += steps[1], r += steps[2])
    *reinterpret_cast<T*>(r) = T(f(double(*reinterpret_cast<T*>(a)), double(*reinterpret_cast<T*>(b))));
}

template <double (*f)(double, double)>
void add_binary(const char* name) {
  add_loop(name, 2, {{DType::Float32, DType::Float32}, DType::Float32, &binary<f, float>, nullptr});
  add_loop(name, 2, {{DType::Float64, DType::Float64}, DType::Float64, &binary<f, double>, nullptr});
}

}  // namespace

void register_binary_special_loops() {
  add_binary<&zeta>("zeta");
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
