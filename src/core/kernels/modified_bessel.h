// The modified Bessel functions I0 and I1 in double without branches, for loops that the compiler makes vectors of;
// included by sources compiled once per instruction set. Within 4 ulp.
#pragma once

#include <cmath>

#include "kernels/exponential.h"
#include "kernels/horner.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

// Up to 8, polynomials in x^2 for I0(x) and I1(x) / x, whose coefficients have one sign; beyond,
// sqrt(x) e^-x I(x) is a polynomial in 1 / x - 1 / 16. All interpolate at Chebyshev's nodes.

constexpr double bessel_border = 8.0;

/// I(|x|) for |x| <= bessel_border, and sqrt(|x|) e^-|x| I(|x|) above.
template <int order>
inline double bessel_part(double a) {
  bool near = a <= bessel_border;
  double z = near ? a * a : 0.0, v = 1.0 / (near ? bessel_border : a) - 0.0625;
  if constexpr (order == 0) {
    double small =
        horner(z, 8.4876983456028244e-37, 4.6013577678637316e-34, 5.0327117729737235e-31, 3.829411247002327e-28,
               2.5987841051325663e-25, 1.4962822964042478e-22, 7.2422790053171815e-20, 2.8969027888104147e-17,
               9.3859671221583064e-15, 2.4028075474081917e-12, 4.7095027973121109e-10, 6.781684027758202e-08,
               6.7816840277788116e-06, 0.00043402777777777445, 0.015625000000000007, 0.25, 1.0);
    double large =
        horner(v, 33678142630566788.0, 681896256503434.38, -903532373518784.5, -20764144459290.18, 11325144934060.879,
               322435133186.99896, -89434443965.431488, -3595402500.051177, 489255960.52653772, 32981259.497817814,
               -1453119.6003056539, -234324.37490496508, -7483.2542310168546, 517.62165318774169, 92.585798723064556,
               10.557369375253966, 1.4885005442743167, 0.31180410408432468, 0.097245435416392342, 0.045641866455382762,
               0.034871315044319215, 0.053768831738683576, 0.4021765094450081);
    return near ? small : large;
  } else {
    double small =
        a * horner(z, 2.4334892279361836e-38, 1.4710564886031101e-35, 1.6696390898900487e-32, 1.3687885297024527e-29,
                   9.9942216895029591e-27, 6.2345848315302372e-24, 3.2919412579335861e-21, 1.44845153192735e-18,
                   5.2144261415935764e-16, 1.5017547178772907e-13, 3.3639305694006162e-11, 5.6514033564761591e-09,
                   6.7816840277780586e-07, 5.4253472222222131e-05, 0.002604166666666667, 0.0625, 0.5);
    double large = horner(v, -35061211697476260.0, -632077794743207.38, 941834474944389.12, 19510320690292.805,
                          -11835271573241.229, -309200717021.36591, 93968015022.446274, 3541474601.1288962,
                          -520437715.21618438, -33473163.367933355, 1610790.523762753, 245457.17660523331,
                          7471.2623140534779, -577.74710116431618, -100.42789465617862, -11.578242812796129,
                          -1.6779263892080487, -0.36530847181659992, -0.12025267185034541, -0.061597889377379249,
                          -0.056124355541460225, -0.15599323509176974, 0.38939845902587233);
    return near ? small : large;
  }
}

/// I(x); NaN at infinity, as PyTorch and SciPy have it.
template <int order>
inline double modified_bessel(double x) {
  double a = std::fabs(x), part = bessel_part<order>(a), half = exponential(0.5 * a);
  double value = a <= bessel_border ? part : part / std::sqrt(a) * half * half;
  value = a > 1e300 ? std::numeric_limits<double>::quiet_NaN() : value;
  return order && x < 0.0 ? -value : value;
}
/// e^-|x| I(x)
template <int order>
inline double scaled_modified_bessel(double x) {
  double a = std::fabs(x), part = bessel_part<order>(a);
  double value = a <= bessel_border ? part * exponential(-a) : part / std::sqrt(a);
  return order && x < 0.0 ? -value : value;
}

}  // namespace
}  // namespace rushlight::RUSHLIGHT_ISA
