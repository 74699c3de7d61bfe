// Polynomials with constant coefficients, for loops that the compiler makes vectors of.
#pragma once

namespace rushlight::RUSHLIGHT_ISA {
namespace {

/// first z^n + ... + last, n being the number of the rest.
template <class T, class... Rest>
inline T horner(T z, T first, Rest... rest) {
  T p = first;
  ((p = p * z + T(rest)), ...);
  return p;
}

}  // namespace
}  // namespace rushlight::RUSHLIGHT_ISA
