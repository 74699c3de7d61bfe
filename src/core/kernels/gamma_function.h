// log |gamma x| and its first two derivatives in double without branches, for loops that the compiler makes vectors of;
// included by sources compiled once per instruction set. For positive, finite x: below, functions have poles.
#pragma once

#include <cmath>

#include "kernels/logarithm.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

/// From 3/4 to 9/4 it is (x - 1) (x - 2) p(x - 3/2), p interpolating at Chebyshev's nodes; next to that it is led there
/// by the recurrence gamma(x + 1) = x gamma(x), and from 8 on Stirling's series serves. Within 4 ulp.
inline double log_gamma(double x) {
  bool below = x < 0.75, beyond = x >= 8.0;
  double base = below ? x + 1.0 : beyond ? 2.0 : x, product = 1.0;
  for (int step = 0; step < 6; ++step) {
    bool above = base >= 2.25;
    base = above ? base - 1.0 : base;
    product = above ? product * base : product;
  }
  double p = horner(base - 1.5, 1.2731097772961102e-06, -1.9673320709041737e-06, -2.1489649783126935e-06,
                    3.3117596977261406e-06, 4.383964683448757e-06, -6.7841327340120528e-06, 2.4230183729916525e-07,
                    -4.3323205742662198e-07, 8.0746674914053449e-06, -1.2646931019983769e-05, 1.6253244127562165e-05,
                    -2.5666846756245553e-05, 4.1898451670478922e-05, -6.6500982936516106e-05, 0.00010560180634285953,
                    -0.00016886064347874108, 0.000271279805620913, -0.00043799929510449743, 0.00071152203495335924,
                    -0.0011644141299556872, 0.0019229161518121024, -0.0032120740949569578, 0.0054464578442147962,
                    -0.0094256224479522012, 0.016797098631191436, -0.031308487501018029, 0.062911401074564915,
                    -0.14595989591430605, 0.48312895054098087);
  double near = (base - 1.0) * (base - 2.0) * p;
  double log = logarithm(below || beyond ? x : product), inverse = 1.0 / (beyond ? x : 8.0), z = inverse * inverse;
  double series = inverse * horner(z, -3617.0 / 122400.0, 1.0 / 156.0, -691.0 / 360360.0, 1.0 / 1188.0, -1.0 / 1680.0,
                                   1.0 / 1260.0, -1.0 / 360.0, 1.0 / 12.0);
  double stirling = (x - 0.5) * (log - 1.0) + (0.41893853320467274178 + series);
  return beyond ? stirling : below ? near - log : near + log;
}

/// The derivative of log_gamma: the recurrence to x >= 10, whose terms are joined as one fraction, then the asymptotic
/// series. Absolute error below 1e-15 times the largest of its terms.
inline double digamma_of(double x) {
  double top = 0.0, bottom = 1.0;
  for (int step = 0; step < 10; ++step) {
    bool low = x < 10.0;
    top = low ? top * x + bottom : top;
    bottom = low ? bottom * x : bottom;
    x = low ? x + 1.0 : x;
  }
  double s = 1.0 / (x * x);
  double tail = s * horner(s, -3617.0 / 8160.0, 1.0 / 12.0, -691.0 / 32760.0, 1.0 / 132.0, -1.0 / 240.0, 1.0 / 252.0,
                           -1.0 / 120.0, 1.0 / 12.0);
  return ((logarithm(x) - 0.5 / x) - tail) - top / bottom;
}

/// The derivative of digamma, in the same way.
inline double trigamma_of(double x) {
  double sum = 0.0;
  for (int step = 0; step < 10; ++step) {
    bool low = x < 10.0;
    sum += low ? 1.0 / (x * x) : 0.0;
    x = low ? x + 1.0 : x;
  }
  double s = 1.0 / (x * x);
  double tail = horner(s, 43867.0 / 798.0, -3617.0 / 510.0, 7.0 / 6.0, -691.0 / 2730.0, 5.0 / 66.0, -1.0 / 30.0,
                       1.0 / 42.0, -1.0 / 30.0, 1.0 / 6.0);
  return ((1.0 + 0.5 / x) / x + s / x * tail) + sum;
}

}  // namespace
}  // namespace rushlight::RUSHLIGHT_ISA
