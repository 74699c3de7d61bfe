#include "kernels/random.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/multiply_add.h"

namespace rushlight {

namespace {

constexpr std::int64_t block = 512;  // draws made at a time: 2 or 4 kB, within the first cache

template <class T>
constexpr bool is_half_type = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
constexpr bool is_floating_type = std::is_floating_point_v<T> || is_half_type<T>;

// Mantissa bits of the floating types, the implicit one included.
template <class T>
constexpr int digits = std::numeric_limits<T>::digits;
template <>
constexpr int digits<Half> = 11;
template <>
constexpr int digits<BFloat16> = 8;

// A number as T; to the half types through float, as in PyTorch.
template <class T, class V>
T convert(V value) {
  if constexpr (is_half_type<T>)
    return T(float(value));
  else
    return static_cast<T>(value);
}

// 1 or 0, without a branch: it would be mispredicted every other time.
template <class T>
T indicator(bool yes) {
  if constexpr (is_half_type<T>) {
    T out;
    out.bits = std::uint16_t(T(1.0f).bits & -int(yes));
    return out;
  } else {
    return static_cast<T>(int(yes));
  }
}

double to_uniform(std::uint64_t word) { return double(word & ((std::uint64_t(1) << 53) - 1)) * 0x1p-53; }
float to_uniform(std::uint32_t word) { return float(word & ((std::uint32_t(1) << 24) - 1)) * 0x1p-24f; }

// Calls body(words, begin, count) over blocks of draws of 32 or 64 bits.
template <class Word, class F>
[[gnu::always_inline]] inline void for_blocks(MersenneTwister& generator, std::int64_t n, F body) {
  std::array<Word, block> words;
  for (std::int64_t begin = 0; begin < n; begin += block) {
    const std::int64_t count = std::min(block, n - begin);
    if constexpr (sizeof(Word) == 4)
      generator.random_block(words.data(), count);
    else
      generator.random64_block(words.data(), count);
    body(words.data(), begin, count);
  }
}

// out[i] = f(word) over draws of 32 or 64 bits.
template <class Word, class T, class F>
[[gnu::always_inline]] inline void fill_from_words(MersenneTwister& generator, T* out, std::int64_t n, F f) {
  for_blocks<Word>(generator, n,
                   [=](const Word* words, std::int64_t begin, std::int64_t count) RUSHLIGHT_INLINE_LAMBDA {
                     for (std::int64_t i = 0; i < count; ++i) out[begin + i] = f(words[i]);
                   });
}

// out[i] = f(u) for uniform doubles u.
template <class T, class F>
[[gnu::always_inline]] inline void fill_from_uniform(MersenneTwister& generator, T* out, std::int64_t n, F f) {
  fill_from_words<std::uint64_t>(
      generator, out, n, [=](std::uint64_t word) RUSHLIGHT_INLINE_LAMBDA { return convert<T>(f(to_uniform(word))); });
}

}  // namespace

template <class T>
void fill_uniform(MersenneTwister& generator, T* out, std::int64_t n, double from, double to) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  using Word = std::conditional_t<std::is_same_v<T, double>, std::uint64_t, std::uint32_t>;
  const Real low = Real(from), width = Real(to) - low;
  const T first = convert<T>(low), bound = convert<T>(Real(to));
  with_pytorch_arithmetic([=, &generator](auto arithmetic) RUSHLIGHT_INLINE_LAMBDA {
    fill_from_words<Word>(generator, out, n, [=](Word word) RUSHLIGHT_INLINE_LAMBDA {
      const T value = convert<T>(arithmetic.multiply_add(to_uniform(word), width, low));
      return value == bound ? first : value;
    });
  });
}

template <class T>
void fill_random(MersenneTwister& generator, T* out, std::int64_t n) {
  if constexpr (std::is_same_v<T, bool>) {
    fill_from_words<std::uint32_t>(generator, out, n, [](std::uint32_t word) { return (word & 1) != 0; });
  } else if constexpr (std::is_same_v<T, double>) {
    constexpr std::uint64_t count = (std::uint64_t(1) << digits<T>)+1;
    fill_from_words<std::uint64_t>(generator, out, n, [](std::uint64_t word) { return T(word % count); });
  } else if constexpr (is_floating_type<T>) {
    constexpr std::uint32_t count = (std::uint32_t(1) << digits<T>)+1;
    fill_from_words<std::uint32_t>(generator, out, n, [](std::uint32_t word) { return convert<T>(word % count); });
  } else {
    // The count is a power of two: the modulo is a mask.
    using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    constexpr Word mask = Word(std::numeric_limits<T>::max());
    fill_from_words<Word>(generator, out, n, [](Word word) { return T(word & mask); });
  }
}

