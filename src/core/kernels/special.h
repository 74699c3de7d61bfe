// Special functions of one number, in double precision: what the C library lacks.
#pragma once

namespace rushlight {

/// The logarithmic derivative of the gamma function; -infinity at 0, infinity at -0, NaN at the other poles.
double digamma(double x);
/// Hurwitz's zeta function, sum over k >= 0 of (q + k)^-s; for a negative q where s is whole.
double zeta(double s, double q);
/// The derivative of order n of digamma.
double polygamma(double x, double n);

/// erf(y) = x, solved for y.
double inverse_erf(double x);
/// exp(x^2) erfc(x), which neither overflows nor vanishes where x is large.
double scaled_erfc(double x);
/// The logarithm of the normal distribution function.
double log_normal_cdf(double x);
/// The normal distribution's quantile.
double normal_quantile(double p);

/// The modified Bessel functions I0 and I1, and the same times exp(-|x|).
double bessel_i0(double x);
double bessel_i1(double x);
double scaled_bessel_i0(double x);
double scaled_bessel_i1(double x);

}  // namespace rushlight
