// Orthogonal polynomials of whole degree: n is truncated, and below zero the value is 0.
#pragma once

namespace rushlight {

/// Chebyshev's polynomials of the first to the fourth kind.
double chebyshev_t(double x, double n);
double chebyshev_u(double x, double n);
double chebyshev_v(double x, double n);
double chebyshev_w(double x, double n);
/// The same of 2 x - 1.
double shifted_chebyshev_t(double x, double n);
double shifted_chebyshev_u(double x, double n);
double shifted_chebyshev_v(double x, double n);
double shifted_chebyshev_w(double x, double n);
/// Hermite's, those of physics and of probability.
double hermite_h(double x, double n);
double hermite_he(double x, double n);
double laguerre_l(double x, double n);
double legendre_p(double x, double n);

}  // namespace rushlight