template <class T>
void fill_random_range(MersenneTwister& generator, T* out, std::int64_t n, std::int64_t from, std::uint64_t range) {
  // PyTorch takes 64 bits from 2^28 on, to keep the modulo's bias small.
  const auto base = std::uint64_t(from);
  auto shift = [base](std::uint64_t offset) RUSHLIGHT_INLINE_LAMBDA { return convert<T>(std::int64_t(base + offset)); };
  if (range == 0) {
    fill_from_words<std::uint64_t>(generator, out, n, [=](std::uint64_t word) { return shift(word); });
  } else if (range >= std::uint64_t(1) << 28) {
    fill_from_words<std::uint64_t>(generator, out, n, [=](std::uint64_t word) { return shift(word % range); });
  } else {
    const auto short_range = std::uint32_t(range);
    fill_from_words<std::uint32_t>(generator, out, n, [=](std::uint32_t word) { return shift(word % short_range); });
  }
}

namespace {

// The unit in the last place of `value` as a number of T.
template <class T>
std::int64_t last_place(std::int64_t value) {
  const auto magnitude = value < 0 ? -std::uint64_t(value) : std::uint64_t(value);
  const int exponent = std::bit_width(magnitude) - 1;
  return std::int64_t(1) << std::max(0, exponent - digits<T> + 1);
}

// `value` after a conversion to T and back. What has left the range of int64 becomes its least number, as on x86.
template <class T>
std::int64_t round_to(std::int64_t value) {
  const auto rounded = double(convert<T>(value));
  return rounded < 0x1p63 ? std::int64_t(rounded) : std::numeric_limits<std::int64_t>::min();
}

}  // namespace

template <class T>
RandomBounds representable_bounds(std::int64_t from, std::int64_t to) {
  if constexpr (is_floating_type<T>) {
    const std::int64_t next = round_to<T>(from + 1), last = round_to<T>(to - 1);
    if (next < from) from = next + last_place<T>(from + 1);
    if (last >= to) to = last - last_place<T>(to - 1);
  }
  return {from, to};
}

template <class T>
void fill_permutation(MersenneTwister& generator, T* out, std::int64_t n) {
  if (n < std::int64_t(std::numeric_limits<std::uint32_t>::max() / 20)) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = convert<T>(i);
    for (std::int64_t i = 0; i < n - 1; ++i) std::swap(out[i], out[i + generator.random() % std::uint32_t(n - i)]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      const auto other = std::int64_t(generator.random64() % std::uint64_t(i + 1));
      if (other != i) out[i] = out[other];
      out[other] = convert<T>(i);
    }
  }
}

double standard_normal(MersenneTwister& generator) {
  if (generator.next_double_normal) {
    const double waiting = *generator.next_double_normal;
    generator.next_double_normal.reset();
    return waiting;
  }
  const double turn = standard_uniform(generator), u = standard_uniform(generator);
  const double radius = std::sqrt(-2.0 * std::log1p(-u)), angle = 2.0 * std::numbers::pi * turn;
  generator.next_double_normal = radius * std::sin(angle);
  return radius * std::cos(angle);
}

template <class T>
void fill_normal_serial(MersenneTwister& generator, T* out, std::int64_t n, double mean, double std) {
  with_pytorch_arithmetic([=, &generator](auto arithmetic) RUSHLIGHT_INLINE_LAMBDA {
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = convert<T>(arithmetic.multiply_add(standard_normal(generator), std, mean));
  });
}

template <class T>
void fill_log_normal(MersenneTwister& generator, T* out, std::int64_t n, double mean, double std) {
  with_pytorch_arithmetic([=, &generator](auto arithmetic) RUSHLIGHT_INLINE_LAMBDA {
    for (std::int64_t i = 0; i < n; ++i)
      out[i] = convert<T>(std::exp(arithmetic.multiply_add(standard_normal(generator), std, mean)));
  });
}

