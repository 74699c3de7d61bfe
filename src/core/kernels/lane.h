// Reductions over elements in a number of lanes that the code fixes: the same order of sums on every instruction set.
#pragma once

#include <cstdint>

namespace rushlight::RUSHLIGHT_ISA {
namespace {

/// Joins f(i), i < n, in lanes and then as a tree.
template <class T, int lanes = 32, class F, class Join>
T in_lanes(std::int64_t n, T identity, F&& f, Join&& join) {
  T acc[lanes];
  for (auto& a : acc) a = identity;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int l = 0; l < lanes; ++l) acc[l] = join(acc[l], f(i + l));
  for (int l = 0; i < n; ++i, ++l) acc[l] = join(acc[l], f(i));
  for (int width = lanes / 2; width; width /= 2)
    for (int l = 0; l < width; ++l) acc[l] = join(acc[l], acc[l + width]);
  return acc[0];
}

}  // namespace
}  // namespace rushlight::RUSHLIGHT_ISA
