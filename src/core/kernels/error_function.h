// erf x in float without branches, for loops that the compiler makes vectors of; included by sources compiled once per
// instruction set. Within 2 ulp.
#pragma once

#include "kernels/exponential.h"

namespace rushlight::RUSHLIGHT_ISA {
namespace {

// Both polynomials interpolate at Chebyshev's nodes: erf x = x + x p(x^2) up to 0.9, and 1 - e^-q(|x|) up to 4, from
// where on the result is 1.

inline float error_function(float x) {
  float z = x * x, p = 8.52940132284e-5f;
  p = p * z - 0.000817963218089f;
  p = p * z + 0.00520422669375f;
  p = p * z - 0.0268606647911f;
  p = p * z + 0.112837180496f;
  p = p * z - 0.37612635194f;
  p = p * z + 0.128379166789f;
  float small = p * x + x;
  float magnitude = x < 0 ? -x : x, a = magnitude > 4.0f ? 4.0f : magnitude, q = -1.64306365569e-6f;
  q = q * a + 4.61638586252e-5f;
  q = q * a - 0.00059758577023f;
  q = q * a + 0.00476262583251f;
  q = q * a - 0.0264276371535f;
  q = q * a + 0.110087166496f;
  q = q * a + 0.631823918106f;
  q = q * a + 1.13023105522f;
  q = q * a - 0.000318539662412f;
  float large = 1.0f - exponential(-q);
  return x != x ? x : magnitude < 0.9f ? small : x < 0 ? -large : large;
}

}  // namespace
}  // namespace rushlight::RUSHLIGHT_ISA
