// The order of numbers when they are sorted, in which NaN is greater than everything and equal to itself.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "tensor/dtype.h"

namespace rushlight {

template <class T>
inline constexpr bool has_nan = std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x != x;
  else if constexpr (has_nan<T>)
    return float(x) != float(x);
  else
    return false;
}

/// x < y, NaN last.
template <class T>
bool ascends(T x, T y) {
  if constexpr (has_nan<T>) return x < y || (is_nan(y) && !is_nan(x));
  return x < y;
}

/// x > y, NaN first.
template <class T>
bool descends(T x, T y) {
  return ascends(y, x);
}

template <std::size_t bytes>
struct word_of_size;
template <>
struct word_of_size<1> {
  using type = std::uint8_t;
};
template <>
struct word_of_size<2> {
  using type = std::uint16_t;
};
template <>
struct word_of_size<4> {
  using type = std::uint32_t;
};
template <>
struct word_of_size<8> {
  using type = std::uint64_t;
};

/// The unsigned integer as wide as T.
template <class T>
using OrderKey = typename word_of_size<sizeof(T)>::type;

/// An unsigned number that is smaller for x than for y exactly if ascends(x, y): both zeros have one, all NaNs have the
/// greatest.
template <class T>
OrderKey<T> order_key(T x) {
  using Word = OrderKey<T>;
  constexpr Word sign = Word(Word(1) << (8 * sizeof(T) - 1));
  if constexpr (has_nan<T>) {
    if (is_nan(x)) return Word(~Word(0));
    const auto word = std::bit_cast<Word>(x);
    if (Word(word << 1) == 0) return sign;
    return (word & sign) ? Word(~word) : Word(word | sign);
  } else if constexpr (std::is_same_v<T, bool> || std::is_unsigned_v<T>) {
    return Word(x);
  } else {
    return Word(Word(x) ^ sign);
  }
}

}  // namespace rushlight