template <class T>
void fill_bernoulli(MersenneTwister& generator, T* out, std::int64_t n, double p) {
  // u < p for u = word * 2^-53 is word < p * 2^53, an exact product; words are whole, so its ceiling serves as well.
  const auto threshold = std::uint64_t(std::ceil(p * 0x1p53));
  fill_from_words<std::uint64_t>(generator, out, n, [=](std::uint64_t word) {
    return indicator<T>((word & ((std::uint64_t(1) << 53) - 1)) < threshold);
  });
}

template <class T, class P>
void fill_bernoulli(MersenneTwister& generator, T* out, const P* p, std::int64_t n) {
  using Real = std::conditional_t<std::is_same_v<P, double>, double, float>;
  using Word = std::conditional_t<std::is_same_v<P, double>, std::uint64_t, std::uint32_t>;
  for_blocks<Word>(generator, n, [=](const Word* words, std::int64_t begin, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) out[begin + i] = indicator<T>(to_uniform(words[i]) < Real(p[begin + i]));
  });
}

template <class T>
void fill_exponential(MersenneTwister& generator, T* out, std::int64_t n, double rate) {
  fill_from_uniform(generator, out, n, [=](double u) { return -1.0 / rate * std::log1p(-u); });
}

template <class T>
void fill_geometric(MersenneTwister& generator, T* out, std::int64_t n, double p) {
  fill_from_uniform(generator, out, n, [=](double u) { return std::ceil(std::log(u) / std::log1p(-p)); });
}

template <class T>
void fill_cauchy(MersenneTwister& generator, T* out, std::int64_t n, double median, double sigma) {
  with_pytorch_arithmetic([=, &generator](auto arithmetic) RUSHLIGHT_INLINE_LAMBDA {
    fill_from_uniform(generator, out, n, [=](double u) RUSHLIGHT_INLINE_LAMBDA {
      return arithmetic.multiply_add(sigma, std::tan(std::numbers::pi * (u - 0.5)), median);
    });
  });
}

template <class T>
void fill_leaky(MersenneTwister& generator, T* out, T* noise, const T* x, std::int64_t n, double lower, double upper) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const double from = Real(lower), width = double(Real(upper)) - from;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto value = Real(x[i]);
    const Real slope = value <= 0 ? Real(standard_uniform(generator) * width + from) : Real(1);
    out[i] = T(value * slope);
    noise[i] = T(slope);
  }
}

// clang-format off
#define INSTANTIATE_FLOATING(T) \
  template void fill_leaky(MersenneTwister&, T*, T*, const T*, std::int64_t, double, double); \
  template void fill_uniform(MersenneTwister&, T*, std::int64_t, double, double); \
  template void fill_normal_serial(MersenneTwister&, T*, std::int64_t, double, double); \
  template void fill_log_normal(MersenneTwister&, T*, std::int64_t, double, double); \
  template void fill_exponential(MersenneTwister&, T*, std::int64_t, double); \
  template void fill_cauchy(MersenneTwister&, T*, std::int64_t, double, double);
#define INSTANTIATE_NUMBER(T) \
  template void fill_geometric(MersenneTwister&, T*, std::int64_t, double); \
  template void fill_permutation(MersenneTwister&, T*, std::int64_t);
#define INSTANTIATE(T) \
  template void fill_random(MersenneTwister&, T*, std::int64_t); \
  template void fill_random_range(MersenneTwister&, T*, std::int64_t, std::int64_t, std::uint64_t); \
  template RandomBounds representable_bounds<T>(std::int64_t, std::int64_t); \
  template void fill_bernoulli(MersenneTwister&, T*, std::int64_t, double); \
  template void fill_bernoulli(MersenneTwister&, T*, const float*, std::int64_t); \
  template void fill_bernoulli(MersenneTwister&, T*, const double*, std::int64_t); \
  template void fill_bernoulli(MersenneTwister&, T*, const Half*, std::int64_t); \
  template void fill_bernoulli(MersenneTwister&, T*, const BFloat16*, std::int64_t);
#define FOR_FLOATING(M) M(float) M(double) M(Half) M(BFloat16)
#define FOR_INTEGRAL(M) M(std::uint8_t) M(std::int8_t) M(std::int16_t) M(std::int32_t) M(std::int64_t)
FOR_FLOATING(INSTANTIATE_FLOATING)
FOR_FLOATING(INSTANTIATE_NUMBER)
FOR_INTEGRAL(INSTANTIATE_NUMBER)
FOR_FLOATING(INSTANTIATE)
FOR_INTEGRAL(INSTANTIATE)
INSTANTIATE(bool)
// clang-format on

}  // namespace rushlight
