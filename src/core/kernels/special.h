// Special functions of one number, in double precision: what the C library and the loops (loop_special_isa.cpp) lack.
#pragma once

namespace rushlight {

/// The logarithmic derivative of the gamma function; -infinity at 0, infinity at -0, NaN at the other poles.
double digamma(double x);
/// Hurwitz's zeta function, sum over k >= 0 of (q + k)^-s; for a negative q where s is whole.
double zeta(double s, double q);
/// The derivative of order n of digamma.
double polygamma(double x, double n);

/// The normal distribution's quantile in the lower tail, for p up to 1/4, and at the ends.
double normal_quantile(double p);

}  // namespace rushlight
